// Ports of this process over the tables of a store.
#pragma once

#include <functional>
#include <memory>

#include "backends/store/tables.h"
#include "tests/conformance/backend.h"

namespace crossdock::testing {

struct StoreTables {
  std::unique_ptr<RecordTable> records;
  std::unique_ptr<ChunkTable> chunks;
};

// `keeper` lives as long as the tables: whatever is to be cleaned up after them.
std::unique_ptr<Backend> make_local_backend(const BackendOptions& options, StoreTables tables,
                                            std::shared_ptr<void> keeper = nullptr);

}  // namespace crossdock::testing
