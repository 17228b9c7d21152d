// Names that nobody has used before and nobody can guess: of attempts, and of the lives of processes.
#pragma once

#include <string>

namespace crossdock {

// 128 bits of the operating system's randomness, as 32 hexadecimal digits. Never in code whose result has to be
// reproducible: there the caller is given its names.
std::string random_id();

}  // namespace crossdock
