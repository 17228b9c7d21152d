// Looks into the tables under a store, and counts everything anew: I4.
#pragma once

#include "tests/crash/crash_store.h"
#include "tests/crash/expected.h"

namespace crossdock::testing {

enum class AuditTime {
  kOpened,    // the store was just opened: leases may be held, uploads open
  kAtTheEnd,  // leases, uploads and expiries are over, and were collected
};

// Segments of the chunk table are those of publications, records name each other and nothing that is not there, and
// what the store counts is what there is.
void audit(const OpenStore& store, AuditTime time, Findings& findings);

}  // namespace crossdock::testing
