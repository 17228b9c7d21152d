#include "backends/memory/region_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/file.h"

namespace crossdock {
namespace {

constexpr uint64_t kKernelFileBytesMax = uint64_t{1} << 20;

std::string kernel_text(const std::string& path) {
  const Result<std::string> text = read_file(path, kKernelFileBytesMax);
  return text.ok() ? text.value() : std::string();
}

// The number that follows `name` at the begin of a line.
std::optional<uint64_t> number_after(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1) {
    if (!text.substr(at).starts_with(name)) continue;
    const size_t digits = text.find_first_not_of(' ', at + name.size());
    uint64_t number = 0;
    if (digits == text.npos) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + digits, text.data() + text.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

// Counts the page cache that the kernel can drop as free, as MemAvailable does.
std::optional<uint64_t> left_by_control_group() {
  const std::string groups = kernel_text("/proc/self/cgroup");
  const size_t begin = groups.rfind("0::/");
  if (begin == groups.npos) return std::nullopt;
  const size_t path = begin + 3;
  const std::string folder = "/sys/fs/cgroup" + groups.substr(path, groups.find('\n', path) - path);
  const auto limit = number_after(kernel_text(folder + "/memory.max"), "");  // none: "max"
  const auto used = number_after(kernel_text(folder + "/memory.current"), "");
  const auto files = number_after(kernel_text(folder + "/memory.stat"), "inactive_file ");
  if (!limit || !used) return std::nullopt;
  // Saturating: the three files are read one after the other, so they need not agree.
  return *limit - std::min(*limit, *used - std::min(*used, files.value_or(0)));
}

Result<RegionMemory::Mapping> map_bytes(const RegionKey& key, uint64_t bytes, RegionMemory::Pages pages) {
  if (bytes == 0) return RegionMemory::Mapping();
  if (bytes > std::numeric_limits<size_t>::max())
    return Status(Code::kResourceExhausted,
                  fmt::format("region {}: {} bytes are more than a process can address", key.to_text(), bytes));
  const size_t size = static_cast<size_t>(bytes);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status(Code::kResourceExhausted,
                  fmt::format("region {}: cannot map {} bytes: {}", key.to_text(), bytes, std::strerror(errno)));
  // mmap() succeeds for more memory than there is, so the limit is checked by the caller (add) and not left to the
  // first write, which would kill the process. In huge pages a first write is several times as fast (one fault for 2
  // MiB), unless a virtual machine has to ask its host for them first. A kernel without them says no, which is fine.
  if (bytes >= kHugePageBytes)
    (void)::madvise(memory, size, pages == RegionMemory::Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return RegionMemory::Mapping(static_cast<std::byte*>(memory), RegionMemory::Unmap{size});
}

}  // namespace

uint64_t available_memory_bytes() {
  const auto kibibytes = number_after(kernel_text("/proc/meminfo"), "MemAvailable:");
  const uint64_t machine = kibibytes ? saturating_mul(*kibibytes, 1024) : std::numeric_limits<uint64_t>::max();
  return std::min(machine, left_by_control_group().value_or(machine));
}

void RegionMemory::Unmap::operator()(std::byte* memory) const { CHECK(::munmap(memory, bytes) == 0); }

// Keys that differ in the epoch only are neighbours.
std::map<RegionKey, RegionMemory::Mapping>::const_iterator RegionMemory::find_any_epoch(const RegionKey& key) const {
  RegionKey wanted = key;
  wanted.epoch = 0;
  const auto found = regions_.lower_bound(wanted);
  if (found == regions_.end()) return found;
  wanted.epoch = found->first.epoch;
  return found->first == wanted ? found : regions_.end();
}

// All regions or none: mappings are collected first, and unmapped by their destructors on an error.
Status RegionMemory::add(const InstanceBinding& binding) {
  std::vector<std::pair<RegionKey, Mapping>> added;
  // Cannot wrap: total_bytes_ never passes bytes_max_.
  uint64_t left = bytes_max_ - total_bytes_;
  for (const Region& region : binding.regions) {
    RegionKey key = RegionKey::of(binding, region);
    if (const auto known = find_any_epoch(key); known != regions_.end()) {
      const uint64_t epoch = known->first.epoch;
      const uint64_t bytes = known->second.get_deleter().bytes;
      if (epoch == key.epoch && bytes == region.bytes) continue;
      return Status(Code::kInvalidArgument,
                    fmt::format("region {} of {} bytes: it is mapped already as epoch {} of {} bytes", key.to_text(),
                                region.bytes, epoch, bytes));
    }
    if (region.bytes > left)
      return Status(Code::kResourceExhausted, fmt::format("region {}: cannot allocate {} bytes, {} of {} are left",
                                                          key.to_text(), region.bytes, left, bytes_max_));
    TRY(Mapping mapping, map_bytes(key, region.bytes, pages_));
    left -= region.bytes;
    added.emplace_back(std::move(key), std::move(mapping));
  }
  for (auto& [key, mapping] : added) CHECK(regions_.emplace(std::move(key), std::move(mapping)).second);
  total_bytes_ = bytes_max_ - left;
  return Status();
}

std::span<std::byte> RegionMemory::find(const RegionKey& key) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return {};
  return {found->second.get(), found->second.get_deleter().bytes};
}

Status RegionMemory::register_in(MemoryRegistry& registry) const {
  for (auto region = regions_.begin(); region != regions_.end(); ++region) {
    Status status = registry.add(region->first, find(region->first));
    if (status.ok()) continue;
    // Only what this call has registered. Nothing can be under way there: no peer knows of these keys yet.
    for (auto before = regions_.begin(); before != region; ++before) registry.remove(before->first);
    return status;
  }
  return Status();
}

}  // namespace crossdock
