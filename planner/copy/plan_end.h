// The name of one end of a plan.
#pragma once

#include "base/strong_id.h"

namespace crossdock {

// A participant of a placement, the key of a part of a store layout, or "store" for all that a store manifest holds.
// One type for all three, so that plans, copies and protocols need not know which kind of document a side is.
using PlanEnd = StrongName<struct PlanEndTag>;

}  // namespace crossdock
