// Drawing for RapidCheck properties.
#pragma once

#include <rapidcheck.h>

#include <cstdint>

namespace crossdock::testing {

// A number from `least` to `most`, both included; shrinks towards `least`. It is drawn at RapidCheck's nominal size
// throughout: at its growing sizes, the first cases would have the smallest numbers only.
inline uint64_t draw(uint64_t least, uint64_t most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint64_t>(least, most + 1));
}

}  // namespace crossdock::testing
