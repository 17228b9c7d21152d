#include "backends/memory/region_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

Region region_of(const char* id, uint64_t bytes, uint64_t epoch = 0, std::optional<uint64_t> address = {}) {
  return Region{RegionId(id), epoch, bytes, DeviceId("d"), address, {}};
}

InstanceBinding binding_of(std::vector<Region> regions, const char* instance = "i") {
  RuntimeBinding binding = *example_binding();
  binding.instance = InstanceId(instance);
  binding.devices = {Device{DeviceId("d"), "host", kLast}};
  binding.regions = std::move(regions);
  binding.page_tables = {};
  binding.views = {};
  return *valid_or_die(binding);  // its neutral half
}

RegionKey key_of(const char* id, uint64_t epoch = 0, std::optional<uint64_t> address = {}, const char* instance = "i") {
  return RegionKey{InstanceId(instance), RegionId(id), address, epoch};
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(RegionMemory, HoldsEachRegionInItsOwnBytes) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 5000, 1), region_of("b", 7, 2, 4096)})), Status());
  const std::span<std::byte> a = memory.find(key_of("a", 1));
  const std::span<std::byte> b = memory.find(key_of("b", 2, 4096));
  ASSERT_EQ(a.size(), 5000u);
  ASSERT_EQ(b.size(), 7u);
  EXPECT_EQ(memory.total_bytes(), 5007u);
  EXPECT_TRUE(is_zero(a) && is_zero(b));
  std::ranges::fill(a, std::byte{1});
  EXPECT_TRUE(is_zero(b));
  std::ranges::fill(b, std::byte{2});
  EXPECT_TRUE(std::ranges::all_of(a, [](std::byte byte) { return byte == std::byte{1}; }));
}

TEST(RegionMemory, FindsNothingUnderAnotherKey) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8, 1, 64)})), Status());
  EXPECT_EQ(memory.find(key_of("a", 1, 64)).size(), 8u);
  for (const RegionKey& other : {key_of("b", 1, 64), key_of("a", 2, 64), key_of("a", 1, 65), key_of("a", 1),
                                 key_of("a", 1, 64, "j"), key_of("", 0)})
    EXPECT_TRUE(memory.find(other).empty()) << other.to_text();
}

TEST(RegionMemory, ARegionThatSeveralBindingsNameIsOne) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8)})), Status());
  memory.find(key_of("a"))[3] = std::byte{9};
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8), region_of("b", 4)})), Status());
  EXPECT_EQ(memory.total_bytes(), 12u);
  EXPECT_EQ(memory.find(key_of("a"))[3], std::byte{9});
}

TEST(RegionMemory, NamesAreOfAnInstanceAndAnAddress) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8, 0, 0)}, "i")), Status());
  ASSERT_EQ(memory.add(binding_of({region_of("a", 9, 3, 64)}, "i")), Status());
  ASSERT_EQ(memory.add(binding_of({region_of("a", 10, 4, 0)}, "j")), Status());
  EXPECT_EQ(memory.regions().size(), 3u);
  EXPECT_EQ(memory.find(key_of("a", 0, 0, "i")).size(), 8u);
  EXPECT_EQ(memory.find(key_of("a", 3, 64, "i")).size(), 9u);
  EXPECT_EQ(memory.find(key_of("a", 4, 0, "j")).size(), 10u);
}

TEST(RegionMemory, RefusesARegionWithAnotherSizeOrEpochAndAddsNothing) {
  for (const auto& [other, text] :
       {std::pair(region_of("b", 9, 5), "region 'i/b' epoch 5 of 9 bytes: it is mapped already as epoch 5 of 8 bytes"),
        std::pair(region_of("b", 8, 4), "region 'i/b' epoch 4 of 8 bytes: it is mapped already as epoch 5 of 8 bytes"),
        std::pair(region_of("b", 8, 6),
                  "region 'i/b' epoch 6 of 8 bytes: it is mapped already as epoch 5 of 8 bytes")}) {
    RegionMemory memory;
    ASSERT_EQ(memory.add(binding_of({region_of("b", 8, 5)})), Status());
    EXPECT_EQ(memory.add(binding_of({region_of("a", 4), other})), Status(Code::kInvalidArgument, text));
    EXPECT_EQ(memory.regions().size(), 1u);
    EXPECT_EQ(memory.total_bytes(), 8u);
    EXPECT_EQ(memory.find(key_of("b", 5)).size(), 8u);
  }
}

