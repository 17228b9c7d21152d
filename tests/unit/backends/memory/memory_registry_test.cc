#include "backends/memory/memory_registry.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace crossdock {
namespace {

const InstanceId kWriter("writer");

RegionKey key_of(const char* name) { return RegionKey{InstanceId("instance"), RegionId(name), std::nullopt, 1}; }
GrantRequest request_of(const char* name) { return {GrantId(name), {{key_of(name), Range(0, 8)}}, {kWriter}}; }

TEST(MemoryRegistry, AnAccessThatIsAssignedOverEnds) {
  std::array<std::byte, 8> bytes = {};
  MemoryRegistry memory;
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(memory.add(key_of(name), bytes), Status());
    ASSERT_EQ(memory.grant(request_of(name)), Status());
  }
  const auto access_of = [&](const char* name) {
    return memory.write_access_all({key_of(name)}, GrantId(name), &kWriter).value();
  };
  std::vector<MemoryRegistry::Access> access = access_of("a");
  access.front() = std::move(access_of("b").front());
  EXPECT_EQ(memory.revoke(GrantId("a")), Status());  // would wait for ever
  access.front() = MemoryRegistry::Access();
  EXPECT_EQ(memory.revoke(GrantId("b")), Status());
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

TEST(MemoryRegistry, RevokedGrantsAreRememberedUpToALimit) {
  std::array<std::byte, 8> bytes = {};
  MemoryRegistry memory;
  ASSERT_EQ(memory.add(key_of("a"), bytes), Status());
  const auto numbered = [](int number) { return GrantId("grant " + std::to_string(number)); };
  constexpr int kCount = 70'000;
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(memory.revoke(numbered(i)), Status());
  EXPECT_EQ(memory.grant_count(), 0u);
  GrantRequest request = request_of("a");
  request.id = numbered(kCount - 1);
  EXPECT_EQ(memory.grant(request).code(), Code::kConflict);
  request.id = numbered(0);
  EXPECT_EQ(memory.grant(request), Status()) << "forgotten";
  EXPECT_EQ(memory.grant_count(), 1u);
}

}  // namespace
}  // namespace crossdock
