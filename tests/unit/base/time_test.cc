#include "base/time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace crossdock {
namespace {

__extension__ using Wide = __int128;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
const std::vector<int64_t> kEdges = {kMin, kMin + 1, kMin / 2 - 1, kMin / 2, -1'000'000'000, -2,       -1,  0,
                                     1,    2,        999,          kMax / 2, kMax / 2 + 1,   kMax - 1, kMax};

int64_t clamped(Wide exact) { return static_cast<int64_t>(std::clamp<Wide>(exact, kMin, kMax)); }

TEST(Time, ASumIsExactOrTheNearestEnd) {
  for (const int64_t point : kEdges)
    for (const int64_t duration : kEdges) {
      if (point == kMax && duration < 0) continue;  // a point before never is not asked for
      EXPECT_EQ((TimePoint::from_ns(point) + Duration::from_ns(duration)).ns(), clamped(Wide{point} + duration))
          << point << " + " << duration;
    }
}

TEST(Time, ADifferenceIsExactOrTheNearestEnd) {
  for (const int64_t later : kEdges)
    for (const int64_t earlier : kEdges)
      EXPECT_EQ((TimePoint::from_ns(later) - TimePoint::from_ns(earlier)).ns(), clamped(Wide{later} - earlier))
          << later << " - " << earlier;
}

TEST(Time, NeverPlusAWaitStaysNever) {
  for (const int64_t duration : kEdges) {
    if (duration >= 0) {
      EXPECT_EQ(TimePoint::never() + Duration::from_ns(duration), TimePoint::never()) << duration;
    }
  }
}

TEST(Time, NeverIsLaterThanEveryOtherPoint) {
  for (const int64_t point : kEdges) {
    if (point != kMax) {
      EXPECT_LT(TimePoint::from_ns(point), TimePoint::never()) << point;
    }
  }
}

TEST(Time, OrderIsTheOrderOfNanoseconds) {
  for (const int64_t a : kEdges)
    for (const int64_t b : kEdges) {
      EXPECT_EQ(TimePoint::from_ns(a) < TimePoint::from_ns(b), a < b);
      EXPECT_EQ(TimePoint::from_ns(a) == TimePoint::from_ns(b), a == b);
      EXPECT_EQ(Duration::from_ns(a) < Duration::from_ns(b), a < b);
      EXPECT_EQ(Duration::from_ns(a) == Duration::from_ns(b), a == b);
    }
}

TEST(Time, StartsAtZero) {
  EXPECT_EQ(TimePoint().ns(), 0);
  EXPECT_EQ(Duration().ns(), 0);
  EXPECT_EQ(Duration::max().ns(), kMax);
}

}  // namespace
}  // namespace crossdock
