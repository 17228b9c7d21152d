#include "backends/memory/guards.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>

// Blocks are those of the address space, of the size of a page: a first write may take all of the huge page around it,
// so a block without items gets pages only when something writes, or reads, within it.
namespace crossdock {
namespace {

uintptr_t address_of(const std::byte* byte) { return reinterpret_cast<uintptr_t>(byte); }

uintptr_t small_page_bytes() { return static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)); }

// Which pages of this process the kernel has taken: proc(5), "/proc/pid/pagemap".
class PageMap {
 public:
  PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~PageMap() {
    if (file_ >= 0) ::close(file_);
  }
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // The first byte of the first page that is in memory or swapped out, or that the kernel did not tell about; empty
  // when there is none.
  std::optional<size_t> first_page(std::span<const std::byte> bytes) const {
    const uintptr_t page_bytes = small_page_bytes();
    const uintptr_t end = (address_of(bytes.data() + bytes.size()) + page_bytes - 1) / page_bytes;
    uintptr_t page = address_of(bytes.data()) / page_bytes;
    while (page < end) {
      std::array<uint64_t, 512> entries;
      const size_t wanted = std::min<size_t>(entries.size(), end - page);
      const ssize_t got =
          ::pread(file_, entries.data(), wanted * sizeof(uint64_t), static_cast<off_t>(page * sizeof(uint64_t)));
      const size_t count = got < 0 ? 0 : static_cast<size_t>(got) / sizeof(uint64_t);
      for (size_t i = 0; i < wanted; ++i) {
        constexpr uint64_t kPresent = uint64_t{1} << 63;
        constexpr uint64_t kSwapped = uint64_t{1} << 62;
        if (i < count && (entries[i] & (kPresent | kSwapped)) == 0) continue;
        const uintptr_t first = std::max((page + i) * page_bytes, address_of(bytes.data()));
        return first - address_of(bytes.data());
      }
      page += wanted;
    }
    return std::nullopt;
  }

 private:
  int file_;
};

std::optional<size_t> first_without_guard(std::span<const std::byte> bytes) {
  constexpr size_t kPieceBytes = 4096;
  for (size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    const auto block = bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin));
    std::byte difference{0};  // of all bytes at once: a loop without branches
    for (const std::byte byte : block) difference |= byte ^ kGuardByte;
    if (difference == std::byte{0}) continue;
    const auto found = std::ranges::find_if(block, [](std::byte byte) { return byte != kGuardByte; });
    return begin + static_cast<size_t>(found - block.begin());
  }
  return std::nullopt;
}

std::string wrong_byte(const RegionKey& key, std::span<const std::byte> region, size_t offset) {
  return fmt::format("region {} byte {}: holds {:02x}, belongs to no item", key.to_text(), offset,
                     std::to_integer<unsigned>(region[offset]));
}

}  // namespace

void fill_guards(const RegionMemory& memory) {
  for (const auto& [key, mapping] : memory.regions()) std::ranges::fill(memory.find(key), kGuardByte);
}

std::optional<std::string> check_guards(const RegionMemory& memory) {
  for (const auto& [key, mapping] : memory.regions()) {
    const std::span<const std::byte> region = memory.find(key);
    if (const std::optional<size_t> at = first_without_guard(region)) return wrong_byte(key, region, *at);
  }
  return std::nullopt;
}

SparseGuards::SparseGuards(const RegionMemory& memory, const EachExtent& each_extent)
    : block_bytes_(memory.pages() == RegionMemory::Pages::kHuge ? kHugePageBytes : small_page_bytes()) {
  for (const auto& [key, mapping] : memory.regions()) {
    const std::span<std::byte> bytes = memory.find(key);
    if (bytes.empty()) continue;
    const uintptr_t first = address_of(bytes.data()) / block_bytes_;
    const uintptr_t last = (address_of(bytes.data()) + bytes.size() - 1) / block_bytes_;
    regions_.push_back(GuardedRegion{key, bytes, std::vector<bool>(last - first + 1)});
    // A part of a block may share its page with other memory.
    if (address_of(bytes.data()) % block_bytes_ != 0) regions_.back().has_items.front() = true;
    if (address_of(bytes.data() + bytes.size()) % block_bytes_ != 0) regions_.back().has_items.back() = true;
  }
  std::sort(regions_.begin(), regions_.end(), [](const GuardedRegion& a, const GuardedRegion& b) {
    return std::less<>()(a.bytes.data(), b.bytes.data());
  });
  GuardedRegion* region = nullptr;
  each_extent([&](std::span<const std::byte> extent) {
    const std::byte* const begin = extent.data();
    if (region == nullptr || begin < region->bytes.data() || begin >= region->bytes.data() + region->bytes.size())
      region = find(begin);
    const uintptr_t first = address_of(region->bytes.data()) / block_bytes_;
    const uintptr_t last = (address_of(begin) + extent.size() - 1) / block_bytes_;
    for (uintptr_t at = address_of(begin) / block_bytes_; at <= last; ++at) region->has_items[at - first] = true;
  });
  const PageMap pages;
  for (GuardedRegion& each : regions_)
    for (size_t begin = 0; begin < each.has_items.size();) {
      const size_t end = run_end(each, begin);
      const std::span<std::byte> bytes = blocks(each, begin, end);
      // Blocks without items that have a page already cannot be checked for getting one.
      if (each.has_items[begin] || pages.first_page(bytes)) {
        std::fill(each.has_items.begin() + static_cast<ptrdiff_t>(begin),
                  each.has_items.begin() + static_cast<ptrdiff_t>(end), true);
        std::ranges::fill(bytes, kGuardByte);
        filled_bytes_ += bytes.size();
      }
      begin = end;
    }
}

SparseGuards::GuardedRegion* SparseGuards::find(const std::byte* address) {
  const auto after = std::partition_point(regions_.begin(), regions_.end(), [&](const GuardedRegion& region) {
    return !std::less<>()(address, region.bytes.data());
  });
  CHECK(after != regions_.begin());
  return &*std::prev(after);
}

std::span<std::byte> SparseGuards::blocks(const GuardedRegion& region, size_t begin, size_t end) const {
  const uintptr_t base = address_of(region.bytes.data());
  const uintptr_t first = base / block_bytes_;
  const size_t from = std::max((first + begin) * block_bytes_, base) - base;
  const size_t to = std::min<size_t>((first + end) * block_bytes_ - base, region.bytes.size());
  return region.bytes.subspan(from, to - from);
}

size_t SparseGuards::run_end(const GuardedRegion& region, size_t begin) {
  size_t end = begin + 1;
  while (end < region.has_items.size() && region.has_items[end] == region.has_items[begin]) ++end;
  return end;
}

std::optional<std::string> SparseGuards::check() const {
  const PageMap pages;
  for (const GuardedRegion& region : regions_)
    for (size_t begin = 0; begin < region.has_items.size();) {
      const size_t end = run_end(region, begin);
      const std::span<std::byte> bytes = blocks(region, begin, end);
      const bool has_items = region.has_items[begin];
      begin = end;
      const std::optional<size_t> touched = has_items ? first_without_guard(bytes) : pages.first_page(bytes);
      if (!touched) continue;
      const size_t offset = static_cast<size_t>(bytes.data() - region.bytes.data()) + *touched;
      if (has_items) return wrong_byte(region.key, region.bytes, offset);
      return fmt::format("region {} from byte {} on: a page was touched, belongs to no item", region.key.to_text(),
                         offset);
    }
  return std::nullopt;
}

}  // namespace crossdock
