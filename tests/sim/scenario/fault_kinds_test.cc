// What is said about the kinds of faults in several places agrees.
#include "sim/scenario/fault_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/campaign.h"
#include "sim/world/operation_faults.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

// The cells of a table's row, without blanks around them.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t begin = 1; begin < line.size();) {
    const size_t end = std::min(line.find('|', begin), line.size());
    const std::string cell = line.substr(begin, end - begin);
    const size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    begin = end + 1;
  }
  return cells;
}

// Rows of docs/simulation.md with five cells, by the kind in the first.
std::map<std::string, std::vector<std::string>> documented() {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream stream(source_path("docs/simulation.md"));
  for (std::string line; std::getline(stream, line);)
    if (const auto cells = cells_of(line); line.starts_with("| `") && cells.size() == 5) rows[cells[0]] = cells;
  return rows;
}

std::string parameters_of(const FaultKindRow& row) {
  constexpr std::array<std::pair<FaultParameter, const char*>, 5> kNames = {{{kTakesLasts, "`lasts_us`"},
                                                                             {kTakesPercent, "`percent`"},
                                                                             {kTakesDelay, "`delay_us`"},
                                                                             {kTakesCount, "`count`"},
                                                                             {kTakesMode, "`mode`"}}};
  std::string text;
  for (const auto& [parameter, name] : kNames)
    if ((row.parameters & parameter) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

TEST(FaultKinds, EachIsInTheDocumentationAsItIs) {
  constexpr std::array<const char*, 6> kTargets = {"", "links", "machine", "processes", "store", "work"};
  const auto rows = documented();
  EXPECT_EQ(rows.size(), kFaultKindCount);
  for (const FaultKindRow& row : kFaultKinds) {
    const auto found = rows.find("`" + std::string(row.name) + "`");
    ASSERT_NE(found, rows.end()) << row.name;
    EXPECT_EQ(found->second[1], fault_group_name(row.group)) << row.name;
    EXPECT_EQ(found->second[2], kTargets[static_cast<size_t>(row.target)]) << row.name;
    EXPECT_EQ(found->second[3], parameters_of(row)) << row.name;
  }
}

TEST(FaultKinds, EachIsFoundByItsNameAndByItsGroup) {
  for (const FaultKindRow& row : kFaultKinds) {
    EXPECT_EQ(fault_kinds_named(row.name), std::set<FaultKind>{row.kind});
    if (row.group == FaultGroup::kNone) continue;
    EXPECT_TRUE(fault_kinds_named(fault_group_name(row.group)).contains(row.kind)) << row.name;
  }
  EXPECT_TRUE(fault_kinds_named("").empty());
  EXPECT_TRUE(fault_kinds_named("disk").empty());
}

TEST(FaultKinds, EachOfOperationsDoesSomething) {
  for (const FaultKindRow& row : kFaultKinds) {
    FaultSpec fault;
    fault.kind = row.kind;
    fault.delay = Duration::from_ms(1);
    const std::vector<const FaultSpec*> faults = {&fault};
    EXPECT_EQ(effects_of(faults) != OperationEffects(), row.scope == FaultScope::kOperation) << row.name;
  }
}

}  // namespace
}  // namespace crossdock::testing
