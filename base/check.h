// CHECK: states a promise of our own code. It stays on in every build; a bug is not an error, so it ends the process.
#pragma once

namespace crossdock {

// Prints "CHECK failed: <condition> at <file>:<line>" to standard error and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace crossdock

#define CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::crossdock::check_failed(#condition, __FILE__, __LINE__))
