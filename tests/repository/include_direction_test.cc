// base <- model <- planner <- executor <- backends <- sim, which simulates the store that ships; catalog uses executor;
// cli is on top. Inside of a folder, subfolders have an order too. Nothing below backends/ and sim/ includes the
// headers of a backend's library, no project header includes a header that costs seconds, and headers include no
// circle.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

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

// Of each folder with subfolders, what each of these may include beside itself; "" has the folder's own files.
struct Shelves {
  bool are_for_headers_only;
  std::map<std::string, std::set<std::string>> may_include;
};
const std::map<std::string, Shelves> kShelves = {
    // Headers only: rules of kv/ need digests of documents, which wire/ computes.
    {"model",
     {true,
      {{"", {}},
       {"geometry", {""}},
       {"kv", {"", "geometry"}},
       {"wire", {"", "geometry", "kv"}},
       {"hf", {"", "geometry", "kv", "wire"}},
       {"mooncake", {"", "geometry", "kv", "wire"}}}}},
    {"planner", {false, {{"", {}}, {"copy", {""}}, {"kv", {"", "copy"}}}}},
    {"executor", {false, {{"", {}}, {"kv", {""}}, {"recording", {"", "kv"}}}}},
    {"backends",
     {false,
      {{"memory", {}},
       {"store", {"memory"}},
       {"faults", {"memory"}},
       {"drive", {}},
       {"local", {"memory", "store", "drive"}},
       {"rocksdb", {"memory", "store"}}}}},
    {"sim",
     {false,
      {{"scenario", {}},
       {"shadow", {}},
       {"report", {}},
       {"world", {"scenario", "shadow", "report"}},
       {"run", {"scenario", "shadow", "report", "world"}}}}},
};

// Everything below the ports knows bytes only (docs/architecture.md, "The waist"). Files that know KV cache all the
// same, and why.
const std::set<std::string> kWaist = {"executor",       "backends/memory",  "backends/store",
                                      "backends/local", "backends/rocksdb", "sim/world"};
const std::set<std::string> kKnowKvCache = {
    "backends/memory/synthetic.cc",        // contents that can be checked
    "backends/memory/synthetic.h",         //
    "backends/memory/synthetic_stream.h",  //
    "backends/store/layout_registry.cc",   // the catalog of page layouts, on top of lists of documents
    "backends/store/layout_registry.h",    //
    "sim/world/sim_memory.h",              // what lies in simulated memory is followed by its views
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

// "model/kv/view.h": "model" and "kv"; "model/ids.h": "model" and "".
std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }
std::string shelf_of(const std::string& path) {
  const size_t begin = path.find('/') + 1;
  const size_t end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

// Paths from the root of the repository.
std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  const fs::path root(crossdock::source_directory());
  if (!fs::exists(root / folder)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".h" || extension == ".cc" || extension == ".inc")
      files.push_back(fs::relative(entry.path(), root).string());
  }
  return files;
}

std::vector<Include> includes_of(const std::string& file) {
  return includes_of(fs::path(crossdock::source_directory()) / file);
}

TEST(IncludeDirection, EachFolderIncludesOnlyWhatIsBelowIt) {
  size_t file_count = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const std::string& file : files_of(folder)) {
      ++file_count;
      for (const Include& include : includes_of(file)) {
        SCOPED_TRACE(file + " includes " + include.path);
        const std::string top = folder_of(include.path);
        EXPECT_TRUE(!include.quoted || allowed.contains(top));
        EXPECT_TRUE(folder == "backends" || folder == "sim" || !kOfBackends.contains(top));
        EXPECT_TRUE(!file.ends_with(".h") || !kHeavy.contains(include.path));
      }
    }
  }
  EXPECT_GT(file_count, 50u) << "the folders were not found";
}

TEST(IncludeDirection, EachSubfolderIncludesOnlyWhatIsBelowIt) {
  for (const auto& [folder, shelves] : kShelves) {
    for (const std::string& file : files_of(folder)) {
      const auto allowed = shelves.may_include.find(shelf_of(file));
      ASSERT_NE(allowed, shelves.may_include.end()) << file << " is in a subfolder that kShelves does not name";
      if (shelves.are_for_headers_only && !file.ends_with(".h")) continue;
      for (const Include& include : includes_of(file)) {
        if (!include.quoted || folder_of(include.path) != folder) continue;
        const std::string shelf = shelf_of(include.path);
        EXPECT_TRUE(shelf == allowed->first || allowed->second.contains(shelf)) << file << " includes " << include.path;
      }
    }
  }
}

// Depth first; `path` are the headers on the way to this one.
void look_for_circles(const std::string& header, std::vector<std::string>& path, std::set<std::string>& seen) {
  const auto begin = std::find(path.begin(), path.end(), header);
  if (begin != path.end()) {
    std::string circle;
    for (auto each = begin; each != path.end(); ++each) circle += *each + " -> ";
    ADD_FAILURE() << circle << header;
    return;
  }
  if (!seen.insert(header).second) return;
  path.push_back(header);
  for (const Include& include : includes_of(header))
    if (include.quoted && include.path.ends_with(".h")) look_for_circles(include.path, path, seen);
  path.pop_back();
}

TEST(IncludeDirection, HeadersIncludeNoCircle) {
  std::set<std::string> seen;
  std::vector<std::string> path;
  for (const auto& [folder, allowed] : kMayInclude)
    for (const std::string& file : files_of(folder))
      if (file.ends_with(".h")) look_for_circles(file, path, seen);
  EXPECT_GT(seen.size(), 50u) << "the folders were not found";
}

TEST(IncludeDirection, BelowThePortsNothingKnowsWhatBytesMean) {
  size_t file_count = 0;
  for (const std::string folder : {"executor", "backends", "sim"})
    for (const std::string& file : files_of(folder)) {
      if (!kWaist.contains(file.substr(0, file.rfind('/'))) || kKnowKvCache.contains(file)) continue;
      ++file_count;
      for (const Include& include : includes_of(fs::path(crossdock::source_directory()) / file))
        EXPECT_FALSE(include.path.starts_with("model/kv/") || include.path.starts_with("planner/kv/") ||
                     include.path.starts_with("executor/kv/"))
            << file << " includes " << include.path;
    }
  EXPECT_GT(file_count, 80u) << "the folders were not found";
}

}  // namespace
