// Functions in child processes.
#include "sim/run/isolated.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace crossdock::testing {
namespace {

constexpr Duration kLimit = Duration::from_s(60);

TEST(Isolated, AResultComesBackWhole) {
  std::string large(5'000'000, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31);
  const Result<std::string> result = run_isolated([&] { return large; }, kLimit);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result.value() == large);
  EXPECT_EQ(run_isolated([] { return std::string(); }, kLimit).value(), "");
}

TEST(Isolated, WhatTheChildDoesIsNotSeenByItsParent) {
  int number = 1;
  EXPECT_EQ(run_isolated(
                [&] {
                  ++number;
                  return std::to_string(number);
                },
                kLimit)
                .value(),
            "2");
  EXPECT_EQ(number, 1);
}

void expect_failure(const std::function<std::string()>& function, Duration limit, Code code, const std::string& text) {
  const Result<std::string> result = run_isolated(function, limit);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code);
  EXPECT_NE(result.status().message().find(text), std::string::npos) << result.status().message();
}

TEST(Isolated, AChildThatCrashesIsNamedByItsSignal) {
  expect_failure([]() -> std::string { raise(SIGKILL), _exit(0); }, kLimit, Code::kUnavailable,
                 "it was ended by signal 9 (Killed)");
}

TEST(Isolated, AChildThatExitsIsNamedByItsStatus) {
  expect_failure([]() -> std::string { _exit(7); }, kLimit, Code::kUnavailable,
                 "it ended with exit status 7 and without a result");
  expect_failure([]() -> std::string { _exit(0); }, kLimit, Code::kUnavailable,
                 "it ended with exit status 0 and without a result");
}

TEST(Isolated, AChildThatTakesTooLongIsKilled) {
  expect_failure(
      []() -> std::string {
        for (;;) pause();
      },
      Duration::from_ms(50), Code::kDeadline, "a child took longer than 50 ms and was killed");
}

TEST(Isolated, AChildOfAnEndedParentIsKilled) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Result<std::string> result = run_isolated(
      [] {
        (void)run_isolated(
            []() -> std::string {
              for (;;) pause();
            },
            kLimit);
        return std::string();
      },
      Duration::from_ms(100));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kDeadline);
  close(ends[1]);  // the inner child has the last one
  pollfd file{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&file, 1, 10'000), 1) << "it still runs";
  close(ends[0]);
}

TEST(Isolated, SignalsThatTheParentHandlesDoNotDisturb) {
  struct sigaction before = {};
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 1000}, {0, 1000}};
  const itimerval off = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  const Result<std::string> result = run_isolated(
      [] {
        usleep(100'000);
        return std::string(1'000'000, 'x');
      },
      kLimit);
  ASSERT_EQ(setitimer(ITIMER_REAL, &off, nullptr), 0);
  ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().size(), 1'000'000u);
}

TEST(Isolated, WhatIsPrintedIsPrintedOnce) {
  ::testing::internal::CaptureStdout();
  std::printf("parent ");
  (void)run_isolated(
      [] {
        std::printf("child ");
        return std::string();
      },
      kLimit);
  std::printf("parent again");
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "parent child parent again");
}

TEST(Isolated, ManyAreTakenInTheirOrder) {
  std::vector<uint64_t> order;
  run_many_isolated(
      50, 4, kLimit,
      [](uint64_t i) {
        usleep(static_cast<useconds_t>((i * 7919) % 5000));
        if (i == 13) raise(SIGKILL);
        return std::to_string(i * i);
      },
      [&](uint64_t i, const Result<std::string>& result) {
        order.push_back(i);
        EXPECT_EQ(result.ok(), i != 13);
        EXPECT_EQ(result.ok() ? result.value() : "", i == 13 ? "" : std::to_string(i * i));
        return true;
      });
  ASSERT_EQ(order.size(), 50u);
  for (uint64_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

TEST(Isolated, ManyStopWhenAskedTo) {
  uint64_t taken = 0;
  run_many_isolated(
      1'000'000, 2, kLimit,
      [](uint64_t i) -> std::string {
        if (i <= 5) return "done";
        for (;;) pause();
      },
      [&](uint64_t i, const Result<std::string>&) {
        ++taken;
        return i < 5;
      });
  EXPECT_EQ(taken, 6u);
}

}  // namespace
}  // namespace crossdock::testing
