#include "base/strong_id.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace crossdock {
namespace {

using Fruit = StrongName<struct FruitTag>;
using Colour = StrongName<struct ColourTag>;
using Shelf = StrongNumber<struct ShelfTag>;
using Price = StrongNumber<struct PriceTag>;

// "Orange" the fruit is not "Orange" the colour, and neither is just text.
static_assert(!std::is_convertible_v<Fruit, Colour> && !std::is_constructible_v<Fruit, Colour>);
static_assert(!std::is_convertible_v<std::string, Fruit> && !std::is_convertible_v<Fruit, std::string>);
static_assert(!std::is_convertible_v<Shelf, Price> && !std::is_constructible_v<Shelf, Price>);
static_assert(!std::is_convertible_v<uint64_t, Shelf> && !std::is_convertible_v<Shelf, uint64_t>);
static_assert(Shelf(3).value() == 3 && Shelf(3) < Shelf(4) && Shelf() == Shelf(0));

TEST(StrongName, HoldsItsText) {
  EXPECT_EQ(Fruit("apple").text(), "apple");
  EXPECT_FALSE(Fruit("apple").empty());
  EXPECT_TRUE(Fruit().empty());
  EXPECT_EQ(Fruit(), Fruit(""));
  EXPECT_EQ(Fruit(std::string("a\0b", 3)).text().size(), 3u);
}

TEST(StrongName, IsOrderedByUnsignedBytes) {
  const std::vector<std::string> ascending = {
      "", std::string(1, '\0'), "0", "10", "9", "A", "a", "aa", "b", "\x7f", "\x80", "\xc3\xa9", "\xff"};
  for (size_t i = 0; i < ascending.size(); ++i)
    for (size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(Fruit(ascending[i]) < Fruit(ascending[j]), i < j) << i << " " << j;
      EXPECT_EQ(Fruit(ascending[i]) == Fruit(ascending[j]), i == j) << i << " " << j;
    }
}

TEST(StrongNumber, IsOrderedByItsValue) {
  const std::vector<uint64_t> ascending = {0, 1, 2, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()};
  for (size_t i = 0; i < ascending.size(); ++i)
    for (size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(Shelf(ascending[i]) < Shelf(ascending[j]), i < j) << i << " " << j;
      EXPECT_EQ(Shelf(ascending[i]) == Shelf(ascending[j]), i == j) << i << " " << j;
    }
}

TEST(StrongIds, AreKeysOfHashedContainers) {
  const std::unordered_set<Fruit> fruits = {Fruit("apple"), Fruit("pear"), Fruit("apple")};
  EXPECT_EQ(fruits.size(), 2u);
  EXPECT_TRUE(fruits.contains(Fruit("pear")));
  EXPECT_FALSE(fruits.contains(Fruit("plum")));

  const std::unordered_set<Shelf> shelves = {Shelf(1), Shelf(2), Shelf(1)};
  EXPECT_EQ(shelves.size(), 2u);
  EXPECT_TRUE(shelves.contains(Shelf(2)));
  EXPECT_FALSE(shelves.contains(Shelf(3)));
}

}  // namespace
}  // namespace crossdock
