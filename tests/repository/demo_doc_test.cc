// docs/tour.md and README.md show sections of scripts/demo by their titles; scripts/refresh-docs fills them in.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/support/doc_pages.h"

namespace crossdock::testing {
namespace {

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

std::vector<std::string> demo_titles() { return matches(doc_page("scripts/demo"), "\nsay '([^']*)'"); }

TEST(DemoDocument, TheTourShowsEachSectionOfTheDemoInItsOrder) {
  const std::vector<std::string> titles = demo_titles();
  const std::vector<std::string> shown = matches(doc_page("docs/tour.md"), "<!-- demo: (.*) -->");
  ASSERT_EQ(shown.size(), titles.size());
  for (size_t i = 0; i < titles.size(); ++i) EXPECT_TRUE(titles[i].starts_with(shown[i])) << shown[i];
}

TEST(DemoDocument, TheReadmeShowsSectionsThatTheDemoHas) {
  const std::vector<std::string> lists = matches(doc_page("README.md"), "<!-- make demo: (.*) -->");
  ASSERT_EQ(lists.size(), 1u);
  for (const std::string& prefix : matches(lists[0] + " | ", "(.*?) \\| ")) {
    bool is_found = false;
    for (const std::string& title : demo_titles()) is_found = is_found || title.starts_with(prefix);
    EXPECT_TRUE(is_found) << prefix;
  }
}

}  // namespace
}  // namespace crossdock::testing
