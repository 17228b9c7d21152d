// Plans of faults in tests: drawn from a seed, and as one line of text that replays them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/faults/port_faults.h"

namespace crossdock::testing {

// "seed 7: copy 3 fail-after 1, send 0 reorder 2"
std::string to_text(const PortFaultPlan& plan);
// Empty when it is no such text.
std::optional<PortFaultPlan> fault_plan_from_text(std::string_view text);

// Draws faults for the first `operation_count` operations of each kind. Half of the possible faults are off altogether
// in each plan; each operation has one of the others with probability `chance` of 1000. Never kHeld, which
// the test has to release, nor kBreak, kStall and kFlip, which no repetition heals.
PortFaultPlan draw_faults(uint64_t seed, uint64_t operation_count, uint64_t chance);

}  // namespace crossdock::testing
