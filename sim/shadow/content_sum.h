// What a checksum would say of content that is known without its bytes.
#pragma once

#include <cstdint>

#include "executor/copy_work.h"
#include "planner/copy/steps.h"
#include "sim/shadow/shadow_cells.h"

namespace crossdock::shadow {

// Of the cells of one end of the steps, in their order: equal for equal contents, however the steps are cut, and
// another one otherwise. Unknown content gives another number each time.
uint32_t content_sum(const StepSpan& steps, StepEnd end, ShadowCells& cells);

}  // namespace crossdock::shadow
