// Task: one call of a port, again while its failure may pass.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "executor/mailbox.h"
#include "executor/work_list.h"

namespace crossdock {

// Posts the units of a list that are due; make_call(unit) gives the call of each.
template <class MakeCall>
void post_due(WorkList& list, TimePoint now, OpIds& ops, std::vector<Post>& posts, MakeCall make_call) {
  while (const std::optional<size_t> unit = list.next(now)) {
    list.started(*unit, ops.next());
    posts.push_back(Post{ops.last(), make_call(*unit)});
  }
}

// A work list of one unit: repetition, waits and the count of attempts are the same.
class Task {
 public:
  Task(PostCall call, const RetryOptions& retry, uint64_t seed)
      : call_(std::move(call)), list_({0}, WindowLimits{1, 1}, retry, seed) {}

  // Posts it when it is due.
  void advance(TimePoint now, OpIds& ops, std::vector<Post>& posts) {
    post_due(list_, now, ops, posts, [this](size_t) { return call_; });
  }
  // True when the completion was this call's.
  bool complete(const Completion& completion, TimePoint now) {
    const std::optional<WorkList::Ended> ended = list_.complete(completion, now);
    if (ended && ended->done) result_ = completion;
    return ended.has_value();
  }
  // It cleans up: see WorkList::insist().
  void insist() { list_.insist(); }
  // It is not posted any more; what is under way still completes.
  void stop() { list_.stop(); }

  // The call succeeded.
  bool done() const { return list_.done(); }
  // Nothing of it is under way; it may be posted again later.
  bool quiet() const { return list_.quiet(); }
  // False: it has definitely not happened.
  bool may_have_happened() const { return list_.may_have_happened(0); }
  // Its last failure, when it will not be tried again.
  std::optional<Status> failure() const {
    return list_.failure() ? std::optional(list_.failure()->second) : std::nullopt;
  }
  // Of a call that is done; null when it has no value of this type.
  template <class Value>
  const Value* result() const {
    return result_ ? std::get_if<Value>(&result_->result) : nullptr;
  }
  std::vector<OpId> under_way() const { return list_.under_way(); }
  TimePoint wake_at() const { return list_.wake_at(); }

 private:
  PostCall call_;
  WorkList list_;
  std::optional<Completion> result_;
};

}  // namespace crossdock
