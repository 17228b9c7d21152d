// The rules of the protocols that a build for tests can break, one at a time (executor/canary.h). A checker that never
// fails may check nothing: for each rule some checker has to report the build that breaks it.
#pragma once

namespace crossdock {

enum class Canary {
  kReleaseBeforeDrain,    // pages go back although copies are under way
  kPublishFirstFragment,  // an object is complete with its first fragment
  kCountWriters,          // as many receipts as writers are enough, from any of them
  kNoFence,               // a target's memory is not fenced off
  kSkipChecksum,          // what was sent is not compared with what has come
  kIgnoreGeneration,      // messages of an earlier generation count
};

}  // namespace crossdock
