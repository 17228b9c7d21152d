// A process that works on a store is killed, at every named crash point and at random times. Afterwards every step that
// the store acknowledged holds, and steps under way happened in full or not at all (I2, I4). The next run continues on
// the same directory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/crash/history.h"

namespace crossdock::testing {
namespace {

class CrashPoint : public ::testing::TestWithParam<std::string_view> {};

TEST_P(CrashPoint, LosesNothingAndLeavesNothingBehind) {
  constexpr uint32_t kStepCount = 1000;  // enough for every point to be passed as often as this
  constexpr std::array<uint64_t, 7> kPassings = {1, 2, 3, 4, 6, 9, 13};
  History history(crash_seed() * 1000 + 17);
  Rng rng(history.seed());
  for (const uint64_t passing : kPassings) {
    History::ChildRun run;
    run.step_count = kStepCount;
    run.point = GetParam();
    run.passing = passing;
    const ChildEnd end = history.run_child(run);
    ASSERT_TRUE(end.was_killed()) << "the workload does not reach " << GetParam() << " " << passing << " times\n"
                                  << replay_line();
    history.kill_recoveries(rng);
    ASSERT_TRUE(history.check(end.events, fmt::format("killed at {} number {}", GetParam(), passing)));
  }
}

std::string name_of(const ::testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CrashPoint, ::testing::ValuesIn(kCrashPoints), name_of);

constexpr uint32_t kGroupCount = 8;

class RandomKill : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomKill, LosesNothingAndLeavesNothingBehind) {
  const uint64_t kills = number_from_environment("CROSSDOCK_CRASH_KILLS", 208) / kGroupCount;
  History history(crash_seed() * 1000 + 100 + GetParam());
  Rng rng(history.seed());
  uint64_t working = 0;
  for (uint64_t left = kills; left > 0; --left) {
    History::ChildRun run;
    run.thread_count = 1 + static_cast<uint32_t>(rng.below(kThreadsMax));
    run.step_count = 10'000;
    run.kill_time = KillTime{rng.below(60), std::chrono::microseconds(rng.below(4'000))};
    const ChildEnd end = history.run_child(run);
    ASSERT_TRUE(end.was_killed()) << replay_line();
    working += end.events.size() > 2;
    if (rng.chance(1, 4)) history.kill_recoveries(rng);
    ASSERT_TRUE(history.check(end.events, fmt::format("{} threads killed after {} steps and {} us", run.thread_count,
                                                      run.kill_time->done_count, run.kill_time->then.count())));
  }
  EXPECT_GT(working, kills / 2) << "most are killed before they begin to work\n" << replay_line();
}

INSTANTIATE_TEST_SUITE_P(Group, RandomKill, ::testing::Range(0u, kGroupCount));

TEST(CrashedStore, IsOpenInOneProcessAtATimeAndAgainWhenThatIsKilled) {
  History history(crash_seed());
  Child holder({"hold", history.tables().directory});
  ASSERT_EQ(holder.line(), "open");
  const Status status = open_store(history.tables(), small_options()).status();
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_NE(status.message().find("'" + history.tables().directory + "' is in use by another process"),
            std::string::npos)
      << status.message();
  const ChildEnd second = Child({"hold", history.tables().directory}).end();
  EXPECT_EQ(second.exit_code, 3);
  ASSERT_EQ(second.complaints.size(), 1u);
  EXPECT_NE(second.complaints[0].find("is in use by another process"), std::string::npos) << second.complaints[0];
  holder.kill();
  EXPECT_TRUE(holder.end().was_killed());
  EXPECT_EQ(open_store(history.tables(), small_options()).status(), Status());
}

// The checks can fail: a history that gets a wrong event finds it.
TEST(CrashedStore, IsNotFoundInOrderByAWrongHistory) {
  History history(crash_seed());
  History::ChildRun run;
  run.step_count = 60;
  const ChildEnd end = history.run_child(run);
  ASSERT_EQ(end.exit_code, 0);
  StoreOptions options = small_options();
  options.clock = [&] { return begin_of_run(0) + kShortIsOver; };
  const Result<OpenStore> store = open_store(history.tables(), options);
  ASSERT_EQ(store.status(), Status());
  std::map<std::string, std::vector<size_t>> changes;  // of each name: events that changed what is there
  for (size_t i = 0; i < end.events.size(); ++i) {
    const Event& event = end.events[i];
    if (!event.done || event.code != Code::kOk) continue;
    if (event.kind == StepKind::kUpload || event.kind == StepKind::kRemove) changes[event.name].push_back(i);
  }
  size_t lies = 0;
  for (const auto& [name, numbers] : changes) {
    const size_t last = numbers.back();
    const bool is_upload = end.events[last].kind == StepKind::kUpload;
    if (!is_upload && numbers.size() == 1) continue;  // only uploads under way were removed
    const Event& upload = end.events[is_upload ? last : numbers[numbers.size() - 2]];
    if (upload.kind != StepKind::kUpload || upload.expires) continue;
    std::vector<Event> wrong = end.events;
    wrong[last].kind = is_upload ? StepKind::kAbort : StepKind::kCollect;
    Expected expected(history.seed());
    Findings findings;
    expected.take(wrong, findings);
    findings.clear();
    expected.check(*store.value().core, findings);
    EXPECT_FALSE(findings.empty()) << to_text(end.events[last]) << " was denied\n" << replay_line();
    ++lies;
  }
  EXPECT_GT(lies, 0u);
}

}  // namespace
}  // namespace crossdock::testing
