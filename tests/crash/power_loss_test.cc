// The machine loses power while a store works: what was not synced is lost, torn or kept. Acknowledged publications and
// removals hold nevertheless, and nothing is half visible (I2, I4).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/crash/history.h"
#include "tests/crash/workload.h"
#include "tests/support/fault_file_system.h"

namespace crossdock::testing {
namespace {

constexpr std::array<UnsyncedBytes, 3> kEndings = {UnsyncedBytes::kLost, UnsyncedBytes::kTorn, UnsyncedBytes::kKept};

struct Machine {
  explicit Machine(uint64_t seed) : history(seed, env.get()) {}

  // The next run, in this process, until the first error that the power's end brings about; then the power comes back.
  std::vector<Event> run(uint32_t step_count, UnsyncedBytes ending,
                         const std::function<void(std::string_view point)>& crash_point) {
    std::vector<Event> events;
    WorkloadOptions options;
    options.tables = history.tables();
    options.seed = history.seed();
    options.run = history.run();
    options.step_count = step_count;
    options.opens_again = true;
    options.tell = [&events](const Event& event) { events.push_back(event); };
    options.crash_point = crash_point;
    options.complain = [this](const std::string& what) {
      EXPECT_TRUE(is_off) << what << "\n" << replay_line();
      return false;
    };
    Workload(options).run();
    system->power_off();
    system->clear_faults();
    system->power_on(ending);
    is_off = false;
    return events;
  }

  std::shared_ptr<FaultFileSystem> system = std::make_shared<FaultFileSystem>();
  std::unique_ptr<rocksdb::Env> env = FaultFileSystem::env(system);
  bool is_off = false;  // or may be
  History history;
};

class PowerLossAtCrashPoint : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PowerLossAtCrashPoint, LosesNothingThatWasAcknowledged) {
  constexpr uint32_t kStepCount = 1000;
  constexpr std::array<uint64_t, 4> kPassings = {1, 2, 4, 7};
  Machine machine(crash_seed() * 1000 + 300);
  for (const uint64_t passing : kPassings)
    for (const UnsyncedBytes ending : kEndings) {
      uint64_t passed = 0;
      const std::vector<Event> events = machine.run(kStepCount, ending, [&](std::string_view point) {
        if (point != GetParam() || ++passed != passing) return;
        machine.system->power_off();
        machine.is_off = true;
      });
      ASSERT_GE(passed, passing) << "the workload does not reach " << GetParam() << " " << passing << " times\n"
                                 << replay_line();
      ASSERT_TRUE(machine.history.check(
          events, fmt::format("power lost at {} number {}, ending {}", GetParam(), passing, static_cast<int>(ending))));
    }
}

std::string crash_point_name(const ::testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PowerLossAtCrashPoint, ::testing::ValuesIn(kCrashPoints), crash_point_name);

class PowerLoss : public ::testing::TestWithParam<uint32_t> {};

// Between any two operations on files.
TEST_P(PowerLoss, AtAnyOperationLosesNothingThatWasAcknowledged) {
  constexpr uint32_t kRunCount = 20;
  Machine machine(crash_seed() * 1000 + 400 + GetParam());
  Rng rng(machine.history.seed());
  for (uint32_t run = 0; run < kRunCount; ++run) {
    const uint64_t operations = rng.below(700);
    const UnsyncedBytes ending = kEndings[rng.below(kEndings.size())];
    FaultFileSystem::Fault fault;
    fault.passing = operations;
    machine.system->add_fault(fault);
    machine.is_off = true;
    const std::vector<Event> events = machine.run(1000, ending, nullptr);
    ASSERT_TRUE(machine.history.check(
        events, fmt::format("power lost after {} operations, ending {}", operations, static_cast<int>(ending))));
  }
}

INSTANTIATE_TEST_SUITE_P(Group, PowerLoss, ::testing::Range(0u, 4u));

}  // namespace
}  // namespace crossdock::testing
