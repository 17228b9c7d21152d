#include "model/kv/parallel_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace crossdock {
namespace {

std::string refusal_of(std::string_view text) {
  const Result<ParallelSpec> spec = parse_parallel_spec(text);
  EXPECT_FALSE(spec.ok()) << text;
  if (spec.ok()) return "";
  EXPECT_EQ(spec.status().code(), Code::kInvalidArgument);
  return spec.status().message();
}

ParallelSpec parsed(std::string_view text) {
  const Result<ParallelSpec> spec = parse_parallel_spec(text);
  EXPECT_TRUE(spec.ok()) << text << ": " << spec.status().message();
  return spec.ok() ? spec.value() : ParallelSpec{0, 0, 0, 0};
}

TEST(ParallelSpec, CountsParticipantsWithoutWrapping) {
  EXPECT_EQ(parsed("dp2pp3tp4cp5").participant_count(), 120u);
  EXPECT_EQ(parsed("dp131072pp131072tp131072cp131072").participant_count(), UINT64_MAX);
}

TEST(ParallelSpec, AnAxisThatIsNotNamedHasSizeOne) {
  EXPECT_EQ(parsed("tp8"), (ParallelSpec{.dp = 1, .pp = 1, .tp = 8, .cp = 1}));
  EXPECT_EQ(parsed("tp4pp2"), (ParallelSpec{.dp = 1, .pp = 2, .tp = 4, .cp = 1}));
  EXPECT_EQ(parsed("dp2-tp4-cp2"), (ParallelSpec{.dp = 2, .pp = 1, .tp = 4, .cp = 2}));
  EXPECT_EQ(parsed("TP4xPP2"), (ParallelSpec{.dp = 1, .pp = 2, .tp = 4, .cp = 1}));
  EXPECT_EQ(parsed("cp1"), ParallelSpec());
}

TEST(ParallelSpec, EveryOrderOfAxesAndEverySeparatorMeansTheSame) {
  std::array<const char*, 4> axes = {"cp5", "dp2", "pp3", "tp4"};
  size_t order_count = 0;
  do {
    ++order_count;
    for (const char* separator : {"", "x", "X", "-", "_"}) {
      std::string text;
      for (const char* axis : axes) text += (text.empty() ? "" : separator) + std::string(axis);
      EXPECT_EQ(parsed(text), (ParallelSpec{.dp = 2, .pp = 3, .tp = 4, .cp = 5})) << text;
    }
  } while (
      std::next_permutation(axes.begin(), axes.end(), [](const char* a, const char* b) { return std::string(a) < b; }));
  EXPECT_EQ(order_count, 24u);
}

TEST(ParallelSpec, LettersMayBeOfEitherCase) {
  for (const char* text : {"tp8", "TP8", "Tp8", "tP8"}) EXPECT_EQ(parsed(text).tp, 8u);
}

TEST(ParallelSpec, SizesGoToTheirLimit) {
  EXPECT_EQ(parsed("pp131072").pp, 131072u);
  EXPECT_EQ(refusal_of("pp131073"),
            "parallel sizes 'pp131073', character 3: the size of pp is 131073, not 1 to 131072");
  EXPECT_EQ(refusal_of("tp2pp0"), "parallel sizes 'tp2pp0', character 6: the size of pp is 0, not 1 to 131072");
  EXPECT_EQ(refusal_of("tp18446744073709551617"),
            "parallel sizes 'tp18446744073709551617', character 3: the size of tp is 18446744073709551617, not 1 to "
            "131072");
}

TEST(ParallelSpec, SaysWhatIsWrongAtWhichCharacter) {
  const std::string axes = "there are dp, pp, tp and cp";
  const std::vector<std::array<std::string, 3>> cases = {
      {"", "1", "there is nothing; write for example tp4pp2"},
      {"8", "1", "'8' is no axis; " + axes},
      {"t", "1", "'t' is no axis; " + axes},
      {"ep8", "1", "'ep' is no axis; " + axes},
      {" tp8", "1", "' ' is no axis; " + axes},
      {"-tp8", "1", "'-' is no axis; " + axes},
      {"tp", "3", "tp has no size"},
      {"tppp2", "3", "tp has no size"},
      {"tp-2", "3", "tp has no size"},
      {"tp+2", "3", "tp has no size"},
      {"tp08", "3", "the size of tp begins with a zero"},
      {"tp00", "3", "the size of tp begins with a zero"},
      {"tp4pp2Tp4", "7", "tp is listed twice"},
      {"tp4x", "5", "an axis is missing at the end; " + axes},
      {"tp4--pp2", "5", "'-' is no axis; " + axes},
      {"tp4,pp2", "4", "',' is no axis; " + axes},
      {"tp4 pp2", "4", "' ' is no axis; " + axes},
      {"tp4xxpp2", "5", "'xpp' is no axis; " + axes},
      {"tp4ranks", "4", "'ranks' is no axis; " + axes},
      {"tp4.5", "4", "'.' is no axis; " + axes},
  };
  for (const auto& [text, character, what] : cases)
    EXPECT_EQ(refusal_of(text), "parallel sizes '" + text + "', character " + character + ": " + what);
}

TEST(ParallelSpec, NoTextOfFourCharactersConfusesIt) {
  // Against the grammar written out: an axis and a size of one digit, twice, or an axis and a size of two.
  const std::string letters = "tpdc018x-";
  const auto is_axis = [](const std::string& text) {
    return text == "tp" || text == "dp" || text == "pp" || text == "cp";
  };
  size_t accepted_count = 0;
  for (const char a : letters)
    for (const char b : letters)
      for (const char c : letters)
        for (const char d : letters) {
          const std::string text = {a, b, c, d};
          const bool is_right =
              is_axis(text.substr(0, 2)) && (c == '1' || c == '8') && (d == '0' || d == '1' || d == '8');
          EXPECT_EQ(parse_parallel_spec(text).ok(), is_right) << text;
          accepted_count += is_right;
        }
  EXPECT_EQ(accepted_count, 4u * 2 * 3);
}

}  // namespace
}  // namespace crossdock
