#include "tests/crash/expected.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/kv/snapshot.h"

namespace crossdock::testing {
namespace {

bool publishes(StepKind kind) { return kind == StepKind::kUpload || kind == StepKind::kPages; }

}  // namespace

void Expected::apply(const Event& event, State& state) {
  Snapshot& snapshot = state.snapshots[event.name];
  if (event.kind == StepKind::kUpload) snapshot = Snapshot{true, event.expires, false};
  if (event.kind == StepKind::kRemove) snapshot = Snapshot();
  if (event.kind == StepKind::kPin) snapshot.pinned = true;
  if (event.kind == StepKind::kUnpin) snapshot.pinned = false;
  if (event.kind == StepKind::kPages)
    for (const uint64_t page : event.pages) state.page_owners.try_emplace(page, event.sequence);
  if (event.kind == StepKind::kRemovePages)
    std::erase_if(state.page_owners, [&](const auto& page) { return page.second == event.sequence; });
  if (event.name.empty()) state.snapshots.erase(event.name);
}

// Whether an answer may be what it is, before it is applied. What may have expired may be there or not.
void Expected::judge(const Event& event, Findings& findings) const {
  const auto found = state_.snapshots.find(event.name);
  const Snapshot snapshot = found == state_.snapshots.end() ? Snapshot() : found->second;
  const bool ok = event.code == Code::kOk;
  const bool not_found = event.code == Code::kNotFound;
  const bool conflict = event.code == Code::kConflict;
  bool is_right = true;
  if (event.kind == StepKind::kUpload) is_right = ok ? !snapshot.stays() : conflict && snapshot.stored;
  if (event.kind == StepKind::kRemove)
    is_right = snapshot.pinned ? conflict : !conflict && !(not_found && snapshot.stays());
  if (event.kind == StepKind::kPin || event.kind == StepKind::kRead)
    is_right = ok ? snapshot.stored : not_found && !snapshot.stays();
  if (event.kind == StepKind::kUnpin) is_right = ok == snapshot.pinned;
  if (event.kind == StepKind::kPages || event.kind == StepKind::kRemovePages || event.kind == StepKind::kCollect)
    is_right = ok;
  if (event.kind == StepKind::kReadPages) {
    std::set<uint64_t> own;
    for (const auto& [page, owner] : state_.page_owners)
      if (page / kPagesPerThread == event.thread) own.insert(page);
    is_right = std::set(event.pages.begin(), event.pages.end()) == own;
  }
  if (!event.digest.empty()) {
    std::vector<ObjectPlan> objects;
    if (event.kind == StepKind::kPages)
      for (const uint64_t page : event.pages) objects.push_back(page_object(seed_, page));
    else
      objects = snapshot_objects(seed_, event.name);
    is_right &= event.digest == digest_of(seed_, objects);
  }
  if (!is_right)
    findings.push_back(fmt::format("{}, but it was {}{}{}", to_text(event), snapshot.stored ? "stored" : "not stored",
                                   snapshot.expires ? " for some seconds" : "", snapshot.pinned ? " and pinned" : ""));
}

void Expected::take(const std::vector<Event>& events, Findings& findings) {
  run_ = events;
  under_way_.clear();
  for (const Event& event : events) {
    threads_.insert(event.thread);
    if (!event.done) {
      under_way_[event.thread] = event;
      continue;
    }
    under_way_.erase(event.thread);
    judge(event, findings);
    if (event.code == Code::kOk) apply(event, state_);
  }
}

Expected::Seen Expected::expected_of(const State& state) {
  Seen seen;
  for (const auto& [name, snapshot] : state.snapshots)
    if (snapshot.stays()) seen.snapshots[name] = {true, snapshot.pinned};
  for (const auto& [page, owner] : state.page_owners) seen.pages.insert(page);
  return seen;
}

Expected::Seen Expected::look(StoreCore& core, Findings& findings) const {
  Seen seen;
  MemoryRegistry memory;
  const Result<std::vector<PublicationInfo>> infos = core.list();
  if (!infos.ok()) findings.push_back("list: " + infos.status().message());
  for (const uint32_t thread : threads_) {
    for (uint32_t number = 0; number < kSnapshotsPerThread; ++number) {
      const std::string name = snapshot_name(thread, number);
      const SnapshotId id = snapshot_id(name);
      const Result<Found> found = core.lookup(Lookup{id, LeaseRequest{"check", kLongLease}});
      if (!found.ok()) {
        if (found.status().code() != Code::kNotFound) findings.push_back(name + ": " + found.status().message());
        continue;
      }
      bool pinned = false;
      for (const PublicationInfo& info : infos.value())
        if (info.content == id && !info.removed) pinned = !info.pins.empty();
      seen.snapshots[name] = {true, pinned};
      if (const Status status = check_snapshot(core, memory, found.value(), name, seed_); !status.ok())
        findings.push_back(fmt::format("I2: '{}' is found and not whole: {}", name, status.message()));
    }
    std::vector<PageObjectKey> keys;
    for (uint32_t i = 0; i < kPagesPerThread; ++i) keys.push_back(page_object_key(page_number(thread, i)));
    const Result<Found> found = core.lookup(Lookup{keys, LeaseRequest{"check", kLongLease}});
    if (!found.ok()) {
      findings.push_back("pages: " + found.status().message());
      continue;
    }
    for (size_t i = 0; i < found.value().pages.size(); ++i) {
      const auto at = static_cast<uint32_t>(std::ranges::find(keys, found.value().pages[i]) - keys.begin());
      const uint64_t page = page_number(thread, at);
      seen.pages.insert(page);
      if (const Status status = check_page(core, memory, found.value(), i, page, seed_); !status.ok())
        findings.push_back(fmt::format("I2: page {} is found and not whole: {}", page, status.message()));
    }
  }
  return seen;
}

// Asking again how a transaction ended gives the answer that fits what is there.
void Expected::check_txn(StoreCore& core, const Event& event, bool happened, Findings& findings) const {
  UploadTarget target{tenant_of(event.thread), std::nullopt, kLongLease};
  if (!event.name.empty()) target.content = snapshot_id(event.name);
  const Result<TxnState> state = core.begin(TxnId(event.txn), target);
  const bool is_committed = state.ok() && state.value().phase == TxnPhase::kCommitted;
  const bool is_aborted = state.ok() && state.value().phase == TxnPhase::kAborted;
  const bool is_right = publishes(event.kind) ? is_committed == happened : !is_committed && (is_aborted || !happened);
  const bool same = !is_committed || event.sequence == 0 || state.value().sequence == event.sequence;
  if (!is_right || !same)
    findings.push_back(fmt::format("{}: the transaction is {}committed and {}aborted now", to_text(event),
                                   is_committed ? "" : "not ", is_aborted ? "" : "not "));
}

void Expected::check(StoreCore& core, Findings& findings) {
  const Seen seen = look(core, findings);
  for (const Event& event : run_)
    if (event.done && event.code == Code::kOk && (publishes(event.kind) || event.kind == StepKind::kAbort))
      check_txn(core, event, true, findings);
  // A step of one thread changes names of that thread only, so each can be settled for itself.
  for (auto& [thread, event] : under_way_) {
    const UploadTarget target{tenant_of(thread),
                              event.name.empty() ? std::nullopt : std::optional(snapshot_id(event.name)), kLongLease};
    if (event.kind == StepKind::kPages)
      if (const Result<TxnState> state = core.begin(TxnId(event.txn), target); state.ok() && state.value().sequence)
        event.sequence = *state.value().sequence;
    const Seen before = expected_of(state_);
    State changed = state_;
    apply(event, changed);
    const Seen after = expected_of(changed);
    const auto fits = [&, thread = thread](const Seen& expected) {
      for (uint32_t number = 0; number < kSnapshotsPerThread; ++number) {
        const std::string name = snapshot_name(thread, number);
        const auto have = seen.snapshots.find(name);
        const auto want = expected.snapshots.find(name);
        if ((have == seen.snapshots.end()) != (want == expected.snapshots.end())) return false;
        if (have != seen.snapshots.end() && have->second != want->second) return false;
      }
      for (uint32_t number = 0; number < kPagesPerThread; ++number)
        if (seen.pages.contains(page_number(thread, number)) != expected.pages.contains(page_number(thread, number)))
          return false;
      return true;
    };
    const bool is_visible = after != before;  // whether look-ups tell them apart
    const bool happened = is_visible && fits(after);
    if (!happened && !fits(before)) findings.push_back("neither done nor not done: " + to_text(event));
    if (happened) state_ = std::move(changed);
    if (is_visible && publishes(event.kind)) check_txn(core, event, happened, findings);
  }
  under_way_.clear();
  // What only lived for some seconds is gone.
  for (auto& [name, snapshot] : state_.snapshots)
    if (!snapshot.stays()) snapshot = Snapshot();
  const Seen expected = expected_of(state_);
  for (const auto& [name, what] : expected.snapshots) {
    const auto have = seen.snapshots.find(name);
    if (have == seen.snapshots.end())
      findings.push_back(fmt::format("'{}' was published and is not there", name));
    else if (have->second != what)
      findings.push_back(fmt::format("'{}' is {}pinned", name, have->second.second ? "" : "not "));
  }
  for (const auto& [name, what] : seen.snapshots)
    if (!expected.snapshots.contains(name)) findings.push_back(fmt::format("'{}' is there and must not be", name));
  if (seen.pages != expected.pages)
    findings.push_back(
        fmt::format("pages {} are there, not {}", fmt::join(seen.pages, ","), fmt::join(expected.pages, ",")));
}

size_t Expected::snapshot_count() const {
  size_t count = 0;
  for (const auto& [name, snapshot] : state_.snapshots) count += snapshot.stored;
  return count;
}

}  // namespace crossdock::testing
