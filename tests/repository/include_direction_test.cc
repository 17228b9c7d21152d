// base <- model <- planner <- executor <- backends <- sim, which simulates the store that ships; catalog uses executor;
// cli is on top. Nothing below backends/ and sim/ includes the headers of a backend's library, and no project header
// includes a header that costs seconds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {"base"}},
    {"model", {"base", "model"}},
    {"planner", {"base", "model", "planner"}},
    {"executor", {"base", "model", "planner", "executor"}},
    {"backends", {"base", "model", "planner", "executor", "backends"}},
    {"sim", {"base", "model", "planner", "executor", "backends", "sim"}},
    {"catalog", {"base", "model", "planner", "executor", "catalog"}},
    {"cli", {"base", "model", "planner", "executor", "backends", "sim", "catalog", "cli"}},
};

const std::set<std::string> kOfBackends = {"simgrid", "infiniband", "rdma", "cuda", "rocksdb"};
const std::set<std::string> kHeavy = {"nlohmann/json.hpp", "CLI/CLI.hpp", "spdlog/spdlog.h"};

// What follows #include, and whether it stood in quotes.
struct Include {
  std::string path;
  bool quoted;
};

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> includes;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("#include ")) continue;
    const size_t begin = line.find_first_of("<\"");
    const size_t end = line.find_first_of(">\"", begin + 1);
    includes.push_back(Include{line.substr(begin + 1, end - begin - 1), line[begin] == '"'});
  }
  return includes;
}

TEST(IncludeDirection, EachFolderIncludesOnlyWhatIsBelowIt) {
  size_t file_count = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    const fs::path root = fs::path(crossdock::source_directory()) / folder;
    if (!fs::exists(root)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".inc") continue;
      ++file_count;
      for (const Include& include : includes_of(entry.path())) {
        SCOPED_TRACE(entry.path().string() + " includes " + include.path);
        const std::string top = include.path.substr(0, include.path.find('/'));
        EXPECT_TRUE(!include.quoted || allowed.contains(top));
        EXPECT_TRUE(folder == "backends" || folder == "sim" || !kOfBackends.contains(top));
        EXPECT_TRUE(extension != ".h" || !kHeavy.contains(include.path));
      }
    }
  }
  EXPECT_GT(file_count, 50u) << "the folders were not found";
}

}  // namespace