TEST(RegionMemory, KeepsToItsLimitToTheByte) {
  RegionMemory memory(100);
  ASSERT_EQ(memory.add(binding_of({region_of("a", 60)})), Status());
  EXPECT_EQ(memory.add(binding_of({region_of("b", 20), region_of("c", 21, 7)})),
            Status(Code::kResourceExhausted, "region 'i/c' epoch 7: cannot allocate 21 bytes, 20 of 100 are left"));
  EXPECT_EQ(memory.regions().size(), 1u);
  EXPECT_EQ(memory.total_bytes(), 60u);
  ASSERT_EQ(memory.add(binding_of({region_of("b", 20), region_of("c", 20, 7)})), Status());
  EXPECT_EQ(memory.total_bytes(), 100u);
  ASSERT_EQ(memory.add(binding_of({region_of("none", 0)})), Status());
  EXPECT_EQ(memory.add(binding_of({region_of("d", 1)})).code(), Code::kResourceExhausted);
}

TEST(RegionMemory, SaysWhichRegionTheSystemHasNoMemoryFor) {
  for (const uint64_t bytes : {kLast, kLast - 4096, kLast / 2, uint64_t{1} << 62}) {
    RegionMemory memory(kLast);
    const Status status = memory.add(binding_of({region_of("small", 10), region_of("too_large", bytes, 3)}));
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    const std::string text = "region 'i/too_large' epoch 3: ";
    EXPECT_EQ(status.message().substr(0, text.size()), text);
    EXPECT_NE(status.message().find(std::to_string(bytes) + " bytes"), std::string::npos) << status.message();
    EXPECT_TRUE(memory.regions().empty());
  }
}

TEST(RegionMemory, SizesThatWrapTogetherAreTooLarge) {
  RegionMemory memory(kLast);
  ASSERT_EQ(memory.add(binding_of({region_of("a", 10)})), Status());
  EXPECT_EQ(memory.add(binding_of({region_of("b", kLast - 5)})),
            Status(Code::kResourceExhausted,
                   "region 'i/b' epoch 0: cannot allocate 18446744073709551610 bytes, "
                   "18446744073709551605 of 18446744073709551615 are left"));
}

TEST(RegionMemory, HasNoMoreThanIsAvailableUnlessToldSo) {
  const uint64_t available = available_memory_bytes();
  ASSERT_GT(available, 0u);
  RegionMemory memory;
  // Twice what is there, so that what others take or give back meanwhile does not matter.
  EXPECT_EQ(memory.add(binding_of({region_of("a", std::min(available, kLast / 2) * 2)})).code(),
            Code::kResourceExhausted);
}

TEST(RegionMemory, ARegionMayHaveNoBytes) {
  RegionMemory memory(0);
  ASSERT_EQ(memory.add(binding_of({region_of("none", 0, 1)})), Status());
  ASSERT_EQ(memory.add(binding_of({region_of("none", 0, 1)})), Status());
  EXPECT_EQ(memory.regions().size(), 1u);
  EXPECT_TRUE(memory.find(key_of("none", 1)).empty());
  EXPECT_EQ(memory.add(binding_of({region_of("none", 0, 2)})).code(), Code::kInvalidArgument);
  MemoryRegistry registry;
  ASSERT_EQ(memory.register_in(registry), Status());
  ASSERT_TRUE(registry.access(key_of("none", 1)).ok());
  EXPECT_TRUE(registry.access(key_of("none", 1)).value().bytes().empty());
}

TEST(RegionMemory, KeepsItsBytesWhenMoved) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8)})), Status());
  const std::span<std::byte> bytes = memory.find(key_of("a"));
  bytes[7] = std::byte{3};
  const RegionMemory moved = std::move(memory);
  EXPECT_EQ(moved.find(key_of("a")).data(), bytes.data());
  EXPECT_EQ(moved.find(key_of("a"))[7], std::byte{3});
}

TEST(RegionMemory, RegistersEveryRegionUnderItsKey) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8, 1), region_of("b", 4, 2, 64)})), Status());
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8, 9)}, "j")), Status());
  MemoryRegistry registry;
  ASSERT_EQ(memory.register_in(registry), Status());
  EXPECT_EQ(registry.size(), 3u);
  for (const auto& [key, mapping] : memory.regions()) {
    const Result<MemoryRegistry::Access> access = registry.access(key);
    ASSERT_TRUE(access.ok());
    EXPECT_EQ(access.value().bytes().data(), memory.find(key).data());
    EXPECT_EQ(access.value().bytes().size(), memory.find(key).size());
  }
}

TEST(RegionMemory, RegistersNothingWhenOneKeyIsTaken) {
  RegionMemory memory;
  ASSERT_EQ(memory.add(binding_of({region_of("a", 8), region_of("b", 4), region_of("c", 4)})), Status());
  MemoryRegistry registry;
  std::vector<std::byte> other(3);
  ASSERT_EQ(registry.add(key_of("b"), other), Status());
  EXPECT_EQ(memory.register_in(registry).code(), Code::kConflict);
  EXPECT_EQ(registry.size(), 1u);
  ASSERT_TRUE(registry.access(key_of("b")).ok());
  EXPECT_EQ(registry.access(key_of("b")).value().bytes().data(), other.data());
}

}  // namespace
}  // namespace crossdock::testing
