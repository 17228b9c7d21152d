// The calls of the port ObjectStore as blocking functions: each is done when it returns. Thread-safe.
// backends/local/pooled_store.h makes a port of them.
#pragma once

#include "backends/memory/memory_registry.h"
#include "base/status.h"
#include "executor/store_types.h"

namespace crossdock {

class BlockingStore {
 public:
  virtual ~BlockingStore() = default;
  virtual Result<TxnState> begin(const TxnId& txn, const UploadTarget& target) = 0;
  // Reads the steps' source regions from `memory`.
  virtual Result<PutReceipt> put(const TxnId& txn, const PutStep& step, const MemoryRegistry& memory) = 0;
  virtual Result<TxnState> commit(const TxnId& txn, const Publication& publication) = 0;
  virtual Result<TxnState> abort(const TxnId& txn) = 0;
  virtual Result<Found> lookup(const Lookup& lookup) = 0;
  // Writes the steps' target regions in `memory`.
  virtual Result<GetReport> get(const GetStep& step, const MemoryRegistry& memory) = 0;
  virtual Status release(LeaseId lease) = 0;
};

}  // namespace crossdock
