#include "executor/quarantine.h"

#include <algorithm>
#include <utility>

namespace crossdock {

Quarantine::Quarantine(QuarantineOptions options) : options_(std::move(options)) {
  for (const Remains& remains : options_.remains) {
    Entry entry;
    entry.remains = remains;
    entry.awaited.insert(remains.operations.begin(), remains.operations.end());
    entries_.push_back(std::move(entry));
  }
}

WorkList Quarantine::cleanup(uint64_t number) const {
  WorkList list({0}, WindowLimits{1, 1}, options_.retry, options_.seed + number);
  list.insist();
  return list;
}

void Quarantine::post_due(WorkList& list, const PostCall& call, TimePoint now, std::vector<Post>& posts) {
  if (is_stopped_ || !list.next(now)) return;
  const OpId op(kFirstOp + op_count_++);
  list.started(0, op);
  posts.push_back(Post{op, call});
}

// Each step begins when the one before it has ended. A revoke or a release that fails for good stays: repeating it
// would not help, and the entry waits for an operator, who finds it in left().
void Quarantine::step(Entry& entry, TimePoint now, std::vector<Post>& posts) {
  Remains& remains = entry.remains;
  if (entry.is_over || !entry.awaited.empty()) return;
  if (remains.grant) {
    if (!entry.revoke) entry.revoke = cleanup(2 * op_count_);
    post_due(*entry.revoke, RevokePost{{*remains.grant, false}}, now, posts);
    if (!entry.revoke->done()) return;
    remains.grant = std::nullopt;
  }
  if (remains.may_be_active && entry.is_active.value_or(true)) {
    entry.is_over = entry.is_active.has_value();  // in use, and nothing is given back
    return;
  }
  if (!entry.release) entry.release = cleanup(2 * op_count_ + 1);
  post_due(*entry.release, RuntimePost{RuntimeCall::kRelease, remains.hold}, now, posts);
  entry.is_over = entry.release->done();
}

void Quarantine::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  for (const Completion& completion : completions)
    for (Entry& entry : entries_) {
      if (entry.awaited.erase(completion.op) > 0) std::erase(entry.remains.operations, completion.op);
      if (entry.revoke) entry.revoke->complete(completion, now);
      if (entry.release) entry.release->complete(completion, now);
    }
  for (Entry& entry : entries_) step(entry, now, posts);
}

bool Quarantine::decide(const HoldId& hold, bool is_active) {
  for (Entry& entry : entries_) {
    if (entry.is_over || entry.remains.hold != hold || !entry.remains.may_be_active) continue;
    entry.is_active = is_active;
    return true;
  }
  return false;
}

bool Quarantine::finished() const {
  const auto is_quiet = [](const Entry& entry) {
    return (!entry.revoke || entry.revoke->quiet()) && (!entry.release || entry.release->quiet());
  };
  if (is_stopped_) return std::all_of(entries_.begin(), entries_.end(), is_quiet);
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.is_over; });
}

TimePoint Quarantine::wake_at() const {
  TimePoint wake = TimePoint::never();
  if (is_stopped_) return wake;
  for (const Entry& entry : entries_)
    for (const std::optional<WorkList>* list : {&entry.revoke, &entry.release})
      if (*list && !(*list)->done()) wake = std::min(wake, (*list)->wake_at());
  return wake;
}

std::vector<Remains> Quarantine::left() const {
  std::vector<Remains> left;
  for (const Entry& entry : entries_)
    if (!entry.is_over) left.push_back(entry.remains);
  return left;
}

}  // namespace crossdock
