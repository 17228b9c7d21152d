// Runtime binding: where, for one operation, the bytes of one participant lie.
// Wire form: docs/formats.md, "crossdock.binding".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"
#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/ids.h"
#include "model/kv/view.h"

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

struct RuntimeBinding {
  OperationId operation;
  ResourceId resource;
  RevisionId revision;
  ParticipantId participant;
  InstanceId instance;
  uint64_t generation = 0;  // counts the restarts of an instance
  Sha256Digest placement_digest;
  Sha256Digest snapshot_digest;
  Range tokens;                        // the snapshot's interval
  std::vector<Device> devices;         // sorted by id
  std::vector<Region> regions;         // sorted by id
  std::vector<PageTable> page_tables;  // sorted by id
  std::vector<View> views;             // sorted

  friend bool operator==(const RuntimeBinding&, const RuntimeBinding&) = default;
};

// See model/valid.h. These are the rules that a binding keeps alone; model/kv/binding_rules.h has those that need
// others.
void canonicalize(RuntimeBinding& binding);
void validate(const RuntimeBinding& binding, Diagnostics& diagnostics);

}  // namespace crossdock
