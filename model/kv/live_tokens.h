// Which tokens of a sequence a layer still needs.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/range.h"

namespace crossdock {

// A rule for an interval of tokens [0, n) whose next token is n:
//   all       each of the n
//   window W  the last W. Sliding attention over W+1 tokens, the next one among them, needs W before it
//   chunk C   those from the last multiple of C up to n: none when n is a multiple. Attention within chunks of C tokens
struct LiveTokens {
  enum class Kind : uint8_t { kAll, kWindow, kChunk };
  Kind kind = Kind::kAll;
  uint64_t tokens = 0;  // W or C, at least 1; 0 for all

  static constexpr LiveTokens all() { return {}; }
  static constexpr LiveTokens window(uint64_t tokens) { return {Kind::kWindow, tokens}; }
  static constexpr LiveTokens chunk(uint64_t tokens) { return {Kind::kChunk, tokens}; }

  // Of the interval; empty where none lives.
  Range of(Range interval) const;
  // Whether, at every length, all tokens that live by `other` live by this rule too.
  bool covers(const LiveTokens& other) const;
  // "all tokens", "the last 127 tokens", "tokens from the last multiple of 8,192 on"
  std::string to_text() const;

  friend auto operator<=>(const LiveTokens&, const LiveTokens&) = default;
};

}  // namespace crossdock
