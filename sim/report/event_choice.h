// Which events of a long trace a page carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/report/trace.h"

namespace crossdock {

// Numbers of at most `count_max` events, ascending. Faults and checks come before states, those before other slices,
// the longest first; then other instants, and messages last. Equals: the earlier in the trace.
std::vector<uint32_t> choose_events(const Trace& trace, TimePoint last, size_t count_max);

}  // namespace crossdock
