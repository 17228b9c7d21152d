// The name of one end of a plan.
#pragma once

#include "base/strong_id.h"

namespace crossdock {

// A participant of a placement, the key of a part of a store layout, or "store" for all that a store manifest holds.
using PlanEnd = StrongName<struct PlanEndTag>;

}  // namespace crossdock
