// One side of a lowering: where the bytes lie. Runtime bindings, a store manifest and the objects of an upload have the
// same form for the lowering.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/kv/binding.h"
#include "model/kv/binding_rules.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/copy/bound_region.h"
#include "planner/kv/bound_end.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/store_geometry.h"

namespace crossdock {

struct SlotLimits;  // planner/kv/slot_limits.h

// Refers to the documents it was made from, which outlive it.
class BoundSide {
 public:
  // Checks each binding against the placement and, where there is one, the snapshot (model/kv/binding_rules.h), and the
  // bindings of each instance together. They belong to one operation and one snapshot; a participant has one at most,
  // and one that has nothing to send or receive may go without.
  static std::optional<BoundSide> bind(const BindingContext& context,
                                       std::span<const Valid<RuntimeBinding>* const> bindings,
                                       Diagnostics& diagnostics);
  explicit BoundSide(const Valid<StoreManifest>& manifest, const Sha256Digest& digest);
  explicit BoundSide(const SnapshotObjects& objects);

  // Takes other bindings of the same participants in which nothing but operation, snapshot, epochs, generation and the
  // slots of page tables differs, and makes sure that no page comes to lie on another or past its region. False, and
  // nothing is changed, when it cannot tell (planner/kv/slot_limits.h): bind() has to look again. O(views + pages log
  // pages).
  // `context`, if given, takes the place of the one that the side was bound with, whose placement may go then.
  bool rebind(std::span<const Valid<RuntimeBinding>* const> bindings, const BindingContext* context = nullptr);

  SideKind kind() const { return kind_; }
  const Sha256Digest& digest() const { return digest_; }  // of the placement, manifest or layout
  Range tokens() const { return tokens_; }                // the snapshot's interval
  const std::optional<Sha256Digest>& snapshot_digest() const { return snapshot_digest_; }
  const OperationId* operation() const { return bindings_.empty() ? nullptr : &(*bindings_.front())->operation; }
  const std::vector<BoundRegion>& regions() const { return regions_; }
  const std::vector<BoundEnd>& ends() const { return ends_; }
  // Null when nothing is bound for it. O(log n).
  const BoundEnd* find(std::string_view end) const;

  // Whether a runtime instance, or an endpoint, is on both sides.
  bool shares_instance(const BoundSide& other) const;
  // The bindings of both sides together (model/kv/binding_rules.h, check_instances): an instance that is on both sides
  // has one endpoint, and no byte is on both sides. Adds diagnostics where that does not hold.
  void check_together_with(const BoundSide& other, Diagnostics& diagnostics) const;

 private:
  BoundSide() = default;
  void number_regions();
  bool slots_fit(std::span<const Valid<RuntimeBinding>* const> sorted) const;

  SideKind kind_ = SideKind::kRuntime;
  Sha256Digest digest_;
  Range tokens_;
  std::optional<Sha256Digest> snapshot_digest_;
  std::vector<const Valid<RuntimeBinding>*> bindings_;  // sorted by participant; empty for a store
  std::optional<BindingContext> context_;               // without the snapshot, which need not live as long
  std::vector<BoundRegion> regions_;                    // sorted
  std::vector<BoundEnd> ends_;                          // sorted by end
  std::shared_ptr<const SlotLimits> slot_limits_;       // null: rebind() is not possible
};

}  // namespace crossdock
