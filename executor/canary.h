// Rules that a build for tests breaks one at a time, to see that the checkers notice (tests/sim/canary_test.cc). In
// every other build nothing is broken, at compile time.
#pragma once

namespace crossdock {

enum class Canary {
  kReleaseBeforeDrain,    // pages go back although copies are under way
  kPublishFirstFragment,  // an object is complete with its first fragment
  kCountWriters,          // as many receipts as writers, whoever they are from
  kNoFence,               // a target's memory is not fenced off
  kSkipChecksum,          // nobody compares what was sent with what has come
  kIgnoreGeneration,      // an earlier life's word counts
};

constexpr bool is_broken(Canary) { return false; }

}  // namespace crossdock
