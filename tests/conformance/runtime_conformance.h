// What every Runtime keeps; executor/ports.h has the rules.
#pragma once

#include <string>

#include "tests/conformance/conformance_test.h"

namespace crossdock::testing {

class RuntimeConformance : public ConformanceTest {
 protected:
  // A participant with a runtime that has pages for it; `number` tells those of a test apart.
  Participant& join_with_pages(Role role, size_t number = 0);
  static HoldId hold_of(const std::string& attempt, size_t number = 0);
  static RuntimePost call(RuntimeCall what, const HoldId& hold) { return RuntimePost{what, hold}; }
  static RuntimeCall take_of(Role role) { return role == Role::kSource ? RuntimeCall::kPin : RuntimeCall::kReserve; }
};

}  // namespace crossdock::testing
