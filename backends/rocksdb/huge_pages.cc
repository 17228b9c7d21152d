#include "backends/rocksdb/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "base/check.h"

namespace crossdock {
namespace {

constexpr size_t kMappedBytes = 2 * kHugePageBytes;  // wherever it begins, a whole huge page is in it
constexpr size_t kKeptMax = 16;

}  // namespace

// mmap() aligns to small pages only, so twice the size is mapped and the aligned half used. The other half is never
// written and takes no memory.
HugePage::HugePage()
    : mapping_(::mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (mapping_ == MAP_FAILED) return;
  auto* const begin = static_cast<char*>(mapping_);
  data_ = begin + -reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
  (void)::madvise(data_, kHugePageBytes, MADV_HUGEPAGE);  // a kernel without them says no
}

HugePage::~HugePage() {
  if (data_ != nullptr) CHECK(::munmap(mapping_, kMappedBytes) == 0);
}

// Never waits. How many pages are out at once is bounded by the callers: reads by staging memory, writes by
// WriteBehind.
std::unique_ptr<HugePage> HugePages::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      std::unique_ptr<HugePage> page = std::move(kept_.back());
      kept_.pop_back();
      return page;
    }
  }
  return std::make_unique<HugePage>();
}

void HugePages::give(std::unique_ptr<HugePage> page) {
  const std::lock_guard lock(mutex_);
  if (page->data() != nullptr && kept_.size() < kKeptMax) kept_.push_back(std::move(page));
}

}  // namespace crossdock
