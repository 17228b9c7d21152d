// Grant: the right of named writers to write into registered memory, for one operation. What a transport gives and
// revokes; memory that is registered and not granted is written by its owner alone.
#pragma once

#include <string>
#include <vector>

#include "base/range.h"
#include "executor/copy_work.h"
#include "executor/ids.h"

namespace crossdock {

// Of the granter's own memory; in bytes of the region.
struct GrantRange {
  RegionKey region;
  Range bytes;

  friend bool operator==(const GrantRange&, const GrantRange&) = default;
};

// Each participant asks for a grant of its own, so the end of one participant's operation does not end another's,
// although both may lie in one region.
struct GrantRequest {
  GrantId id;
  std::vector<GrantRange> ranges;
  std::vector<InstanceId> writers;  // sorted; nobody else may use it

  friend bool operator==(const GrantRequest&, const GrantRequest&) = default;
};

// What the granter hands to its writers.
struct Grant {
  GrantId id;
  // What the transport of a writer needs to reach the memory: keys, handles, tokens. Another grant of the same memory
  // has others, so it belongs to no digest; and since it is a right, to no log.
  std::string opaque;

  friend bool operator==(const Grant&, const Grant&) = default;
};

// How a grant ends.
struct RevokeRequest {
  GrantId id;
  // Every writer has said that nothing of it is under way. A transport may then keep the path to it for the next
  // operation; else it ends the path too, so that what is under way cannot land (R6 holds for both).
  bool is_clean = false;
};

}  // namespace crossdock
