// The half of a binding that says nothing of what the bytes mean: whose memory it is, and which regions there are. The
// bindings of each resource (model/kv/binding.h) begin with it; transports and protocols see no more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ids.h"

namespace crossdock {

struct Device {
  DeviceId id;
  std::string kind;                     // "host", "cuda", ...
  uint64_t registration_bytes_max = 0;  // the longest region that its network interface can register

  friend bool operator==(const Device&, const Device&) = default;
};

// Registered memory. Above the backends it is named by (instance, id, epoch), never pointed at.
struct Region {
  RegionId id;
  uint64_t epoch = 0;
  uint64_t bytes = 0;
  DeviceId device;
  std::optional<uint64_t> address;      // in the instance's address space, where the backend wants to know it
  std::optional<std::string> endpoint;  // how the instance is reached, one for each instance

  friend bool operator==(const Region&, const Region&) = default;
};

struct InstanceBinding {
  OperationId operation;
  ResourceId resource;
  RevisionId revision;
  ParticipantId participant;
  InstanceId instance;
  uint64_t generation = 0;      // counts the restarts of an instance
  std::vector<Device> devices;  // sorted by id
  std::vector<Region> regions;  // sorted by id

  friend bool operator==(const InstanceBinding&, const InstanceBinding&) = default;
};

}  // namespace crossdock
