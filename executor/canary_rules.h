// The rules of the protocols that a build for tests can break, one at a time (executor/canary.h).
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

}  // namespace crossdock
