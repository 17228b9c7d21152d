// Every scenario of scenarios/ ends as it says, twice in the same way.
#include "sim/scenario/scenario_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "tests/sim/run_child.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(source_directory()) / "scenarios"))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

Scenario load(const std::string& path) {
  const Result<std::string> text = read_file(path, 1 << 26);
  EXPECT_TRUE(text.ok());
  Diagnostics diagnostics(path);
  const std::optional<Scenario> scenario = read_scenario(text.value(), clusters_beside(path), path, diagnostics);
  for (const Diagnostic& fault : diagnostics.kept()) ADD_FAILURE() << fault.to_line();
  return scenario ? *scenario : Scenario();
}

class ScenarioFileTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioFileTest, EndsAsItSays) {
  const Scenario scenario = load(GetParam());
  EXPECT_EQ(fs::path(GetParam()).stem().string(), scenario.name);
  EXPECT_TRUE(scenario.shows.ends_with(".")) << "what it shows is a sentence";
  for (const WorkSpec& work : scenario.works) EXPECT_TRUE(scenario.expected.contains(work.name)) << work.name;
  const RunSummary first = play_alone(scenario, 1);
  EXPECT_TRUE(first.as_expected) << "expected: " << first.expected << "\nactual: " << first.actual << "\n"
                                 << violations_of(first);
  EXPECT_EQ(first.error, "");
  for (const std::string& each : first.unmet) ADD_FAILURE() << "never happened: " << each;
  EXPECT_EQ(play_alone(scenario, 1).digest, first.digest) << "I7";
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioFileTest, ::testing::ValuesIn(scenario_files()),
                         [](const auto& each) { return fs::path(each.param).stem().string(); });

TEST(ScenarioFiles, AreFortyAtLeast) { EXPECT_GE(scenario_files().size(), 40u); }

}  // namespace
}  // namespace crossdock::testing
