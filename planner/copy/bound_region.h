// A region as the steps of a copy plan name it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "model/ids.h"

namespace crossdock {

// Registered memory of an instance, or an object of a store, whose instance is empty. Within an instance the address
// tells regions of one name apart.
// The epoch is part of the name: memory of an earlier operation at the same address is another region (I3).
struct BoundRegion {
  InstanceId instance;
  RegionId id;
  // In the address space of the instance; empty where the binding states none, and for objects.
  std::optional<uint64_t> address;
  uint64_t epoch = 0;
  // The length; offsets of steps are below it.
  uint64_t bytes = 0;

  friend auto operator<=>(const BoundRegion&, const BoundRegion&) = default;
};

}  // namespace crossdock
