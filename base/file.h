// Whole small files: documents in, documents out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace crossdock {

// The contents of `path` ("-": standard input), refused with kResourceExhausted once it is known to pass `bytes_max`;
// never more than that is held.
Result<std::string> read_file(const std::string& path, uint64_t bytes_max);

// Writes `contents` so that `path` holds either what it held before or all of it: a temporary file beside it, synced,
// then renamed. Permissions of a file that is replaced are kept, and a symbolic link to a file is followed. A device or
// a pipe is written as it is. What goes wrong is reported, and the temporary file is removed.
Status write_file(const std::string& path, std::string_view contents);

}  // namespace crossdock
