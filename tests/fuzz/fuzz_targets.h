// What the fuzzers run, one function for each kind of input. Each ends the process (CHECK) when a promise is broken:
// reading never crashes or takes memory past its limits, and reading, validating and writing reach a fixed point.
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

namespace crossdock::testing {

struct FuzzTarget {
  std::string_view name;
  void (*run)(std::string_view input);
};

// How GoogleTest names it.
inline std::ostream& operator<<(std::ostream& out, const FuzzTarget& target) { return out << target.name; }

// Sorted by name.
const std::vector<FuzzTarget>& fuzz_targets();

}  // namespace crossdock::testing
