// Runs a function in a child process of its own, as SimGrid needs it: one engine for each process.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace crossdock {

// What the function returned in a forked child. kUnavailable, naming the signal or exit status, when it crashed;
// kDeadline when it took longer than `limit` (it is killed then). Children inherit no open work of the parent: they end
// by _exit. Interrupted by a signal, the child is killed too.
Result<std::string> run_isolated(const std::function<std::string()>& function, Duration limit);

// Runs function(i) for 0 <= i < count, each in a child, up to `worker_count` of them at a time; calls `take(i, result)`
// in the parent in the order of i, so that output does not depend on which child was faster. Stops early when take
// returns false.
void run_many_isolated(uint64_t count, unsigned worker_count, Duration limit_each,
                       const std::function<std::string(uint64_t)>& function,
                       const std::function<bool(uint64_t, Result<std::string>)>& take);

}  // namespace crossdock
