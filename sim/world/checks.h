// Checks: counts checks and violations, by invariant (docs/invariants.md). A violation does not stop a run: it goes on,
// so that a report shows what follows from a fault.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/run_report.h"

namespace crossdock {

enum class Invariant { kI1, kI2, kI3, kI4, kI5, kI6, kI7, kI8 };
inline constexpr size_t kInvariantCount = 8;
inline constexpr size_t kViolationsKept = 100;

class Checks {
 public:
  // Counts one check. `wrong` describes the violation; empty: there is none.
  bool check(Invariant invariant, TimePoint time, std::string wrong) {
    Count& count = counts_[static_cast<size_t>(invariant)];
    ++count.checks;
    if (wrong.empty()) return true;
    ++count.violations;
    if (violations_.size() < kViolationsKept)
      violations_.push_back(Violation{name(invariant), time, std::move(wrong), event_});
    return false;
  }
  // The number of the protocol event that violations are reported with from now on.
  void set_event(uint64_t event) { event_ = event; }

  static std::string name(Invariant invariant) { return "I" + std::to_string(static_cast<size_t>(invariant) + 1); }
  std::vector<InvariantResult> results() const;
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  struct Count {
    uint64_t checks = 0;
    uint64_t violations = 0;
  };
  std::array<Count, kInvariantCount> counts_;
  std::vector<Violation> violations_;
  uint64_t event_ = 0;
};

}  // namespace crossdock
