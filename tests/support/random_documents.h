// Random documents, small enough that each of their elements can be looked at, for property tests.
//
// A case is a Draw: numbers in sections, one section for each document. Each decision takes the next number of its
// section, and 0 stands for the simplest choice: one layer, one rank, one view, no padding. So RapidCheck shrinks any
// case by setting numbers to 0 and halving them, and what a shrunk case still has is needed for its failure.
#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/range.h"
#include "model/kv/binding.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/valid.h"

namespace crossdock::testing {

enum class Section { kSchema, kTokens, kSource, kTarget, kOptions, kSourceBinding, kTargetBinding, kStore };

struct Draw {
  static constexpr size_t kSectionCount = 8;
  static constexpr size_t kSectionNumbers = 512;

  std::vector<uint16_t> numbers;  // kSectionCount * kSectionNumbers of them
};

void showValue(const Draw& draw, std::ostream& out);

class Choices {
 public:
  Choices(const Draw& draw, Section section)
      : left_(std::span(draw.numbers)
                  .subspan(static_cast<size_t>(section) * Draw::kSectionNumbers, Draw::kSectionNumbers)) {}

  // In [0, bound). 0 once the numbers are used up.
  uint64_t below(uint64_t bound) {
    CHECK(bound > 0);
    if (left_.empty()) return 0;
    const uint64_t number = left_.front();
    left_ = left_.subspan(1);
    return number * bound >> 16;
  }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }  // both included
  // True in `numerator` of `denominator` cases; false is the simple choice.
  bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) >= denominator - numerator; }
  // The simple choice leaves the order as it is.
  template <class Items>
  void shuffle(Items& items) {
    for (size_t i = 0; i + 1 < items.size(); ++i) std::swap(items[i], items[i + below(items.size() - i)]);
  }

 private:
  std::span<const uint16_t> left_;
};

// One to five layers in one to three groups that interleave, with windows; up to three components of different dims,
// item sizes (1 to 4 bytes) and granularity (rows of several tokens, states).
Valid<CacheSchema> random_schema(Choices& choices);

// The same schema, or one that asks for less: fewer layers or components, shorter windows, groups divided.
Valid<CacheSchema> random_part_of(const Valid<CacheSchema>& schema, Choices& choices);

// The least number of tokens that is a whole number of rows of each component.
uint64_t row_unit(const CacheSchema& schema);

// Tokens of a snapshot: at most 14, begun anywhere below 10.
Range random_tokens(Choices& choices);

// Up to twelve ranks (dp x pp x tp x cp): any set of layers for a stage; uneven, replicated or arbitrary sets of heads;
// any blocks of a cycle or stated intervals of tokens. Its tokens hold `tokens`, and are mostly all.
Valid<PlacementManifest> random_placement(const Valid<CacheSchema>& schema, Range tokens, const std::string& name,
                                          Choices& choices);

enum class BindingStyle {
  kAny,
  kPaged,  // most regions hold pages only, of one size: what BoundSide::rebind() can judge
};

// Bindings of the participants of a placement (those that have nothing of the snapshot may be left out): views for one
// layer or many, one head or many, components apart or interleaved at any axis, axes in any order, padding at each,
// page tables that begin anywhere and have their slots in any order, several tables in one pool, several regions,
// several participants in one instance, regions that end with the last byte in use.
std::vector<Valid<RuntimeBinding>> random_bindings(const Valid<PlacementManifest>& placement,
                                                   const Valid<SnapshotDescriptor>& snapshot, BindingStyle style,
                                                   Choices& choices);

// Pages of up to four row units; parts of any layers, components and heads.
Valid<StoreLayout> random_layout(const Valid<CacheSchema>& schema, Choices& choices);

}  // namespace crossdock::testing

namespace rc {

template <>
struct Arbitrary<crossdock::testing::Draw> {
  static Gen<crossdock::testing::Draw> arbitrary();
};

}  // namespace rc
