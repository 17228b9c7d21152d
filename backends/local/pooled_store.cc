#include "backends/local/pooled_store.h"

#include "backends/local/pool_post.h"

namespace crossdock {
namespace {

using IsCancelled = std::function<bool()>;

}  // namespace

// A call that has begun is not interrupted by a cancel (R5): only one that still waits for a thread is dropped.
// Arguments are copied into the task, since the caller may forget them once the post returns.
Status PooledStore::post_begin(OpId op, const TxnId& txn, const UploadTarget& target) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&store = store_, txn, target](const IsCancelled&) {
    return completion_of(store.begin(txn, target));
  });
}

Status PooledStore::post_put(OpId op, const TxnId& txn, const PutStep& step) {
  return post_to_pool(pool_, queue_, cancelled_, op,
                      [&store = store_, &memory = memory_, txn, step](const IsCancelled&) {
                        return completion_of(store.put(txn, step, memory));
                      });
}

Status PooledStore::post_commit(OpId op, const TxnId& txn, const Publication& publication) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&store = store_, txn, publication](const IsCancelled&) {
    return completion_of(store.commit(txn, publication));
  });
}

Status PooledStore::post_abort(OpId op, const TxnId& txn) {
  return post_to_pool(pool_, queue_, cancelled_, op,
                      [&store = store_, txn](const IsCancelled&) { return completion_of(store.abort(txn)); });
}

Status PooledStore::post_lookup(OpId op, const Lookup& lookup) {
  return post_to_pool(pool_, queue_, cancelled_, op,
                      [&store = store_, lookup](const IsCancelled&) { return completion_of(store.lookup(lookup)); });
}

Status PooledStore::post_get(OpId op, const GetStep& step) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&store = store_, &memory = memory_, step](const IsCancelled&) {
    return completion_of(store.get(step, memory));
  });
}

Status PooledStore::post_release(OpId op, LeaseId lease) {
  return post_to_pool(pool_, queue_, cancelled_, op,
                      [&store = store_, lease](const IsCancelled&) { return completion_of(store.release(lease)); });
}

}  // namespace crossdock
