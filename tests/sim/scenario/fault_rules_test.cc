// What a fault of a scenario needs: a time or an event, a target that exists, numbers and modes within their limits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/run_child.h"

namespace crossdock::testing {
namespace {

// One upload into one store, with this fault.
std::vector<std::string> problems_with(const std::string& fault) {
  static const Scenario scenario = scenario_of(R"("stores":[{"name":"store","machine":2}],
    "works":[{"name":"save","kind":"upload","store":"store","tokens":32,"source":{"parallel":"tp2","page_tokens":4}}])");
  std::string text = write_scenario(scenario);
  text.insert(text.size() - 1, R"(,"faults":[)" + fault + "]");
  Diagnostics diagnostics("scenario");
  const std::optional<Scenario> read = read_scenario(text, no_cluster, "scenario", diagnostics);
  EXPECT_EQ(read.has_value(), diagnostics.empty());
  std::vector<std::string> lines;
  for (const Diagnostic& each : diagnostics.kept()) lines.push_back(each.to_line());
  return lines;
}

struct Case {
  const char* fault;
  std::vector<std::string> problems;  // behind "scenario faults[0] ", before " [field-choice]"
};

TEST(FaultRules, EachMissingOrWrongPartIsNamed) {
  const std::vector<Case> cases = {
      {R"({"kind":"link_off","target":"h0/nic0"})", {"link_off: either 'at_us' or 'when' says when"}},
      {R"({"kind":"link_off","target":"h0","at_us":1,"when":{"event":"post put"}})",
       {"link_off: either 'at_us' or 'when' says when"}},
      {R"({"kind":"link_off","at_us":1})", {"link_off: 'target' is missing"}},
      {R"({"kind":"link_slow","target":"h9","at_us":1})", {"link_slow: the cluster has nothing called 'h9'"}},
      {R"({"kind":"straggler","target":"h0,h7","at_us":1,"percent":10001})",
       {"straggler: 10001 percent", "straggler: the cluster has nothing called 'h7'"}},
      {R"({"kind":"partition","target":"leaf7","at_us":1})", {"partition: the cluster has nothing called 'leaf7'"}},
      {R"({"kind":"machine_off","target":"leaf0","at_us":1})",
       {"machine_off: the cluster has no machine called 'leaf0'"}},
      {R"({"kind":"store_crash","target":"other","at_us":1})", {"store_crash: there is no store 'other'"}},
      {R"({"kind":"corrupt_chunk","target":"other","at_us":1})", {"corrupt_chunk: there is no store 'other'"}},
      {R"({"kind":"disk_full","target":"other","at_us":1})", {"disk_full: there is no store 'other'"}},
      {R"({"kind":"store_crash","target":"store","at_us":1,"mode":"gc-begin"})",
       {"store_crash: mode 'gc-begin' is not one of keep lose begin-recorded put-object-written commit-before-data "
        "commit-after-data commit-published abort-recorded recovery-begin recovery-aborted recovery-dropped"}},
      {R"({"kind":"abort_request","target":"load","at_us":1})", {"abort_request: there is no work 'load'"}},
      {R"({"kind":"peer_crash","at_us":1})", {"peer_crash: 'target' is missing"}},
      {R"({"kind":"queue_depth","at_us":1})", {"queue_depth: 'target' is missing"}},
      {R"({"kind":"message_storm"})", {"message_storm: either 'at_us' or 'when' says when"}},
      {R"({"kind":"failed","at_us":5})", {"failed: 'when' says which operation; it is missing"}},
      {R"({"kind":"torn_write","when":{"event":"post put"},"percent":20000})", {"torn_write: 20000 percent"}},
  };
  for (const Case& each : cases) {
    std::vector<std::string> expected;
    for (const std::string& problem : each.problems)
      expected.push_back("scenario faults[0] " + problem + " [field-choice]");
    EXPECT_EQ(problems_with(each.fault), expected) << each.fault;
  }
}

TEST(FaultRules, PatternsAndUnusedTargetsAreNotLookedUp) {
  for (const char* fault :
       {R"({"kind":"peer_crash","target":"any *","at_us":1})", R"({"kind":"pages_evicted","target":"any *","at_us":1})",
        R"({"kind":"message_storm","target":"any","at_us":1})",
        R"({"kind":"failed","target":"any","when":{"event":"post put"}})"})
    EXPECT_TRUE(problems_with(fault).empty()) << fault;
}

}  // namespace
}  // namespace crossdock::testing
