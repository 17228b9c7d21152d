#include "cli/progress.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace crossdock::cli {
namespace {

constexpr uint64_t kGigabyte = 1'000'000'000;
constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

ProgressState state(uint64_t done, uint64_t total, std::optional<double> rate = {}) {
  return ProgressState{"copying", done, total, rate};
}

TEST(ProgressLine, TellsShareAmountRateAndTimeLeft) {
  EXPECT_EQ(progress_line(state(2'710'000'000, 10 * kGigabyte, 3.21e9), {}),
            "copying   27 %  2.71 / 10.00 GB  3.21 GB/s  ETA 0:02");
  EXPECT_EQ(progress_line(state(2'710'000'000, 10 * kGigabyte, 3.21e9), 80),
            "copying  [======>                 ]   27 %  2.71 / 10.00 GB  3.21 GB/s  ETA 0:02");
}

TEST(ProgressLine, ChoosesUnitsByTheTotalAndByTheRate) {
  EXPECT_EQ(progress_line(state(7, 999, 5), {}), "copying    0 %  7 / 999 B  5 B/s  ETA 3:18");
  EXPECT_EQ(progress_line(state(7, 1000, 1e3), {}), "copying    0 %  0.01 / 1.00 kB  1.00 kB/s  ETA 0:01");
  EXPECT_EQ(progress_line(state(500'000, 2'500'000, 4e5), {}), "copying   20 %  0.50 / 2.50 MB  400.00 kB/s  ETA 0:05");
  EXPECT_EQ(progress_line(state(kGigabyte, 2'000 * kGigabyte, 45e6), {}),
            "copying    0 %  0.00 / 2.00 TB  45.00 MB/s  ETA 12:20:22");
  EXPECT_EQ(progress_line(state(kLast / 2, kLast, 1e15), {}),
            "copying   50 %  9223.37 / 18446.74 PB  1.00 PB/s  ETA 2:33:43");
}

TEST(ProgressLine, NoNumberIsRoundedToAThousandOfItsUnit) {
  EXPECT_EQ(progress_line(state(1, 2, 999'994'000), {}), "copying   50 %  1 / 2 B  999.99 MB/s  ETA 0:00");
  EXPECT_EQ(progress_line(state(1, 2, 999'996'000), {}), "copying   50 %  1 / 2 B  1.00 GB/s  ETA 0:00");
}

TEST(ProgressLine, AHundredPercentIsAllOfIt) {
  EXPECT_EQ(progress_line(state(kGigabyte - 1, kGigabyte, 1e9), 70),
            "copying  [==============>]   99 %  1.00 / 1.00 GB  1.00 GB/s  ETA 0:00");
  EXPECT_EQ(progress_line(state(kLast - 1, kLast), {}), "copying   99 %  18446.74 / 18446.74 PB  - GB/s  ETA -:--");
  EXPECT_EQ(progress_line(state(kGigabyte, kGigabyte, 1e9), 70),
            "copying  [===============]  100 %  1.00 / 1.00 GB  1.00 GB/s  ETA 0:00");
  EXPECT_EQ(progress_line(state(0, 0), {}), "copying  100 %  0 / 0 B  - GB/s  ETA 0:00");
  EXPECT_EQ(progress_line(state(3, 2, 1), {}), "copying  100 %  3 / 2 B  1 B/s  ETA 0:00");
}

TEST(ProgressLine, SaysNoTimeThatItDoesNotKnow) {
  EXPECT_EQ(progress_line(state(0, kGigabyte), {}), "copying    0 %  0.00 / 1.00 GB  - GB/s  ETA -:--");
  EXPECT_EQ(progress_line(state(0, kGigabyte, 0), {}), "copying    0 %  0.00 / 1.00 GB  0 B/s  ETA -:--");
  EXPECT_EQ(progress_line(state(0, 99 * 3600, 1), {}), "copying    0 %  0.00 / 356.40 kB  1 B/s  ETA 99:00:00");
  EXPECT_EQ(progress_line(state(0, 99 * 3600 + 1, 1), {}), "copying    0 %  0.00 / 356.40 kB  1 B/s  ETA over 99 h");
}

TEST(ProgressLine, FitsInAnyTerminal) {
  const ProgressState half = state(kGigabyte / 2, kGigabyte, 1e9);
  const std::string plain = "copying   50 %  0.50 / 1.00 GB  1.00 GB/s  ETA 0:01";
  for (size_t columns = 0; columns <= 200; ++columns) {
    const std::string line = progress_line(half, columns);
    EXPECT_LE(line.size(), columns);
    if (columns < plain.size() + 14)
      EXPECT_EQ(line, plain.substr(0, columns));
    else
      EXPECT_EQ(line.size(), std::min(columns, plain.size() + 44));  // the bar has 10 to 40 cells
  }
}

// Progress with a clock and a terminal of its own.
struct Shown {
  explicit Shown(uint64_t total, ProgressMode mode)
      : progress(
            "copying", total, mode, [this] { return seconds; },
            [this](std::string_view text) { texts.emplace_back(text); }, [this] { return columns; }) {}

  void update(double at, uint64_t done) {
    seconds = at;
    progress.update(done);
  }

  double seconds = 1000;
  size_t columns = 60;
  std::vector<std::string> texts;
  Progress progress;  // last: writes into the others until it ends
};

TEST(Progress, RewritesTheLineOfATerminalTenTimesASecondAtMost) {
  Shown shown(4 * kGigabyte, ProgressMode::kTerminal);
  for (int i = 0; i <= 4000; ++i) shown.update(1000 + i / 1000.0, static_cast<uint64_t>(i) * 1'000'000);
  EXPECT_GE(shown.texts.size(), 35u);
  EXPECT_LE(shown.texts.size(), 40u);
  for (const std::string& text : shown.texts) {
    EXPECT_TRUE(text.starts_with("\rcopying ") && text.ends_with("\x1b[K")) << text;
    EXPECT_NE(text.find("1.00 GB/s"), std::string::npos) << text;
  }
}

TEST(Progress, LeavesTheLastColumnFree) {
  for (const size_t columns : {0u, 1u, 5u, 52u, 100u}) {
    Shown shown(kGigabyte, ProgressMode::kTerminal);
    shown.columns = columns;
    shown.update(1001, kGigabyte / 2);
    ASSERT_EQ(shown.texts.size(), 1u);
    const std::string around = "\r\x1b[K";
    EXPECT_LE(shown.texts[0].size(), around.size() + (columns == 0 ? 0 : columns - 1));
  }
}

TEST(Progress, ClearsTheLineOnceAtTheEnd) {
  std::vector<std::string> texts;
  double seconds = 0;
  {
    Progress progress(
        "copying", 10, ProgressMode::kTerminal, [&] { return seconds; },
        [&](std::string_view text) { texts.emplace_back(text); }, [] { return size_t{60}; });
    seconds = 1;
    progress.update(5);
    progress.finish();
    progress.finish();
    seconds = 2;
    progress.update(10);
  }
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[1], "\r\x1b[K");
}

TEST(Progress, ClearsNothingWhereItHasWrittenNothing) {
  Shown shown(10, ProgressMode::kTerminal);
  shown.update(1000.05, 10);
  shown.progress.finish();
  EXPECT_TRUE(shown.texts.empty());
}

TEST(Progress, WritesALineForEachTenth) {
  Shown shown(100, ProgressMode::kLines);
  for (uint64_t i = 1; i <= 100; ++i) shown.update(1000 + 0.25 * static_cast<double>(i), i);
  shown.progress.finish();
  ASSERT_EQ(shown.texts.size(), 10u);
  EXPECT_EQ(shown.texts[0], "crossdock: copying   10 %  10 / 100 B  4 B/s  ETA 0:23\n");
  EXPECT_EQ(shown.texts[9], "crossdock: copying  100 %  100 / 100 B  4 B/s  ETA 0:00\n");
}

TEST(Progress, WritesALineAfterFiveSecondsOfSlowWork) {
  Shown shown(1'000'000, ProgressMode::kLines);
  for (uint64_t i = 1; i <= 120; ++i) shown.update(1000 + 0.5 * static_cast<double>(i), i);
  EXPECT_EQ(shown.texts.size(), 12u);
}

TEST(Progress, WritesNoLinesAboutWorkThatIsDoneAtOnce) {
  Shown shown(100, ProgressMode::kLines);
  for (uint64_t i = 1; i <= 100; ++i) shown.update(1000 + 0.009 * static_cast<double>(i), i);
  shown.progress.finish();
  EXPECT_TRUE(shown.texts.empty());
}

TEST(Progress, IsQuietWhenToldSo) {
  Shown shown(100, ProgressMode::kQuiet);
  for (uint64_t i = 1; i <= 100; ++i) shown.update(1000 + static_cast<double>(i), i);
  shown.progress.finish();
  EXPECT_TRUE(shown.texts.empty());
}

TEST(Progress, TheRateIsThatOfTheLastSeconds) {
  Shown shown(1000, ProgressMode::kLines);
  for (uint64_t i = 1; i <= 40; ++i) shown.update(1000 + 0.5 * static_cast<double>(i), i);            // 2 B/s
  for (uint64_t i = 1; i <= 20; ++i) shown.update(1020 + 0.5 * static_cast<double>(i), 40 + 10 * i);  // 20 B/s
  ASSERT_FALSE(shown.texts.empty());
  EXPECT_EQ(shown.texts.back(), "crossdock: copying   20 %  0.20 / 1.00 kB  20 B/s  ETA 0:40\n");
}

TEST(Progress, WorkThatGoesBackHasNoRate) {
  Shown shown(100, ProgressMode::kLines);
  shown.update(1001, 50);
  shown.update(1010, 20);
  EXPECT_EQ(shown.texts.back(), "crossdock: copying   20 %  20 / 100 B  0 B/s  ETA -:--\n");
  shown.update(1020, 10);
  EXPECT_EQ(shown.texts.back(), "crossdock: copying   10 %  10 / 100 B  0 B/s  ETA -:--\n");
}

TEST(Progress, QuietIsStrongerThanATerminal) { EXPECT_EQ(progress_mode(true), ProgressMode::kQuiet); }

}  // namespace
}  // namespace crossdock::cli
