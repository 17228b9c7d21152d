#include "tests/support/doc_pages.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "tests/support/paths.h"

namespace crossdock::testing {

std::string doc_page(const std::string& path) {
  const Result<std::string> text = read_file(source_path(path), 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? text.value() : std::string();
}

std::vector<std::string> code_blocks(std::string_view page, const std::string& language) {
  const std::string fence = "\n```" + language + "\n";
  std::vector<std::string> blocks;
  size_t end = 0;
  for (size_t begin = page.find(fence); begin != page.npos; begin = page.find(fence, end)) {
    begin += fence.size();
    end = page.find("\n```", begin - 1);
    EXPECT_NE(end, page.npos) << "a code block without an end";
    if (end == page.npos) return blocks;
    blocks.emplace_back(page.substr(begin, end + 1 - begin));
    end += 4;
  }
  return blocks;
}

void expect_generated(const std::string& path, const std::string& name, const std::string& generated) {
  SCOPED_TRACE(path);
  const std::string page = doc_page(path);
  const std::string begin_marker = "<!-- generated: " + name + " -->\n";
  const size_t marker = page.find(begin_marker);
  ASSERT_NE(marker, page.npos) << begin_marker;
  const size_t begin = marker + begin_marker.size();
  const size_t end = page.find("<!-- end of " + name + " -->", begin);
  ASSERT_NE(end, page.npos) << "no end of " << name;
  const std::string wanted = "\n" + generated + "\n";
  if (page.substr(begin, end - begin) == wanted) return;
  if (std::getenv("CROSSDOCK_UPDATE_DOCS") != nullptr) {
    ASSERT_TRUE(write_file(source_path(path), page.substr(0, begin) + wanted + page.substr(end)).ok());
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), wanted) << "out of date: run this test with CROSSDOCK_UPDATE_DOCS=1";
}

}  // namespace crossdock::testing
