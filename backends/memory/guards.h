// Guard bytes: they show whether anything was written where nothing belongs (I1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/memory/region_memory.h"

namespace crossdock {

// The value of a byte that belongs to no item.
inline constexpr std::byte kGuardByte{0xa5};

// Fills whole regions with guard bytes.
void fill_guards(const RegionMemory& memory);
// The first byte of any region that is no guard, as text: "region 'p0-t0/key' epoch 3 byte 17: holds 3c, belongs to no
// item". Empty when there is none.
std::optional<std::string> check_guards(const RegionMemory& memory);

// The same, but guards cost memory and time only where items are: blocks (pages of the memory, huge or small) that hold
// no item are left without pages, and check() asks the kernel whether they still have none. So a page of a million
// tokens of which ten are used costs what ten tokens cost.
class SparseGuards {
 public:
  // Tells a visitor each stretch of the memory that holds items.
  using EachExtent = std::function<void(const std::function<void(std::span<const std::byte>)>&)>;

  // Fills the blocks with items. The memory was never written or read, and outlives the guards. Where the kernel does
  // not tell which pages there are (no /proc/self/pagemap), all blocks are filled.
  SparseGuards(const RegionMemory& memory, const EachExtent& each_extent);

  // As check_guards(), after guards were put in the place of all items. The blocks without items must not have been
  // read meanwhile either.
  std::optional<std::string> check() const;

  uint64_t filled_bytes() const { return filled_bytes_; }

 private:
  struct GuardedRegion {
    RegionKey key;
    std::span<std::byte> bytes;
    std::vector<bool> has_items;  // of each block
  };

  GuardedRegion* find(const std::byte* address);
  // The bytes of the blocks [begin, end).
  std::span<std::byte> blocks(const GuardedRegion& region, size_t begin, size_t end) const;
  // Where the run of blocks ends that have items, or have none, as block `begin` does.
  static size_t run_end(const GuardedRegion& region, size_t begin);

  uintptr_t block_bytes_;
  std::vector<GuardedRegion> regions_;  // by address
  uint64_t filled_bytes_ = 0;
};

}  // namespace crossdock
