#include "sim/world/checks.h"

namespace crossdock {
namespace {

// In the order of Invariant.
constexpr std::array<const char*, kInvariantCount> kRules = {
    "what was activated equals its source, each element written once, and nothing else was touched",
    "a look-up finds all of a publication or nothing",
    "nothing lands in memory after it was released",
    "nothing stays pinned, reserved, open or stored once leases have run out",
    "nothing is activated that is not right, and a failure names its cause",
    "each operation completes once, and each protocol ends by its deadline and drain",
    "equal seeds give equal runs",
    "links carry what the plan says, and no more than they can",
};

}  // namespace

std::vector<InvariantResult> Checks::results() const {
  std::vector<InvariantResult> results;
  for (size_t i = 0; i < kInvariantCount; ++i)
    results.push_back({name(static_cast<Invariant>(i)), kRules[i], counts_[i].checks, counts_[i].violations});
  return results;
}

}  // namespace crossdock
