// Retry: how often, and how long to wait in between. Waiting times come from a deterministic generator.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"

namespace crossdock {

struct RetryOptions {
  uint32_t attempt_count_max = 12;  // the first one included; their waits last 1.5 to 3 s in all
  Duration backoff_first = Duration::from_ms(1);
  Duration backoff_max = Duration::from_ms(1000);
};

// Whether the same call may succeed later.
// R4 allows repeating a control operation whose outcome is unknown; the answer to the repetition says how it ended.
inline bool may_pass(Code code) {
  return code == Code::kUnavailable || code == Code::kResourceExhausted || code == Code::kOutcomeUnknown;
}

// Whether cleaning up (a revoke, a release) is given up after this failure. Pages that are not given back are lost, so
// every other failure is tried again for as long as the drain lasts.
inline bool ends_cleanup(Code code) {
  return code == Code::kInvalidArgument || code == Code::kNotFound || code == Code::kConflict;
}

// The wait before attempt `attempt` (1: the second one): doubled each time, up to the largest, of which a random half
// is left out so that those who failed together do not come again together.
inline Duration backoff(const RetryOptions& options, uint32_t attempt, Rng& rng) {
  const int64_t most = std::max<int64_t>(options.backoff_max.ns(), 1);
  int64_t wait = std::max<int64_t>(options.backoff_first.ns(), 1);
  for (uint32_t i = 1; i < attempt && wait < most; ++i) wait = wait > most / 2 ? most : wait * 2;
  wait = std::min(wait, most);
  return Duration::from_ns(wait / 2 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(wait / 2 + 1))));
}

}  // namespace crossdock
