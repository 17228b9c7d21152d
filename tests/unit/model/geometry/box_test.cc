#include "model/geometry/box.h"

#include <gtest/gtest.h>

#include <array>

namespace crossdock {
namespace {

TEST(Box, IsRefusedUnlessWellFormed) {
  const std::array<uint64_t, 2> begin = {0, 3};
  EXPECT_TRUE(Box::make(begin, std::array<uint64_t, 2>{0, 3}));
  EXPECT_FALSE(Box::make(begin, std::array<uint64_t, 2>{5, 2}));
  EXPECT_FALSE(Box::make(begin, std::array<uint64_t, 1>{5}));
  EXPECT_FALSE(Box::make({}, {}));
  const std::array<uint64_t, 9> nine = {};
  EXPECT_FALSE(Box::make(nine, nine));
}

TEST(Box, IntersectsAxisByAxis) {
  const Box a{Range(0, 10), Range(0, 4)};
  EXPECT_EQ(a.intersect(Box{Range(8, 20), Range(1, 2)}), (Box{Range(8, 10), Range(1, 2)}));
  EXPECT_EQ(a.intersect(Box{Range(10, 20), Range(1, 2)}), std::nullopt);
  EXPECT_TRUE(a.contains(Box{Range(1, 2), Range(0, 4)}));
  EXPECT_TRUE(a.contains(Box{Range(90, 90), Range(0, 4)})) << "nothing lies within everything";
  EXPECT_FALSE(a.contains(Box{Range(1, 2), Range(0, 5)}));
  EXPECT_EQ(a.with_axis(1, Range(2, 3)).axis(1), Range(2, 3));
}

TEST(Box, VolumeIsCheckedIn64Bits) {
  EXPECT_EQ((Box{Range(0, 10), Range(2, 4)}).volume(), 20u);
  EXPECT_EQ((Box{Range(0, 0), Range::all(), Range::all()}).volume(), 0u);
  EXPECT_EQ((Box{Range(0, uint64_t{1} << 33), Range(0, uint64_t{1} << 31)}).volume(), std::nullopt);
}

}  // namespace
}  // namespace crossdock
