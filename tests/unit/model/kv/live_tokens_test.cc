#include "model/kv/live_tokens.h"

#include <gtest/gtest.h>

#include <vector>

namespace crossdock {
namespace {

std::vector<LiveTokens> rules() {
  std::vector<LiveTokens> all = {LiveTokens::all()};
  for (uint64_t tokens = 1; tokens <= 9; ++tokens) {
    all.push_back(LiveTokens::window(tokens));
    all.push_back(LiveTokens::chunk(tokens));
  }
  return all;
}

// Whether a token before n is needed by token n.
bool lives(const LiveTokens& live, uint64_t token, uint64_t n) {
  switch (live.kind) {
    case LiveTokens::Kind::kAll: return true;
    case LiveTokens::Kind::kWindow: return n - token <= live.tokens;
    case LiveTokens::Kind::kChunk: return token / live.tokens == n / live.tokens;
  }
  return false;
}

TEST(LiveTokens, AreThoseThatTheNextTokenNeeds) {
  for (const LiveTokens& live : rules())
    for (uint64_t n = 1; n < 40; ++n)
      for (uint64_t token = 0; token < n; ++token)
        EXPECT_EQ(live.of(Range(0, n)).contains(token), lives(live, token, n))
            << live.to_text() << " " << token << " of " << n;
}

TEST(LiveTokens, OneRuleCoversAnotherWhenItDoesAtEveryLength) {
  for (const LiveTokens& a : rules())
    for (const LiveTokens& b : rules()) {
      bool covers = true;
      for (uint64_t n = 1; n < 200; ++n)
        for (uint64_t token = 0; token < n; ++token) covers = covers && (!lives(b, token, n) || lives(a, token, n));
      EXPECT_EQ(a.covers(b), covers) << a.to_text() << " and " << b.to_text();
    }
}

// Case V10: vLLM's examples for chunks of 8 tokens (v1/core/single_type_kv_cache_manager.py).
TEST(LiveTokens, ChunksBeginAtMultiplesOfTheirSize) {
  EXPECT_EQ(LiveTokens::chunk(8).of(Range(0, 13)), Range(8, 13));
  EXPECT_TRUE(LiveTokens::chunk(8).of(Range(0, 8)).empty());
  EXPECT_EQ(LiveTokens::chunk(8).of(Range(0, 7)), Range(0, 7));
  EXPECT_EQ(LiveTokens::chunk(8).of(Range(10, 13)), Range(10, 13));
  EXPECT_EQ(LiveTokens::window(127).of(Range(0, 2047)), Range(1920, 2047));
}

}  // namespace
}  // namespace crossdock
