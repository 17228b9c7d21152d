// Memory for the regions of bindings of this process, when no runtime provides it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "backends/memory/memory_registry.h"
#include "base/status.h"
#include "executor/copy_work.h"
#include "model/instance_binding.h"
#include "model/valid.h"

namespace crossdock {

// Bytes that this process may still allocate, as the kernel reports them: the smaller of the machine's MemAvailable and
// what the process's control group (version 2) leaves. 2^64 - 1 when the kernel reports neither.
uint64_t available_memory_bytes();

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// Anonymous memory, one mapping for each region, filled with zeros; pages are taken when they are first written. So
// two memories that are made before either is written both see the same memory as available: the second is to be given
// what the first leaves, bytes_max - total_bytes().
class RegionMemory {
 public:
  // Huge pages make first writes fast. Without them a write takes no more than a page, which is for regions that are
  // used here and there.
  enum class Pages { kHuge, kSmall };

  // All regions together have no more than bytes_max.
  explicit RegionMemory(uint64_t bytes_max = available_memory_bytes(), Pages pages = Pages::kHuge)
      : bytes_max_(bytes_max), pages_(pages) {}
  RegionMemory(RegionMemory&&) noexcept = default;
  RegionMemory& operator=(RegionMemory&&) noexcept = default;

  // Adds the binding's regions; those of one instance with the same id and address are one. kResourceExhausted, naming
  // region and bytes, when it cannot be allocated; kInvalidArgument when the region is mapped with another size or
  // epoch. Nothing is added then.
  Status add(const InstanceBinding& binding);
  // All bytes of a region; empty when there is none. Nothing moves them while the memory lives.
  std::span<std::byte> find(const RegionKey& key) const;
  // Registers every region under its key; the memory outlives what is registered. kConflict as MemoryRegistry::add();
  // no region of the memory is newly registered then.
  Status register_in(MemoryRegistry& registry) const;

  uint64_t total_bytes() const { return total_bytes_; }
  Pages pages() const { return pages_; }

  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* memory) const;
  };
  using Mapping = std::unique_ptr<std::byte[], Unmap>;  // null: a region without bytes
  const std::map<RegionKey, Mapping>& regions() const { return regions_; }

 private:
  // The region that differs in the epoch at most, or end().
  std::map<RegionKey, Mapping>::const_iterator find_any_epoch(const RegionKey& key) const;

  std::map<RegionKey, Mapping> regions_;
  uint64_t bytes_max_;
  Pages pages_;
  uint64_t total_bytes_ = 0;
};

}  // namespace crossdock
