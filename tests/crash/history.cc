#include "tests/crash/history.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace crossdock::testing {
namespace {

constexpr size_t kEventsShown = 30;
// Those that every opening of a store passes come first.
constexpr std::array<std::string_view, 6> kRecoveryPoints = {"recovery-begin",   "recovery-aborted",
                                                             "recovery-dropped", "gc-orphans-dropped",
                                                             "abort-recorded",   "drop-after-data"};
constexpr size_t kAlwaysPassed = 4;

}  // namespace

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string replay_line() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string line = fmt::format("replay: CROSSDOCK_CRASH_SEED={}", crash_seed());
  if (const uint64_t kills = number_from_environment("CROSSDOCK_CRASH_KILLS", 0); kills != 0)
    line += fmt::format(" CROSSDOCK_CRASH_KILLS={}", kills);
  return line + fmt::format(" crash_tests --gtest_filter={}.{}", test.test_suite_name(), test.name());
}

TemporaryDirectory::TemporaryDirectory() : path_(::testing::TempDir() + "crossdock_crash_XXXXXX") {
  CHECK(::mkdtemp(path_.data()) != nullptr);
  path_ = std::filesystem::canonical(path_).string();
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

History::History(uint64_t seed, rocksdb::Env* env) : seed_(seed), expected_(seed) {
  tables_.directory = directory_.path() + "/store";
  tables_.env = env;
  EXPECT_EQ(create_store(tables_), Status());
}

ChildEnd History::run_child(const ChildRun& run) {
  std::vector<std::string> arguments = {"work", tables_.directory};
  for (const uint64_t number : {seed_, uint64_t{run_}, uint64_t{run.thread_count}, uint64_t{run.step_count}})
    arguments.push_back(fmt::format("{}", number));
  if (!run.point.empty()) {
    arguments.push_back(run.point);
    arguments.push_back(fmt::format("{}", run.passing));
  }
  ChildEnd end = Child(std::move(arguments)).end(run.kill_time);
  for (const std::string& complaint : end.complaints) ADD_FAILURE() << complaint << "\n" << replay_line();
  EXPECT_TRUE(end.was_killed() || end.exit_code == 0)
      << "signal " << end.signal << ", exit code " << end.exit_code << "\n"
      << replay_line();
  return end;
}

void History::kill_recoveries(Rng& rng) {
  for (uint64_t left = rng.below(4); left > 0; --left) {
    const size_t point = rng.below(kRecoveryPoints.size());
    const ChildEnd end =
        Child({"recover", tables_.directory, fmt::format("{}", run_), std::string(kRecoveryPoints[point]), "1"}).end();
    for (const std::string& complaint : end.complaints) ADD_FAILURE() << complaint << "\n" << replay_line();
    EXPECT_TRUE(end.was_killed() || (end.exit_code == 0 && point >= kAlwaysPassed))
        << kRecoveryPoints[point] << " was not passed: signal " << end.signal << ", exit code " << end.exit_code << "\n"
        << replay_line();
  }
}

bool History::check(const std::vector<Event>& events, const std::string& what) {
  Findings findings;
  expected_.take(events, findings);
  TimePoint now = begin_of_run(run_) + kShortIsOver;
  StoreOptions options = small_options();
  options.clock = [&now] { return now; };
  {
    const Result<OpenStore> store = open_store(tables_, options);
    if (!store.ok()) return report({"it does not open: " + store.status().message()}, events, what);
    StoreCore& core = *store.value().core;
    audit(store.value(), AuditTime::kOpened, findings);
    expected_.check(core, findings);
    now = begin_of_run(run_) + kAllIsOver;
    if (const Result<GcReport> collected = core.gc(); !collected.ok())
      findings.push_back("gc: " + collected.status().message());
    audit(store.value(), AuditTime::kAtTheEnd, findings);
    const Result<VerifyReport> verified = core.verify({});
    if (!verified.ok() || !verified.value().damaged.empty()) findings.push_back("it is damaged");
  }
  if (!std::filesystem::is_empty(tables_.directory + "/incoming")) findings.push_back("I4: incoming is not empty");
  ++run_;
  return report(findings, events, what);
}

bool History::report(const Findings& findings, const std::vector<Event>& events, const std::string& what) const {
  if (!findings.empty()) {
    std::string text = fmt::format("seed {} run {} {}:\n", seed_, run_, what);
    for (const std::string& finding : findings) text += "  " + finding + "\n";
    text += "the last events:\n";
    for (size_t i = events.size() - std::min(events.size(), kEventsShown); i < events.size(); ++i)
      text += "  " + to_text(events[i]) + "\n";
    ADD_FAILURE() << text << replay_line();
  }
  return !::testing::Test::HasFailure();
}

}  // namespace crossdock::testing
