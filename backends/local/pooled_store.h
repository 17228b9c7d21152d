// A blocking store as the port ObjectStore of one participant, by the threads of a pool.
#pragma once

#include <memory>

#include "backends/local/cancel_set.h"
#include "backends/local/local_queue.h"
#include "backends/local/thread_pool.h"
#include "backends/memory/memory_registry.h"
#include "backends/store/blocking_store.h"
#include "executor/ports.h"

namespace crossdock {

// Participants share store, registry and pool. These and the queue outlive all operations.
class PooledStore : public ObjectStore {
 public:
  PooledStore(BlockingStore& store, MemoryRegistry& memory, ThreadPool& pool, LocalQueue& queue)
      : store_(store), memory_(memory), pool_(pool), queue_(queue) {}

  Status post_begin(OpId op, const TxnId& txn, const UploadTarget& target) override;
  Status post_put(OpId op, const TxnId& txn, const PutStep& step) override;
  Status post_commit(OpId op, const TxnId& txn, const Publication& publication) override;
  Status post_abort(OpId op, const TxnId& txn) override;
  Status post_lookup(OpId op, const Lookup& lookup) override;
  Status post_get(OpId op, const GetStep& step) override;
  Status post_release(OpId op, LeaseId lease) override;
  void cancel(OpId op) override { cancelled_->cancel(op); }

 private:
  BlockingStore& store_;
  MemoryRegistry& memory_;
  ThreadPool& pool_;
  LocalQueue& queue_;
  std::shared_ptr<CancelSet> cancelled_ = std::make_shared<CancelSet>();
};

}  // namespace crossdock
