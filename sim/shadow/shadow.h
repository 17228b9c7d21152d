// Shadow memory: which logical elements of which content lie where, without their bytes. So a transfer of terabytes is
// checked for exact content at the cost of its steps.
//
// A cell is one head of one row of one layer of one component of one participant's view. What a step writes is an
// affine set of cells; the shadow decodes it through the views of both sides, independently of how the step was made,
// and notes which content landed in which cells.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"
#include "executor/copy_work.h"
#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "model/valid.h"

namespace crossdock {

using ContentTag = uint64_t;  // of a snapshot's content; 0: unknown (torn, foreign, never written)

namespace shadow {
class ShadowCells;
}

// One participant's memory for one operation.
class Shadow {
 public:
  // `initial`: what its cells hold before anything is written: a source's content, 0 for a target.
  Shadow(std::shared_ptr<const Valid<RuntimeBinding>> binding, std::shared_ptr<const Valid<CacheSchema>> schema,
         ContentTag initial);

  const RuntimeBinding& binding() const { return **binding_; }

  // The source's pages got another content (the framework broke its promise), or are torn (0).
  void overwrite_all(ContentTag content);

  // Does the whole target hold `content`, each cell written exactly once since the start (`exactly_once`), none
  // missing? Empty, or the first fault: "component key layer 3 head 1 token 17: was never written".
  std::string check(ContentTag content, bool exactly_once) const;

  // Volumes in bytes: what holds `content`, all cells.
  uint64_t bytes_holding(ContentTag content) const;
  uint64_t total_bytes() const;

  // A number that is equal for equal contents of the cells of the steps' end in their order, and differs for others:
  // what a checksum of the bytes would say.
  uint32_t checksum(const StepSpan& steps, StepEnd end) const;

 private:
  friend class ShadowCopier;
  std::shared_ptr<const Valid<RuntimeBinding>> binding_;
  std::shared_ptr<shadow::ShadowCells> cells_;
};

// Decodes steps between a source and a target.
class ShadowCopier {
 public:
  // Notes that steps [begin, end) of the work landed whole: every cell of the target takes what the source's cell holds
  // now. Empty, or what is wrong with the first wrong step, which is not noted, nor are those after it:
  // "step 17: writes 256 bytes from component key layer 3 head 1 token 17 of 'p0-t0' to component key layer 3 head 2
  // token 17 of 'p0-t1'", "step 3: reads byte 4096 of region 'key-g0' of 'p0-t0', which belongs to no view".
  static std::string land(const CopyWork& work, size_t begin, size_t end, const Shadow& source, Shadow& target);
  // Some of a step landed and some did not: its cells hold unknown content.
  static std::string tear(const CopyWork& work, size_t step, const Shadow& source, Shadow& target);
};

}  // namespace crossdock
