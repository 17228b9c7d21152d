// Operations under way, and which of them were cancelled.
#pragma once

#include <mutex>
#include <set>

#include "executor/ids.h"

namespace crossdock {

// Thread-safe.
class CancelSet {
 public:
  void enter(OpId op) {
    const std::lock_guard lock(mutex_);
    under_way_.insert(op);
  }
  // Of an operation that has completed: nothing is remembered, so the set does not grow with late cancels.
  void cancel(OpId op) {
    const std::lock_guard lock(mutex_);
    if (under_way_.contains(op)) cancelled_.insert(op);
  }
  bool is_cancelled(OpId op) const {
    const std::lock_guard lock(mutex_);
    return cancelled_.contains(op);
  }
  void leave(OpId op) {
    const std::lock_guard lock(mutex_);
    under_way_.erase(op);
    cancelled_.erase(op);
  }

 private:
  mutable std::mutex mutex_;
  std::set<OpId> under_way_;
  std::set<OpId> cancelled_;
};

}  // namespace crossdock
