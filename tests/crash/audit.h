// Counts everything in the tables under a store anew: I4.
#pragma once

#include "tests/crash/crash_store.h"
#include "tests/crash/expected.h"

namespace crossdock::testing {

enum class AuditTime {
  kOpened,    // the store was just opened: leases may be held, uploads open
  kAtTheEnd,  // leases, uploads and expiries are over, and were collected
};

// Checks that the chunk table has the segments of the publications and no others, that records name only records that
// exist, and that the store's counts are right.
void audit(const OpenStore& store, AuditTime time, Findings& findings);

}  // namespace crossdock::testing
