// Each rule of the protocols is broken once on purpose; the checkers have to notice, both in a scenario that is made
// for it and among random ones. A checker that sees nothing is worth nothing.
#include "executor/canary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "sim/run/campaign.h"
#include "tests/sim/run_child.h"

namespace crossdock::testing {
namespace {

constexpr const char* kMove = R"("works":[{"name":"move","kind":"transfer","tokens":64,"timeout_us":200000,
  "drain_us":100000,"wait_us":20000,"batch_steps":4,"window_operations":2%s,
  "source":{"parallel":"tp2","page_tokens":4,"shuffle":1},
  "target":{"parallel":"tp2pp2","machine":1,"page_tokens":8,"order":"hnd","shuffle":2}}])";

std::string move_with(const std::string& more, const std::string& faults) {
  std::string text = kMove;
  text.replace(text.find("%s"), 2, more);
  return text + R"(,"faults":[)" + faults + "]";
}

// Each target gets from both sources.
std::string to_pipeline(std::string text) {
  text.replace(text.find("tp2pp2"), 6, "pp2");
  return text;
}

struct Case {
  const char* name;
  std::optional<Canary> canary;  // empty: the framework uses an epoch again
  std::string scenario;
  std::set<std::string> invariants;  // of which one has to be violated

  friend void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }
};

std::vector<Case> cases() {
  return {
      {"ReleaseBeforeDrain",
       Canary::kReleaseBeforeDrain,
       move_with("", R"({"kind":"link_slow","target":"h0/nic0","percent":1,"at_us":100},
                        {"kind":"abort_request","target":"move","at_us":2000})"),
       {"I3"}},
      {"PublishFirstFragment",
       Canary::kPublishFirstFragment,
       R"("stores":[{"name":"store","machine":2,"chunk_bytes":32}],
          "works":[{"name":"save","kind":"upload","store":"store","tokens":32,"object_page_tokens":8,
                    "whole_objects":true,"source":{"parallel":"tp2","page_tokens":4}}])",
       {"I2"}},
      {"CountWriters",
       Canary::kCountWriters,
       to_pipeline(move_with(R"(,"checksum":false)", R"({"kind":"message_doubled","count":100,
                         "when":{"peer":"move/source p0-t0","event":"post send receipt"}},
                        {"kind":"slow_operation","count":100,"delay_us":5000,
                         "when":{"peer":"move/source p0-t1","event":"post copy"}})")),
       {"I1"}},
      {"NoFence",
       Canary::kNoFence,
       move_with("", R"({"kind":"late_write","count":100,"delay_us":90000,"percent":50,
                         "when":{"peer":"move/source *","event":"post copy"}})"),
       {"I3"}},
      {"SkipChecksum",
       Canary::kSkipChecksum,
       move_with(R"(,"checksum":true)",
                 R"({"kind":"bit_flip","when":{"peer":"move/source *","event":"post copy","nth":3}})"),
       {"I1"}},
      {"IgnoreGeneration",
       Canary::kIgnoreGeneration,
       move_with("", R"({"kind":"message_delayed","delay_us":5000,"count":1,
                         "when":{"peer":"move/target p0-t0","event":"post send ready"}},
                        {"kind":"peer_restart","target":"move/target p0-t0","after_us":100,
                         "when":{"peer":"move/target p0-t0","event":"post send ready"}})"),
       {"I5", "I1"}},
      {"ReuseEpoch",
       std::nullopt,
       move_with("", R"({"kind":"peer_restart","target":"move/target p0-t0","after_us":200,
                         "when":{"peer":"move/source p0-t0","event":"post copy"}})"),
       {"I3"}},
  };
}

RunSummary play_broken(const Case& each, const Scenario& scenario, uint64_t seed) {
  ScenarioOptions options{seed, false, !each.canary.has_value()};
  return play_alone(scenario, options, [&] { broken_rule = each.canary; });
}

class CanaryTest : public ::testing::TestWithParam<Case> {};

TEST_P(CanaryTest, IsCaughtInItsScenario) {
  const Case& each = GetParam();
  const Scenario scenario = scenario_of(each.scenario);
  const RunSummary right = play_alone(scenario, 1);
  EXPECT_EQ(violations_of(right), "") << "without the broken rule";
  const RunSummary broken = play_broken(each, scenario, 1);
  EXPECT_EQ(broken.error, "");
  const bool is_caught =
      std::any_of(broken.violations.begin(), broken.violations.end(),
                  [&](const Violation& violation) { return each.invariants.contains(violation.invariant); });
  EXPECT_TRUE(is_caught) << "actual: " << broken.actual << "\n" << violations_of(broken);
}

TEST_P(CanaryTest, IsCaughtByRandomScenarios) {
  constexpr uint64_t kTrialsMax = 3000;
  const Case& each = GetParam();
  CampaignOptions options;
  options.seed = 11;
  for (uint64_t trial = 0; trial < kTrialsMax; ++trial) {
    const RunSummary summary = play_broken(each, draw_scenario(options, trial), trial_seed(options, trial));
    if (is_failure(summary)) {
      std::printf("caught at trial %llu of seed 11: %s", static_cast<unsigned long long>(trial),
                  violations_of(summary).substr(0, 200).c_str());
      return;
    }
  }
  ADD_FAILURE() << "not caught in " << kTrialsMax << " trials of seed 11";
}

INSTANTIATE_TEST_SUITE_P(Rules, CanaryTest, ::testing::ValuesIn(cases()),
                         [](const auto& each) { return std::string(each.param.name); });

// A failure is made small, and what is written of it fails in the same way.
TEST(Shrink, KeepsWhatTheFailureNeeds) {
  const Case no_fence = cases()[3];
  CampaignOptions options;
  options.seed = 11;
  options.works = {WorkKind::kTransfer};
  options.faults = {FaultKind::kLateWrite, FaultKind::kMessageDoubled, FaultKind::kLinkSlow};
  uint64_t trial = 0;
  RunSummary summary;
  for (; trial < 3000; ++trial) {
    summary = play_broken(no_fence, draw_scenario(options, trial), trial_seed(options, trial));
    if (is_failure(summary)) break;
  }
  ASSERT_TRUE(is_failure(summary));
  const std::string kind = failure_kind(summary);
  const uint64_t seed = trial_seed(options, trial);
  const Scenario whole = draw_scenario(options, trial);
  const Scenario small =
      shrink(whole, kind, 300, [&](const Scenario& scenario) { return play_broken(no_fence, scenario, seed); });
  EXPECT_LE(small.faults.size(), 1u);
  EXPECT_EQ(small.works.size(), 1u);
  EXPECT_LE(small.works[0].tokens, whole.works[0].tokens);
  Diagnostics diagnostics("scenario");
  const std::optional<Scenario> again = read_scenario(write_scenario(small), no_cluster, "scenario", diagnostics);
  ASSERT_TRUE(again.has_value()) << diagnostics.to_status().message();
  EXPECT_EQ(failure_kind(play_broken(no_fence, *again, seed)), kind);
}

}  // namespace
}  // namespace crossdock::testing
