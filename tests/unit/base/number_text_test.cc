#include "base/number_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace crossdock {
namespace {

TEST(Decimal, ReadsPlainNumbersUpToTheLargest) {
  EXPECT_EQ(decimal("0"), 0U);
  EXPECT_EQ(decimal("907"), 907U);
  EXPECT_EQ(decimal("18446744073709551615"), UINT64_MAX);
}

TEST(Decimal, RefusesSignsLeadingZerosSpacesAndWhatIsTooLarge) {
  for (const char* text : {"", "-1", "+1", "010", "00", " 1", "1 ", "1.0", "0x10", "1e3", "18446744073709551616"})
    EXPECT_EQ(decimal(text), std::nullopt) << text;
}

// Written out digit by digit from the end, unlike the code under test.
std::string grouped_from_the_end(uint64_t number) {
  std::string text;
  int digits = 0;
  do {
    if (digits != 0 && digits % 3 == 0) text.insert(text.begin(), ',');
    text.insert(text.begin(), static_cast<char>('0' + number % 10));
    number /= 10;
    ++digits;
  } while (number != 0);
  return text;
}

TEST(Grouped, PutsACommaBeforeEachThreeDigits) {
  EXPECT_EQ(grouped(1234567), "1,234,567");
  uint64_t number = 0;
  for (int digit = 1; digit <= 20; ++digit) {
    EXPECT_EQ(grouped(number), grouped_from_the_end(number));
    number = number * 10 + static_cast<uint64_t>(digit % 10);
  }
  EXPECT_EQ(grouped(UINT64_MAX), grouped_from_the_end(UINT64_MAX));
}

TEST(Amount, HasDecimalsOnlyWhenTheNumberIsNotWhole) {
  EXPECT_EQ(amount(0), "0");
  EXPECT_EQ(amount(20480), "20,480");
  EXPECT_EQ(amount(2.5), "2.50");
}

TEST(HumanBytes, ChangesTheUnitAtPowersOfAThousand) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.00 kB");
  EXPECT_EQ(human_bytes(1'250'000'000), "1.25 GB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "18.45 EB");
}

TEST(RateText, IsADashWhenNoTimeHasPassed) {
  EXPECT_EQ(rate_text(1000, Duration::from_s(0)), "-");
  EXPECT_EQ(rate_text(3'000'000, Duration::from_s(2)), "1.50 MB/s");
}

TEST(SecondsText, HasMilliseconds) { EXPECT_EQ(seconds_text(Duration::from_ns(1'234'000'000)), "1.234 s"); }

}  // namespace
}  // namespace crossdock
