// A region as the steps of a copy plan name it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "model/ids.h"

namespace crossdock {

// Registered memory of an instance, or an object of a store, whose instance is empty. Within an instance the address
// tells regions of one name apart.
struct BoundRegion {
  InstanceId instance;
  RegionId id;
  std::optional<uint64_t> address;
  uint64_t epoch = 0;
  uint64_t bytes = 0;

  friend auto operator<=>(const BoundRegion&, const BoundRegion&) = default;
};

}  // namespace crossdock
