#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace crossdock {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%d\n", condition, file, line);
  // Not an exception: the state is unknown, and a handler would go on with it.
  std::abort();
}

}  // namespace crossdock
