// Reads everything that a store of the workload holds, although files may be damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/crash/expected.h"

namespace crossdock::testing {

struct Inspection {
  uint64_t not_opened = 0;      // 1: opening the store returned an error
  uint64_t right = 0;           // snapshots and pages whose every byte is right
  uint64_t missing = 0;         // that are not found
  uint64_t errors = 0;          // that the store reported instead
  uint64_t damaged_chunks = 0;  // that verify() finds
  Findings findings;            // wrong bytes, and errors that name nothing
};

std::string to_line(const Inspection& inspection);
std::optional<Inspection> inspection_from(const std::string& line);

// Names of `thread_count` threads, after the second run.
Inspection inspect_store(const std::string& directory, uint64_t seed, uint32_t thread_count);

}  // namespace crossdock::testing
