// Runs the fuzz targets without a fuzzer: over the corpus in the repository, which holds what once failed, and over
// damaged copies of it that are the same in every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20261129;
constexpr int kDamagedCopies = 300;

std::vector<std::string> corpus_of(const FuzzTarget& target) {
  const fs::path root = fs::path(source_path("tests/fuzz/corpus")) / target.name;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const fs::path& path : paths) texts.push_back(read_file(path.string(), 1 << 20).value());
  return texts;
}

// Replaces, removes, inserts or repeats a few bytes.
std::string damaged(std::string text, const std::vector<std::string>& corpus, Rng& rng) {
  static const std::vector<std::string> kPieces = {
      "0", "18446744073709551615", "18446744073709551616", "-1", "[]", "{}", "null", "\"\"", ",", "\xff", "[[0,1]]"};
  const uint64_t count = 1 + rng.below(4);
  for (uint64_t i = 0; i < count && !text.empty(); ++i) {
    const size_t at = rng.below(text.size());
    switch (rng.below(5)) {
      case 0: text[at] = static_cast<char>(rng.below(256)); break;
      case 1: text.erase(at, 1 + rng.below(20)); break;
      case 2: text.insert(at, kPieces[rng.below(kPieces.size())]); break;
      case 3: text.insert(at, text.substr(at, rng.below(40))); break;
      default: {
        const std::string& other = corpus[rng.below(corpus.size())];
        text.replace(at, rng.below(30), other.substr(rng.below(other.size() + 1), rng.below(30)));
      }
    }
  }
  return text;
}

class FuzzCorpus : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzCorpus, KeepsThePromises) {
  const std::vector<std::string> corpus = corpus_of(GetParam());
  ASSERT_FALSE(corpus.empty());
  Rng rng(kSeed);
  for (const std::string& text : corpus) {
    GetParam().run(text);
    for (int i = 0; i < kDamagedCopies; ++i) GetParam().run(damaged(text, corpus, rng));
  }
}

INSTANTIATE_TEST_SUITE_P(Target, FuzzCorpus, ::testing::ValuesIn(fuzz_targets()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace crossdock::testing
