// Posts a task to a pool as an operation: exactly one completion, or a refusal and none (R1).
#pragma once

#include <memory>
#include <utility>

#include "backends/local/cancel_set.h"
#include "backends/local/local_queue.h"
#include "backends/local/thread_pool.h"

namespace crossdock {

// Work: Completion(const std::function<bool()>& is_cancelled), without the id, which is filled in. An operation that is
// cancelled before it began completes kCancelled.
template <class Work>
Status post_to_pool(ThreadPool& pool, LocalQueue& queue, const std::shared_ptr<CancelSet>& cancelled, OpId op,
                    Work work) {
  cancelled->enter(op);
  auto task = [&queue, cancelled, op, work = std::move(work)] {
    Completion completion;
    if (cancelled->is_cancelled(op))
      completion.status = Status(Code::kCancelled, "cancelled before it began");
    else
      completion = work([&] { return cancelled->is_cancelled(op); });
    completion.op = op;
    cancelled->leave(op);
    queue.add(std::move(completion));
  };
  // Entered before the post: the task may run, and leave the set, before try_post() returns.
  if (pool.try_post(std::move(task))) return Status();
  cancelled->leave(op);
  return Status(Code::kResourceExhausted, "too many operations wait");
}

}  // namespace crossdock
