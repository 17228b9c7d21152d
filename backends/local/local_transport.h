// Copies between memory of this process, by the threads of a pool.
#pragma once

#include <memory>

#include "backends/local/cancel_set.h"
#include "backends/local/copy_meter.h"
#include "backends/local/local_queue.h"
#include "backends/local/thread_pool.h"
#include "backends/memory/memory_registry.h"
#include "executor/ports.h"

namespace crossdock {

// The transport of one participant; the participants of a process share registry and pool. Registry, pool and queue
// outlive all operations.
class LocalTransport : public Transport {
 public:
  // `total_bytes`: estimate of the bytes that all copies move together, which selects the stores (strided_copy.h).
  // `meter` may be null.
  LocalTransport(MemoryRegistry& memory, ThreadPool& pool, LocalQueue& queue, uint64_t total_bytes = 0,
                 CopyMeter* meter = nullptr)
      : memory_(memory), pool_(pool), queue_(queue), total_bytes_(total_bytes), meter_(meter) {}

  Status post_copy(OpId op, const Grant& grant, const StepSpan& steps) override;
  Status post_checksum(OpId op, const StepSpan& steps, StepEnd end) override;
  Status post_grant(OpId op, const GrantRequest& request) override;
  Status post_revoke(OpId op, const RevokeRequest& request) override;
  void cancel(OpId op) override { cancelled_->cancel(op); }

 private:
  MemoryRegistry& memory_;
  ThreadPool& pool_;
  LocalQueue& queue_;
  uint64_t total_bytes_;
  CopyMeter* meter_;
  std::shared_ptr<CancelSet> cancelled_ = std::make_shared<CancelSet>();
};

}  // namespace crossdock
