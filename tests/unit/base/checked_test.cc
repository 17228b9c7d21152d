#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace crossdock {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kRoot = uint64_t{1} << 32;  // kRoot * kRoot is the first product that wraps
const std::vector<uint64_t> kEdges = {
    0,        1,        2,   3, 7, kRoot - 1, kRoot, kRoot + 1, kMax / 3, kMax / 2, kMax / 2 + 1, kMax / 2 + 2,
    kMax - 2, kMax - 1, kMax};

// What a 64-bit result of an exact computation is.
std::optional<uint64_t> narrowed(Wide exact) {
  if (exact > kMax) return std::nullopt;
  return static_cast<uint64_t>(exact);
}

static_assert(checked_add(1, 2) == 3 && !checked_add(kMax, 1));
static_assert(checked_sub(3, 2) == 1 && !checked_sub(2, 3));
static_assert(checked_mul(3, 2) == 6 && !checked_mul(kRoot, kRoot));

TEST(Checked, SumsDifferencesAndProductsAreExactOrEmpty) {
  for (const uint64_t a : kEdges)
    for (const uint64_t b : kEdges) {
      EXPECT_EQ(checked_add(a, b), narrowed(Wide{a} + b)) << a << " + " << b;
      EXPECT_EQ(checked_mul(a, b), narrowed(Wide{a} * b)) << a << " * " << b;
      EXPECT_EQ(checked_sub(a, b), a < b ? std::nullopt : narrowed(Wide{a} - b)) << a << " - " << b;
      EXPECT_EQ((Checked(a) + b).value(), narrowed(Wide{a} + b)) << a << " + " << b;
      EXPECT_EQ((Checked(a) * b).value(), narrowed(Wide{a} * b)) << a << " * " << b;
      EXPECT_EQ((Checked(a) - b).value(), a < b ? std::nullopt : narrowed(Wide{a} - b)) << a << " - " << b;
    }
}

TEST(Checked, SaturatingSumsAndProductsEndAtTheLargestNumber) {
  for (const uint64_t a : kEdges)
    for (const uint64_t b : kEdges) {
      EXPECT_EQ(saturating_add(a, b), narrowed(Wide{a} + b).value_or(kMax)) << a << " + " << b;
      EXPECT_EQ(saturating_mul(a, b), narrowed(Wide{a} * b).value_or(kMax)) << a << " * " << b;
    }
}

TEST(Checked, RoundingUpFindsTheNextMultiple) {
  for (uint64_t value = 0; value < 64; ++value)
    for (uint64_t unit = 1; unit < 64; ++unit) {
      uint64_t units = 0;
      while (units * unit < value) ++units;
      EXPECT_EQ(checked_round_up(value, unit), units * unit) << value << " to " << unit;
      EXPECT_EQ(div_round_up(value, unit), units) << value << " by " << unit;
    }
}

TEST(Checked, RoundingUpAtTheEndIsExactOrEmpty) {
  for (const uint64_t value : kEdges)
    for (const uint64_t unit : kEdges) {
      if (unit == 0) continue;
      const Wide units = (Wide{value} + unit - 1) / unit;
      EXPECT_EQ(checked_round_up(value, unit), narrowed(units * unit)) << value << " to " << unit;
      EXPECT_EQ(div_round_up(value, unit), narrowed(units)) << value << " by " << unit;
    }
}

TEST(Checked, AnExpressionIsExactWhenNoStepWraps) {
  EXPECT_EQ((Checked(3) * 4 + 5).value(), 17u);
  EXPECT_EQ((3 + Checked(4) * 5 - 1).value(), 22u);
  EXPECT_EQ((Checked(kRoot) * (kRoot - 1) + (kRoot - 1)).value(), kMax);
}

TEST(Checked, AStepThatWrappedIsNotUndoneByALaterOne) {
  EXPECT_EQ((Checked(kMax) + 1 - 1).value(), std::nullopt);
  EXPECT_EQ((Checked(0) - 1 + 1).value(), std::nullopt);
  EXPECT_EQ((Checked(kRoot) * kRoot * 0).value(), std::nullopt);
  EXPECT_EQ((Checked(0) * (Checked(kRoot) * kRoot)).value(), std::nullopt);
}

}  // namespace
}  // namespace crossdock
