// A part of `crossdock check` for every run of the tests: random scenarios, each played twice in processes of its own.
#include "sim/run/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/thread_count.h"
#include "tests/sim/run_child.h"

namespace crossdock::testing {
namespace {

TEST(Campaign, FindsNoViolationAndEqualSeedsGiveEqualRuns) {
  constexpr uint64_t kTrials = 1500;
  CampaignOptions options;
  options.seed = 20261130;
  std::map<std::string, uint64_t> outcomes;
  std::map<std::string, uint64_t> kinds;
  std::string first_digest;
  run_many_isolated(
      2 * kTrials, static_cast<unsigned>(thread_count_or_all(0)), Duration::from_s(60),
      [&](uint64_t i) { return play(draw_scenario(options, i / 2), ScenarioOptions{trial_seed(options, i / 2)}); },
      [&](uint64_t i, Result<std::string> said) {
        const std::string replay = "crossdock check --seed 20261130 --trials " + std::to_string(i / 2 + 1);
        const RunSummary summary = summary_of_play("trial " + std::to_string(i / 2), trial_seed(options, i / 2), said);
        EXPECT_EQ(violations_of(summary), "") << replay;
        if (i % 2 == 0) {
          first_digest = summary.digest;
          return true;
        }
        EXPECT_EQ(summary.digest, first_digest) << "I7: " << replay;
        for (const std::string& verdict : summary.verdicts) {
          ++outcomes[verdict];
          ++kinds[verdict.substr(0, verdict.find(' '))];
        }
        return !::testing::Test::HasFailure();
      });
  // Every outcome has to be met often, or it is not tested.
  for (const char* outcome : {"transfer activated", "transfer aborted", "transfer partly", "transfer quarantined",
                              "upload committed", "upload aborted", "upload unknown", "upload crashed",
                              "restore restored", "restore failed", "restore partly", "restore crashed"}) {
    const std::string kind = std::string(outcome).substr(0, std::string(outcome).find(' '));
    const double share = 100.0 * static_cast<double>(outcomes[outcome]) / static_cast<double>(kinds[kind]);
    std::printf("%-22s %5llu  %5.1f %%\n", outcome, static_cast<unsigned long long>(outcomes[outcome]), share);
    EXPECT_GE(share, 1.0) << outcome;
  }
}

TEST(Campaign, DrawsTheSameScenarioFromTheSameSeed) {
  CampaignOptions options;
  for (uint64_t trial = 0; trial < 50; ++trial) {
    const std::string text = write_scenario(draw_scenario(options, trial));
    EXPECT_EQ(text, write_scenario(draw_scenario(options, trial)));
    Diagnostics diagnostics("scenario");
    const std::optional<Scenario> read = read_scenario(text, no_cluster, "scenario", diagnostics);
    ASSERT_TRUE(read.has_value()) << diagnostics.to_status().message();
    EXPECT_EQ(write_scenario(*read), text);
  }
}

}  // namespace
}  // namespace crossdock::testing
