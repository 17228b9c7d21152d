// How many bytes a schema, or what a participant owns of it, comes to. For tables and estimates; plans count exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "model/kv/cache_schema.h"
#include "model/kv/placement.h"
#include "model/kv/schema_rules.h"

namespace crossdock {

// In bytes. A double, so sums of large schemas do not overflow; they may be inexact past 2^53.
struct CacheVolume {
  double bytes_per_token = 0;  // a row of n tokens counts as 1/n of its bytes; windows are not considered
  double state_bytes = 0;      // of components without a token axis

  CacheVolume& operator+=(const CacheVolume& other) {
    bytes_per_token += other.bytes_per_token;
    state_bytes += other.state_bytes;
    return *this;
  }
};

// Of everything in the schema, once.
CacheVolume volume_of(const CacheSchema& schema);
// Of what the ownerships hold, with the schema's index; a share of the tokens counts as that share (all, for stated
// intervals).
CacheVolume volume_of(const CacheSchema& schema, const LayerIndex& index, const std::vector<Ownership>& owns);

}  // namespace crossdock
