// What every CompletionQueue keeps; executor/ports.h has the rules.
#pragma once

#include "tests/conformance/conformance_test.h"

namespace crossdock::testing {

class CompletionQueueConformance : public ConformanceTest {};

}  // namespace crossdock::testing
