#include "cli/help_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace crossdock::cli {
namespace {

// The words of a text in order, without the backslashes at the ends of lines.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;)
    if (word != "\\") words.push_back(word);
  return words;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(HelpText, WrappedTextKeepsItsWordsWithinTheColumns) {
  const std::string text = "one two three four five six seven eight nine ten eleven";
  for (size_t columns = 6; columns <= text.size() + 1; ++columns) {
    const std::string broken = wrapped(text, columns);
    EXPECT_EQ(words_of(broken), words_of(text));
    for (const std::string& line : lines_of(broken)) EXPECT_LE(line.size(), columns) << broken;
  }
  EXPECT_EQ(wrapped("aa bb cc", 5), "aa bb\ncc");
}

TEST(HelpText, AWordThatIsTooLongHasALineOfItsOwn) { EXPECT_EQ(wrapped("a bbbbbb c", 4), "a\nbbbbbb\nc"); }

TEST(HelpText, LineEndsOfTheTextStay) { EXPECT_EQ(wrapped("a b\nc\n\nd", 10), "a b\nc\n\nd"); }

TEST(HelpText, LongExamplesContinueAfterABackslash) {
  std::string command = "crossdock";
  for (int i = 100; i < 150; ++i) command += " --option-" + std::to_string(i);
  const std::string text = examples_text({command});
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_GT(lines.size(), 3u);
  EXPECT_EQ(lines.front(), "Example:");
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_LE(lines[i].size(), kHelpColumns);
    EXPECT_EQ(lines[i].ends_with(" \\"), i + 1 < lines.size()) << lines[i];
  }
  EXPECT_EQ(words_of(text.substr(lines.front().size())), words_of(command));
}

TEST(HelpText, ExamplesAreOneLineEach) { EXPECT_EQ(examples_text({"a b", "c"}), "Examples:\n  a b\n  c"); }

}  // namespace
}  // namespace crossdock::cli
