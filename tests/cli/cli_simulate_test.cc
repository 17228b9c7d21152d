// `crossdock simulate` and `crossdock check` as a person uses them.
#include <algorithm>

#include "tests/cli/run_program.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

const std::string kScenarios = source_path("scenarios/");

class CliSimulate : public Cli {};

TEST_F(CliSimulate, TellsVerdictInvariantsAndThatItIsAsExpected) {
  const std::string out = output_of({"simulate", kScenarios + "peer_crash_mid_transfer.json"});
  const std::vector<std::string> lines = lines_of(out);
  EXPECT_TRUE(lines.at(0).starts_with("peer_crash_mid_transfer: A writer that dies")) << out;
  EXPECT_NE(out.find("move  transfer  aborted"), std::string::npos) << out;
  EXPECT_NE(out.find("has no receipt of 'p0-t3'"), std::string::npos) << out;
  EXPECT_EQ(lines.back(), "as expected");
}

TEST_F(CliSimulate, EqualSeedsGiveEqualRunsAndOthersDoNot) {
  const std::string path = kScenarios + "lost_receipts.json";
  const auto digest = [&](const std::string& seed) {
    return json::parse(output_of({"simulate", path, "--seed", seed, "--json"})).at("digest").get<std::string>();
  };
  EXPECT_EQ(digest("3"), digest("3"));
  EXPECT_NE(digest("3"), digest("4"));
}

TEST_F(CliSimulate, AnUnexpectedVerdictIsAFailure) {
  json scenario = json::parse(read_text(kScenarios + "peer_crash_mid_transfer.json"));
  scenario["expected"]["move"] = "activated";
  fs::create_directory(work("clusters"));
  fs::copy(kScenarios + "clusters/dgx-h100.json", work("clusters"));
  write("wrong.json", scenario.dump());
  const Ended one = run({"simulate", "wrong.json"});
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_NE(one.out.find("expected: move activated\nactual:   move aborted\nNOT AS EXPECTED\n"), std::string::npos)
      << one.out;
  scenario["expected"]["move"] = "aborted";
  write("right.json", scenario.dump());
  const Ended both = run({"simulate", "wrong.json", "right.json"});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_NE(both.out.find("DIFFERENT"), std::string::npos) << both.out;
  EXPECT_EQ(lines_of(both.out).back(), "1 of 2 scenarios as expected, each run twice with equal digests");
  EXPECT_EQ(run({"simulate", "right.json", "right.json"}).exit_code, 0);
}

TEST_F(CliSimulate, WritesATraceAndAPageAndShowsASpanOfEvents) {
  const std::string path = kScenarios + "nic_flap_heals.json";
  const Ended ended = run({"simulate", path, "--trace", "trace.json", "--report", "report.html"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const json trace = json::parse(read("trace.json"));
  EXPECT_GT(trace.at("traceEvents").size(), 100u);
  const std::string page = read("report.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("nic_flap_heals"), std::string::npos);
  const std::string events = output_of({"simulate", "--scenario", path, "--seed", "1", "--trace", "op:20-30"});
  EXPECT_GT(lines_of(events).size(), 3u);
  for (const std::string& line : lines_of(events)) {
    const int number = std::stoi(line);
    EXPECT_TRUE(20 <= number && number <= 30) << line;
  }
}

TEST_F(CliSimulate, IslandsAreAsExpectedToo) {
  const std::string out = output_of({"simulate", kScenarios + "within_one_machine.json", "--islands"});
  EXPECT_EQ(lines_of(out).back(), "as expected");
}

TEST_F(CliSimulate, BadInputIsNamed) {
  EXPECT_EQ(refusal_of({"simulate"}), "crossdock: error: no scenario: give a file or a folder of scenarios\n");
  EXPECT_NE(refusal_of({"simulate", "missing.json"}).find("missing.json"), std::string::npos);
  json scenario = json::parse(read_text(kScenarios + "peer_crash_mid_transfer.json"));
  fs::create_directory(work("clusters"));
  fs::copy(kScenarios + "clusters/dgx-h100.json", work("clusters"));
  const auto refused = [&](const json& changed) {
    write("bad.json", changed.dump());
    return refusal_of({"simulate", "bad.json"});
  };
  json changed = scenario;
  changed["works"][0]["source"]["machine"] = 4;
  EXPECT_NE(refused(changed).find("work 'move' source: machine 4 of 4"), std::string::npos) << refused(changed);
  changed = scenario;
  changed["works"][0]["source"]["parallel"] = "dp131072pp131072tp131072cp131072";
  EXPECT_NE(refused(changed).find("at most 32768 can be simulated"), std::string::npos) << refused(changed);
  changed = scenario;
  changed["works"][0]["souce"] = 1;
  EXPECT_NE(refused(changed).find("works[0]: field 'souce' is unknown"), std::string::npos) << refused(changed);
  changed = scenario;
  changed["cluster"] = "nowhere";
  EXPECT_NE(refused(changed).find("there is no cluster 'nowhere'"), std::string::npos) << refused(changed);
  changed = scenario;
  changed["faults"][0]["target"] = "";
  EXPECT_NE(refused(changed).find("'target' is missing"), std::string::npos) << refused(changed);
  changed = scenario;
  changed["faults"][0] = {{"kind", "link_off"}, {"target", "h9"}, {"at_us", 1}};
  EXPECT_NE(refused(changed).find("the cluster has nothing called 'h9'"), std::string::npos) << refused(changed);
  changed["faults"][0] = {{"kind", "machine_off"}, {"target", "h0/nic0"}, {"at_us", 1}};
  EXPECT_NE(refused(changed).find("the cluster has no machine called 'h0/nic0'"), std::string::npos);
  changed = scenario;
  changed["expected"]["move"] = "fine";
  EXPECT_NE(refused(changed).find("'fine' is not one of"), std::string::npos) << refused(changed);
  EXPECT_NE(refusal_of({"simulate", kScenarios + "lost_jobs.json", "--trace", "op:9-3"}).find("op:380-412"),
            std::string::npos);
}

TEST_F(CliSimulate, CheckTellsOutcomesAndIsTheSameAgain) {
  const std::string out = output_of({"check", "--trials", "40", "--seed", "5", "--quiet", "--json"});
  const json first = json::parse(out);
  EXPECT_EQ(first.at("trials"), 40);
  EXPECT_EQ(first.at("runs"), 80);
  EXPECT_TRUE(first.at("failures").empty());
  EXPECT_EQ(out, output_of({"check", "--trials", "40", "--seed", "5", "--quiet", "--json", "--jobs", "1"}));
  EXPECT_TRUE(files().empty());
}

TEST_F(CliSimulate, CheckPrintsATrialThatSimulatePlays) {
  const Ended printed = run({"check", "--seed", "5", "--print-trial", "7"});
  EXPECT_EQ(printed.exit_code, 0);
  const std::string seed = printed.err.substr(printed.err.rfind(' ') + 1);
  write("trial.json", printed.out);
  EXPECT_EQ(run({"simulate", "trial.json", "--seed", seed.substr(0, seed.size() - 1)}).exit_code, 0);
}

TEST_F(CliSimulate, CheckRefusesUnknownKinds) {
  EXPECT_NE(refusal_of({"check", "--faults", "weather"}).find("'weather' is neither a kind of fault"),
            std::string::npos);
  EXPECT_NE(refusal_of({"check", "--only", "prayer"}).find("'prayer' is not one of"), std::string::npos);
}

}  // namespace
}  // namespace crossdock::testing
