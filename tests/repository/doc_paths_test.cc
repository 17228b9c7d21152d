// The documents name files of this tree: each file that they name exists, and so does each page that a link or a
// comment in the sources names.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = crossdock::source_directory();
const std::set<std::string> kNotOfTheTree = {".git", "build"};

// All files of the tree, as paths from its root.
const std::set<std::string>& tree_files() {
  static const std::set<std::string> files = [] {
    std::set<std::string> found;
    for (auto entry = fs::recursive_directory_iterator(kRoot); entry != fs::recursive_directory_iterator(); ++entry) {
      if (entry.depth() == 0 && kNotOfTheTree.contains(entry->path().filename())) {
        entry.disable_recursion_pending();
      } else if (entry->is_regular_file()) {
        found.insert(fs::relative(entry->path(), kRoot));
      }
    }
    return found;
  }();
  return files;
}

std::set<std::string> top_folders() {
  std::set<std::string> folders;
  for (const std::string& file : tree_files())
    if (file.find('/') != file.npos) folders.insert(file.substr(0, file.find('/')));
  return folders;
}

std::set<std::string> file_names() {
  std::set<std::string> names;
  for (const std::string& file : tree_files()) names.insert(fs::path(file).filename());
  return names;
}

std::string text_of(const std::string& file) {
  std::ifstream stream(kRoot / file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

bool ends_with_any(const std::string& file, const std::vector<std::string>& endings) {
  for (const std::string& ending : endings)
    if (file.ends_with(ending)) return true;
  return false;
}

// The first groups of all matches in one file.
std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

// Calls `check` with each Markdown file and its text; there are several.
void for_each_page(const std::function<void(const std::string&, const std::string&)>& check) {
  size_t count = 0;
  for (const std::string& file : tree_files()) {
    if (!file.ends_with(".md")) continue;
    SCOPED_TRACE(file);
    check(file, text_of(file));
    ++count;
  }
  EXPECT_GT(count, 5u) << "the documents were not found";
}

TEST(DocPaths, EachPathInBackquotesExists) {
  const std::set<std::string> folders = top_folders();
  const std::set<std::string> names = file_names();
  size_t path_count = 0;
  for_each_page([&](const std::string&, const std::string& text) {
    for (const std::string& path : matches(text, std::regex("`([A-Za-z0-9_./-]+)`"))) {
      if (path.find('/') != path.npos && folders.contains(path.substr(0, path.find('/')))) {
        EXPECT_TRUE(fs::exists(kRoot / path)) << path;
        ++path_count;
      } else if (path.find('/') == path.npos && ends_with_any(path, {".h", ".cc", ".inc"})) {
        EXPECT_TRUE(names.contains(path)) << path << " is no file's name";
        ++path_count;
      }
    }
  });
  EXPECT_GT(path_count, 50u) << "the paths were not found";
}

TEST(DocPaths, EachLinkLeadsToAFile) {
  size_t link_count = 0;
  for_each_page([&](const std::string& file, const std::string& text) {
    for (const std::string& link : matches(text, std::regex("\\]\\(([^)# ]+)[^)]*\\)"))) {
      if (link.find("://") != link.npos) continue;
      EXPECT_TRUE(fs::exists((kRoot / file).parent_path() / link)) << link;
      ++link_count;
    }
  });
  EXPECT_GT(link_count, 10u) << "the links were not found";
}

TEST(DocPaths, EachPageThatACommentNamesExists) {
  const std::regex pattern("(docs/[A-Za-z_/]+\\.md)");
  size_t page_count = 0;
  for (const std::string& file : tree_files()) {
    if (!ends_with_any(file, {".h", ".cc", ".inc", "CMakeLists.txt", "Makefile"})) continue;
    SCOPED_TRACE(file);
    const std::string text = text_of(file);
    for (size_t at = text.find("docs/"); at != text.npos; at = text.find("docs/", at + 1)) {
      std::smatch match;
      const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
      if (!std::regex_search(begin, text.end(), match, pattern, std::regex_constants::match_continuous)) continue;
      EXPECT_TRUE(fs::exists(kRoot / match[1].str())) << match[1];
      ++page_count;
    }
  }
  EXPECT_GT(page_count, 10u) << "the comments were not found";
}

}  // namespace
