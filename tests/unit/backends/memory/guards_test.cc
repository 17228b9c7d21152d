// Guards of regions that are much larger than what they hold.
#include "backends/memory/guards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/memory/synthetic.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kItemsBegin = 33 * kMiB;

// 64 MiB, of which 10 rows of 2 heads x 16 bytes are used, from 33 MiB on; the second head 12 MiB behind the first.
class SparseRegion {
 public:
  explicit SparseRegion(RegionMemory::Pages pages = RegionMemory::Pages::kHuge)
      : memory_(available_memory_bytes(), pages) {
    const Valid<CacheSchema> schema = attention(1, 2);
    placement_ = std::make_unique<Valid<PlacementManifest>>(placed(schema, {}));
    RuntimeBinding binding = *example_binding();
    binding.resource = (*placement_)->resource;
    binding.revision = (*placement_)->revision;
    binding.participant = (*placement_)->topology.participants.front().id;
    binding.placement_digest = digest(*placement_);
    binding.tokens = Range(0, 10);
    binding.devices = {Device{DeviceId("d"), "host", 64 * kMiB}};
    binding.regions = {Region{RegionId("m"), 1, 64 * kMiB, DeviceId("d"), {}, {}}};
    binding.page_tables = {};
    View view;
    view.layers = Range(0, 1);
    view.tokens = Range(0, 10);
    view.heads = Range(0, 2);
    view.dims = Range(0, 8);
    view.region = RegionId("m");
    view.strides = ByteStrides{.layer = 0, .row = 64, .head = 12 * kMiB, .dim = 2};
    binding.views.clear();
    for (const char* name : {"key", "value"}) {
      view.component = ComponentName(name);
      view.offset_bytes = kItemsBegin + binding.views.size() * 32;
      binding.views.push_back(view);
    }
    bindings_ = {std::make_shared<const Valid<RuntimeBinding>>(valid_or_die(binding))};
    EXPECT_TRUE(memory_.add(**bindings_.front()).ok());
  }

  SparseGuards guards() const {
    return SparseGuards(memory_,
                        [&](const auto& visit) { for_each_extent(*bindings_.front(), schema(), memory_, visit); });
  }
  void write() const { write_synthetic(*bindings_.front(), schema(), 1, memory_); }
  std::string take_and_check(const SparseGuards& guards) const {
    if (const auto wrong = take_synthetic(*bindings_.front(), schema(), 1, memory_)) return *wrong;
    return guards.check().value_or("all right");
  }
  std::span<std::byte> bytes() const { return memory_.find(memory_.regions().begin()->first); }
  std::string name() const { return "region " + memory_.regions().begin()->first.to_text(); }

 private:
  const CacheSchema& schema() const { return (*placement_)->cache_schema; }

  std::unique_ptr<Valid<PlacementManifest>> placement_;
  std::vector<std::shared_ptr<const Valid<RuntimeBinding>>> bindings_;
  RegionMemory memory_;
};

TEST(SparseGuards, CostWhatTheItemsTouch) {
  const SparseRegion region;
  const SparseGuards guards = region.guards();
  // One block with items for each head, and the region's ends, which may share a block with other memory.
  EXPECT_LE(guards.filled_bytes(), 6 * 2 * kMiB);
  region.write();
  EXPECT_EQ(region.take_and_check(guards), "all right");
}

TEST(SparseGuards, CostAPageForEachItemWithoutHugePages) {
  const SparseRegion region(RegionMemory::Pages::kSmall);
  const SparseGuards guards = region.guards();
  EXPECT_LE(guards.filled_bytes(), 6 * 4096u);
  region.write();
  EXPECT_EQ(region.take_and_check(guards), "all right");
  region.bytes()[kItemsBegin - 5000] = std::byte{1};
  EXPECT_TRUE(guards.check().value_or("").ends_with("a page was touched, belongs to no item"));
}

TEST(SparseGuards, FindAByteBesideAnItemAndAnyWriteFarFromAll) {
  for (const uint64_t at : {kItemsBegin - 1, kItemsBegin + 10 * 64, kItemsBegin + 16, kItemsBegin + 12 * kMiB + 700}) {
    const SparseRegion region;
    const SparseGuards guards = region.guards();
    region.write();
    region.bytes()[at] = std::byte{0x5a};
    EXPECT_EQ(region.take_and_check(guards),
              region.name() + " byte " + std::to_string(at) + ": holds 5a, belongs to no item");
  }
  // A value that the memory had before is a write all the same.
  for (const uint64_t at : {8 * kMiB, 20 * kMiB + 77, 60 * kMiB}) {
    const SparseRegion region;
    const SparseGuards guards = region.guards();
    region.write();
    *const_cast<volatile std::byte*>(&region.bytes()[at]) = std::byte{0};
    const std::string found = region.take_and_check(guards);
    EXPECT_TRUE(found.starts_with(region.name() + " from byte ") && found.ends_with("touched, belongs to no item"))
        << found;
  }
}

TEST(SparseGuards, WhatWasTouchedBeforeIsFilled) {
  const SparseRegion region;
  region.bytes()[20 * kMiB] = std::byte{7};
  const SparseGuards guards = region.guards();
  region.write();
  EXPECT_EQ(region.take_and_check(guards), "all right");
  EXPECT_EQ(region.bytes()[20 * kMiB], kGuardByte);
}

}  // namespace
}  // namespace crossdock::testing
