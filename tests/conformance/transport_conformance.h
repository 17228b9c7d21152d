// What every Transport keeps; executor/ports.h has the rules.
#pragma once

#include "tests/conformance/conformance_test.h"

namespace crossdock::testing {

class TransportConformance : public ConformanceTest {
 protected:
  // Copies between two regions, which it makes.
  StepSpan copy_steps(const Region& source, const Region& target, std::vector<CopyStep> steps) {
    return steps_between({source.key}, {target.key}, std::move(steps));
  }
};

// For backends in which an access can be under way when a revoke comes, so that the revoke has to wait for it.
class HeldAccessConformance : public TransportConformance {};

}  // namespace crossdock::testing
