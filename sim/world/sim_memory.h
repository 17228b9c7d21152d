// Memory of the simulated cluster: whose it is, what it holds, and under which grants others reach it.
//
// Bytes are there where the scenario carries them; the shadow always is. Registration and grants go on after the
// runtime took the pages back, as with a network interface; only a revoke ends a grant. So a late write into pages that
// were not fenced off, is seen (I3).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/memory/memory_registry.h"
#include "backends/memory/region_memory.h"
#include "executor/copy_work.h"
#include "executor/message.h"
#include "executor/store_types.h"
#include "sim/scenario/cluster_links.h"
#include "sim/shadow/shadow.h"
#include "sim/world/checks.h"

namespace crossdock {

// One participant's memory for one operation, and what the runtime did with it. Plain memory has neither binding nor
// shadow: only SimMemory::add_region() takes it.
struct SimMember {
  std::string name;  // "move/target p0-t0"
  Role role = Role::kSource;
  Place place;
  BindingPointer binding;  // of a KV cache: its views say what its bytes hold
  std::shared_ptr<const Valid<CacheSchema>> schema;
  uint64_t content = 0;                // seed of what its source holds, or of what it is to get
  std::optional<RegionMemory> memory;  // where bytes are carried
  std::unique_ptr<Shadow> shadow;
  std::optional<HoldId> hold;  // who has its pages, or had
  uint64_t holds = 0;          // calls of the runtime that happened
  uint64_t activations = 0;
  uint64_t releases = 0;
  bool is_held = false;
  bool is_active = false;
  TimePoint active_since;
  bool is_released = false;
};

class SimMemory {
 public:
  SimMemory(Checks& checks, std::function<TimePoint()> now) : checks_(checks), now_(std::move(now)) {}

  // Makes regions and contents; the member outlives the memory. Sources hold their content, targets guard bytes.
  Status add(SimMember& member, bool carries_bytes);
  // Registers all regions: from now on they can be granted.
  Status register_regions(SimMember& member);
  // Registers bytes of a member without a binding, which outlive the registration. kConflict when the key is
  // registered.
  Status add_region(SimMember& member, const RegionKey& key, std::span<std::byte> bytes);
  // Forgets what add_region() registered: nothing that is under way lands there any more.
  void remove_region(const RegionKey& key);
  // As in MemoryRegistry.
  Status grant(const GrantRequest& request);
  // Nothing lands under this grant from now on, and it is not given any more.
  Status revoke(const GrantId& grant);
  bool is_live(const GrantId& grant) const;
  // The member whose region it is; null when it was never registered.
  SimMember* owner(const RegionKey& key) const;
  // Why a copy of these steps cannot begin. kNotFound: a region is not registered; kConflict: the grant is not live, or
  // does not cover a region or name the writer; kInvalidArgument: a step leaves a region or the grant's range.
  Status check_copy(const GrantId& grant, const StepSpan& steps) const;

  // Bytes [begin, end) of the steps, in their order, land. Those under a grant that has ended do not: kConflict then.
  // `flip`: the first byte comes with one bit wrong.
  Status land(const GrantId& grant, const StepSpan& steps, uint64_t begin, uint64_t end, bool flip);
  // Of the owner's memory, granted or not. kNotFound; kInvalidArgument when a step leaves a region.
  Result<uint32_t> checksum(const StepSpan& steps, StepEnd end) const;
  // A store is about to write into the targets of the step.
  void check_store_write(const GetStep& step);

  // The framework gives a source's pages to another owner although they are pinned.
  void overwrite(SimMember& member);
  // What a target holds, at the moment of its activation: empty, or what is wrong. Looks at each byte once; content is
  // gone afterwards. `exactly_once` is of the shadow's counts; empty: what it holds did not come by copies.
  std::string take_content(SimMember& member, std::optional<bool> exactly_once);

  MemoryRegistry& registry() { return registry_; }
  uint64_t landed_bytes(const std::string& source, const std::string& target) const;
  const std::map<std::pair<std::string, std::string>, uint64_t>& landed() const { return landed_; }

 private:
  struct Registered {
    SimMember* member;
    uint64_t bytes;                              // of the region
    std::optional<std::span<std::byte>> memory;  // where they are carried
  };
  struct Granted {
    GrantRequest request;
    bool is_revoked = false;
  };
  const Registered* find(const RegionKey& key) const;
  void check_target(const SimMember& member);
  void check_content(const CopyWork& work, size_t step, bool is_whole, const SimMember& source, SimMember& target);

  Checks& checks_;
  std::function<TimePoint()> now_;
  MemoryRegistry registry_;
  std::map<RegionKey, Registered> regions_;
  std::map<GrantId, Granted> grants_;
  std::map<std::pair<std::string, std::string>, uint64_t> landed_;  // payload bytes from a member to a member
};

}  // namespace crossdock
