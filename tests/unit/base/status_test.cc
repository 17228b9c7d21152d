#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace crossdock {
namespace {

const Status kOdd(Code::kInvalidArgument, "odd");

Result<int> half(int number) {
  if (number % 2 != 0) return kOdd;
  return number / 2;
}

Result<int> eighth(int number, int& halvings) {
  TRY(const int first, half(number));
  ++halvings;
  TRY(const int second, half(first));
  ++halvings;
  TRY(int third, half(second));
  ++halvings;
  return third;
}

Status require_even(int number) { return number % 2 == 0 ? Status() : kOdd; }

Status require_all_even(const std::vector<int>& numbers, int& accepted) {
  for (const int number : numbers) {
    TRY_STATUS(require_even(number));
    ++accepted;
  }
  return Status();
}

TEST(Try, GoesOnUntilTheFirstFailureAndReturnsIt) {
  for (int number = 1; number <= 64; ++number) {
    int halvings_expected = 0;
    for (int rest = number; halvings_expected < 3 && rest % 2 == 0; rest /= 2) ++halvings_expected;

    int halvings = 0;
    const Result<int> result = eighth(number, halvings);
    EXPECT_EQ(halvings, halvings_expected) << number;
    ASSERT_EQ(result.ok(), number % 8 == 0) << number;
    if (result.ok()) {
      EXPECT_EQ(result.value() * 8, number);
    } else {
      EXPECT_EQ(result.status(), kOdd);
    }
  }
}

TEST(Try, AssignsToAVariableThatExists) {
  const auto sum_of_halves = [](int a, int b) -> Result<int> {
    int sum = 0;
    int last = 0;
    TRY(last, half(a));
    sum += last;
    TRY(last, half(b));
    return sum + last;
  };
  EXPECT_EQ(sum_of_halves(6, 10).value(), 8);
  EXPECT_EQ(sum_of_halves(6, 9).status(), kOdd);
}

TEST(Try, TakesAnExpressionWithCommas) {
  const auto sum = [](int a, int b) -> Result<std::pair<int, int>> { return std::pair<int, int>(a, b); };
  const auto first = [&]() -> Result<int> {
    TRY(const auto both, sum(3, 4));
    return both.first;
  };
  EXPECT_EQ(first().value(), 3);
}

TEST(Try, MovesTheValueOut) {
  const auto make = [](int number) -> Result<std::unique_ptr<int>> { return std::make_unique<int>(number); };
  const auto pass_on = [&]() -> Result<std::unique_ptr<int>> {
    TRY(std::unique_ptr<int> box, make(7));
    ++*box;
    return box;
  };
  EXPECT_EQ(*pass_on().value(), 8);
}

TEST(TryStatus, GoesOnUntilTheFirstFailureAndReturnsIt) {
  int accepted = 0;
  EXPECT_TRUE(require_all_even({2, 4, 6}, accepted).ok());
  EXPECT_EQ(accepted, 3);

  accepted = 0;
  EXPECT_EQ(require_all_even({2, 3, 5}, accepted), kOdd);
  EXPECT_EQ(accepted, 1);
}

TEST(TryStatus, FailsAFunctionThatReturnsAResult) {
  const auto checked = [](int number) -> Result<int> {
    TRY_STATUS(require_even(number));
    return number;
  };
  EXPECT_EQ(checked(4).value(), 4);
  EXPECT_EQ(checked(5).status(), kOdd);
}

TEST(TryStatus, IsOneStatement) {
  const auto checked_if = [](bool wanted) -> Status {
    if (wanted)
      TRY_STATUS(require_even(1));
    else
      return Status(Code::kNotFound, "not asked");
    return Status();
  };
  EXPECT_EQ(checked_if(true), kOdd);
  EXPECT_EQ(checked_if(false).code(), Code::kNotFound);
}

TEST(Status, IsOkUnlessToldOtherwise) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
}

TEST(Status, CarriesCodeAndMessage) {
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kResourceExhausted, Code::kIo}) {
    const Status status(code, "why");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), "why");
    EXPECT_NE(status, Status());
    EXPECT_EQ(status, Status(code, "why"));
    EXPECT_NE(status, Status(code, "why not"));
  }
}

TEST(Status, EveryCodeHasAName) {
  EXPECT_EQ(code_name(Code::kOk), "ok");
  EXPECT_EQ(code_name(Code::kInvalidArgument), "invalid argument");
  EXPECT_EQ(code_name(Code::kNotFound), "not found");
  EXPECT_EQ(code_name(Code::kResourceExhausted), "resource exhausted");
  EXPECT_EQ(code_name(Code::kIo), "input/output error");
}

TEST(Result, HoldsAValueThatCanBeReadChangedAndMovedOut) {
  Result<std::string> result = std::string("value");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.status(), Status());
  result.value() += "s";
  EXPECT_EQ(std::as_const(result).value(), "values");
  const std::string moved = std::move(result).value();
  EXPECT_EQ(moved, "values");
}

TEST(Result, HoldsTheReasonWhyThereIsNoValue) {
  const Result<std::string> result = Status(Code::kIo, "gone");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status(), Status(Code::kIo, "gone"));
}

TEST(StatusDeathTest, AFailureWithoutAFailureCodeDies) {
  EXPECT_DEATH(static_cast<void>(Status(Code::kOk, "fine")), "CHECK failed: code != Code::kOk at .*status.h:[0-9]+");
}

TEST(StatusDeathTest, TheNameOfAnUnknownCodeDies) {
  EXPECT_DEATH(static_cast<void>(code_name(static_cast<Code>(99))), "CHECK failed: a known status code at ");
}

TEST(ResultDeathTest, ReadingAFailedResultDies) {
  Result<int> failed = kOdd;
  EXPECT_DEATH(static_cast<void>(failed.value()), "CHECK failed: ok\\(\\) at .*status.h:[0-9]+");
  EXPECT_DEATH(static_cast<void>(std::as_const(failed).value()), "CHECK failed: ok\\(\\) at ");
  EXPECT_DEATH(static_cast<void>(std::move(failed).value()), "CHECK failed: ok\\(\\) at ");
}

TEST(ResultDeathTest, MakingAResultOfAnOkStatusDies) {
  EXPECT_DEATH(static_cast<void>(Result<int>(Status())), "CHECK failed: .*ok\\(\\) at ");
}

TEST(Check, EvaluatesItsConditionOnceAndGoesOn) {
  int evaluations = 0;
  CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

TEST(CheckDeathTest, PrintsTheConditionAndItsPlace) {
  const int answer = 41;
  EXPECT_DEATH(CHECK(answer == 42), "CHECK failed: answer == 42 at .*status_test.cc:[0-9]+");
}

}  // namespace
}  // namespace crossdock
