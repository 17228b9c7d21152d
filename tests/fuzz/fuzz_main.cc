// One libFuzzer program for each target: CROSSDOCK_FUZZ_TARGET is its name.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tests/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto run = [] {
    for (const crossdock::testing::FuzzTarget& target : crossdock::testing::fuzz_targets())
      if (target.name == CROSSDOCK_FUZZ_TARGET) return target.run;
    crossdock::check_failed("a known fuzz target", __FILE__, __LINE__);
  }();
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}
