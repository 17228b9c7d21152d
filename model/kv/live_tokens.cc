#include "model/kv/live_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"

namespace crossdock {

Range LiveTokens::of(Range interval) const {
  if (interval.empty() || kind == Kind::kAll) return interval;
  const uint64_t end = interval.end();
  // A chunk begins at a multiple of its size whatever the interval begins with: positions count from the sequence's own
  // begin.
  const uint64_t first = kind == Kind::kChunk ? end - end % tokens : end - std::min(end, tokens);
  return Range(std::max(interval.begin(), first), end);
}

bool LiveTokens::covers(const LiveTokens& other) const {
  if (kind == Kind::kAll) return true;
  if (other.kind == Kind::kAll) return false;
  if (kind == Kind::kChunk) return other.kind == Kind::kChunk && tokens % other.tokens == 0;
  // At most C - 1 tokens of a chunk live, at the length before its next multiple.
  return tokens >= (other.kind == Kind::kChunk ? other.tokens - 1 : other.tokens);
}

std::string LiveTokens::to_text() const {
  switch (kind) {
    case Kind::kAll: return "all tokens";
    case Kind::kWindow: return fmt::format("the last {} tokens", grouped(tokens));
    case Kind::kChunk: return fmt::format("tokens from the last multiple of {} on", grouped(tokens));
  }
  return {};
}

}  // namespace crossdock
