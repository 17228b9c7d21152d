#include "backends/memory/memory_registry.h"

#include <gtest/gtest.h>

#include <array>

namespace crossdock {
namespace {

RegionKey key_of(const char* name) { return RegionKey{InstanceId("instance"), RegionId(name), std::nullopt, 1}; }

TEST(MemoryRegistry, AnAccessThatIsAssignedOverEnds) {
  std::array<std::byte, 8> bytes = {};
  MemoryRegistry memory;
  ASSERT_EQ(memory.add(key_of("a"), bytes), Status());
  ASSERT_EQ(memory.add(key_of("b"), bytes), Status());
  MemoryRegistry::Access access = memory.access(key_of("a")).value();
  access = memory.access(key_of("b")).value();
  EXPECT_EQ(memory.revoke(key_of("a")), Status());  // would wait for ever
  access = MemoryRegistry::Access();
  EXPECT_EQ(memory.revoke(key_of("b")), Status());
}

TEST(MemoryRegistry, ARemovedKeyIsForgottenThoughAnAccessGoesOn) {
  std::array<std::byte, 8> bytes = {};
  MemoryRegistry memory;
  ASSERT_EQ(memory.add(key_of("a"), bytes), Status());
  EXPECT_EQ(memory.add(key_of("a"), bytes).code(), Code::kConflict);
  const MemoryRegistry::Access access = memory.access(key_of("a")).value();
  memory.remove(key_of("a"));
  EXPECT_EQ(memory.size(), 0u);
  EXPECT_EQ(memory.access(key_of("a")).status().code(), Code::kNotFound);
  access.bytes()[0] = std::byte{1};
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(memory.add(key_of("a"), bytes), Status());
}

}  // namespace
}  // namespace crossdock
