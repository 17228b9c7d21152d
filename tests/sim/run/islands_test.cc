// What shares nothing takes the same time alone as together.
#include "sim/run/islands.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "tests/sim/run_child.h"

namespace crossdock::testing {
namespace {

// Pairs of machines of a cluster, transfers within each pair.
Scenario pairs(uint64_t seed, uint64_t pair_count) {
  Rng rng(seed);
  Scenario scenario = scenario_of(R"("works":[{"name":"x","kind":"traffic","bytes":1,"source":{"parallel":"tp1"},
                                               "target":{"parallel":"tp1","machine":1}}])");
  scenario.works.clear();
  scenario.cluster.machine_count = static_cast<uint32_t>(2 * pair_count);
  scenario.cluster.fabric.machines_per_leaf = 2;
  for (uint64_t pair = 0; pair < pair_count; ++pair)
    for (uint64_t i = 0; i < 1 + rng.below(2); ++i) {
      WorkSpec work;
      work.name = "pair " + std::to_string(pair) + " move " + std::to_string(i);
      work.tokens = 8 * (1 + rng.below(12));
      work.at = Duration::from_ns(static_cast<int64_t>(1000 * rng.below(500)));
      work.timeout = Duration::from_s(10);
      SideSpec side;
      side.machine = static_cast<uint32_t>(2 * pair);
      side.parallel.tp = 1 + rng.below(2);
      side.page_tokens = 4;
      work.source = side;
      side.machine += 1;
      side.page_tokens = 8;
      side.parallel.tp = 1 + rng.below(2);
      work.target = side;
      work.coordinator_machine = side.machine;
      scenario.works.push_back(work);
    }
  return scenario;
}

std::map<std::string, uint64_t> times_of(const Scenario& scenario) {
  const RunSummary summary = play_alone(scenario, 1);
  EXPECT_EQ(violations_of(summary), "");
  std::map<std::string, uint64_t> times;
  for (size_t i = 0; i < scenario.works.size(); ++i) times[scenario.works[i].name] = summary.done_ns.at(i);
  return times;
}

TEST(Islands, TakeTheSameTimeAloneAsTogether) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const uint64_t pair_count = 2 + seed % 5;
    const Scenario whole = pairs(seed, pair_count);
    const std::vector<Scenario> parts = islands_of(whole);
    ASSERT_EQ(parts.size(), pair_count);
    const std::map<std::string, uint64_t> together = times_of(whole);
    size_t work_count = 0;
    for (const Scenario& part : parts)
      for (const auto& [work, done_ns] : times_of(part)) {
        ++work_count;
        // The solver sums in another order; a nanosecond is what that may cost.
        EXPECT_NEAR(static_cast<double>(done_ns), static_cast<double>(together.at(work)), 2) << work;
      }
    EXPECT_EQ(work_count, whole.works.size());
  }
}

TEST(Islands, AreOneWhereWorksShareALinkAStoreOrAnOrder) {
  Scenario scenario = pairs(3, 2);
  const size_t islands = islands_of(scenario).size();
  ASSERT_EQ(islands, 2u);
  Scenario linked = scenario;
  linked.works.back().target->machine = 1;  // into the other pair
  EXPECT_EQ(islands_of(linked).size(), 1u);
  Scenario ordered = scenario;
  ordered.works.back().after = ordered.works.front().name;
  EXPECT_EQ(islands_of(ordered).size(), 1u);
  Scenario disturbed = scenario;
  disturbed.faults.push_back(FaultSpec());
  EXPECT_EQ(islands_of(disturbed).size(), 1u);
}

}  // namespace
}  // namespace crossdock::testing
