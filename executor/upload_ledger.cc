#include "executor/upload_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "executor/canary.h"
#include "executor/written_ranges.h"

// The ledger makes each answer repeatable (R4): what was decided is remembered, and asked again it is told again. It is
// called under the lock of its store, between acts on bytes: admit() before a fragment is taken, fragment_taken() or
// fragment_failed() after it. While the lock is given up in between anything may have happened to the transaction, so
// each of the later calls looks again whether it is still open and the object still there.
// An object goes through: under way -> all fragments taken -> stored, or lost. It counts as stored only after its bytes
// were, which is what a commit relies on (I2).
namespace crossdock {
namespace {

std::string object_text(const RegionId& object) { return fmt::format("object '{}'", object.text()); }

Status no_such(const TxnId& txn) {
  return Status(Code::kConflict, fmt::format("transaction '{}' is not known here", txn.text()));
}

}  // namespace

// A transaction that was aborted before it was begun answers "aborted": the tombstone is in the same map.
Result<TxnState> UploadLedger::begin(const TxnId& txn, const UploadTarget& target, TimePoint now) {
  if (const auto found = txns_.find(txn); found != txns_.end()) {
    Txn& known = found->second;
    // A tombstone knows no target.
    if (known.state.phase != TxnPhase::kAborted && known.target != target)
      return Status(Code::kConflict, fmt::format("transaction '{}' was begun for another target", txn.text()));
    if (known.state.phase == TxnPhase::kOpen) known.time = now + known.target.lease;
    return known.state;
  }
  // kUnavailable, so that the uploader tries again later.
  if (open_count_ >= limits_.open_count_max)
    return Status(Code::kUnavailable, fmt::format("{} uploads are open, which is the limit", open_count_));
  Txn& made = txns_[txn];
  made.target = target;
  made.state.txn = txn;
  made.time = now + target.lease;
  ++open_count_;
  return made.state;
}

// Under the same lock as begin(), hence the CHECK.
void UploadLedger::undo_begin(const TxnId& txn) {
  const auto found = txns_.find(txn);
  CHECK(found != txns_.end() && found->second.state.phase == TxnPhase::kOpen && found->second.objects.empty());
  txns_.erase(found);
  --open_count_;
}

// kConflict for all three: the uploader cannot go on, and repeating would not help.
Result<UploadLedger::Txn*> UploadLedger::open_txn(const TxnId& txn) {
  const auto found = txns_.find(txn);
  if (found == txns_.end()) return no_such(txn);
  Txn& known = found->second;
  if (known.state.phase == TxnPhase::kAborted)
    return Status(Code::kConflict, fmt::format("transaction '{}' was aborted: {}", txn.text(), known.state.reason));
  if (known.state.phase == TxnPhase::kCommitted)
    return Status(Code::kConflict, fmt::format("transaction '{}' was committed", txn.text()));
  return &known;
}

// Everything that a fragment states is compared here, before any of its bytes is taken, so the store may trust sizes
// and offsets afterwards.
Result<std::optional<PutReceipt>> UploadLedger::admit(const TxnId& txn, const PutStep& step, TimePoint now) {
  TRY(Txn* const open, open_txn(txn));
  if (open->committing) return Status(Code::kConflict, fmt::format("transaction '{}' is being committed", txn.text()));
  const uint64_t fragment_bytes = step.steps.total_bytes();
  // An empty fragment would complete an object a second time.
  if (fragment_bytes > step.payload_bytes || (fragment_bytes == 0 && step.payload_bytes > 0))
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: writer '{}' has {} bytes of a payload of {}", object_text(step.object), step.writer,
                              fragment_bytes, step.payload_bytes));
  // Written so that no sum wraps: the span is compared first.
  for (const CopyStep& copy : step.steps.steps())
    if (copy.target_span() > step.object_bytes || copy.target_offset > step.object_bytes - copy.target_span())
      return Status(Code::kInvalidArgument,
                    fmt::format("{}: a step ends at byte {} of {}", object_text(step.object),
                                saturating_add(copy.target_offset, copy.target_span()), step.object_bytes));
  auto found = open->objects.find(step.object);
  if (found != open->objects.end() &&
      (found->second.bytes != step.object_bytes || found->second.payload_bytes != step.payload_bytes))
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: {} bytes with a payload of {} now, {} with {} before", object_text(step.object),
                              step.object_bytes, step.payload_bytes, found->second.bytes, found->second.payload_bytes));
  if (found == open->objects.end()) {
    if (open->objects.size() >= limits_.object_count_max)
      return Status(Code::kInvalidArgument,
                    fmt::format("transaction '{}' has more than {} objects", txn.text(), limits_.object_count_max));
    found = open->objects.emplace(step.object, Object()).first;
    found->second.bytes = step.object_bytes;
    found->second.payload_bytes = step.payload_bytes;
    uint64_t& open_bytes = open_bytes_[open->target.tenant];
    open_bytes = saturating_add(open_bytes, step.object_bytes);
  }
  Object& object = found->second;
  // Also for a fragment that is refused below: its uploader is not silent.
  open->time = now + open->target.lease;
  if (object.lost)
    return Status(Code::kUnavailable,
                  fmt::format("{}: its bytes were lost, and the fragment of '{}' is still under way",
                              object_text(step.object), *object.under_way.begin()));
  // Before the receipts: the fragment that completed its object has a receipt already, while the object is not stored
  // yet.
  if (object.under_way.contains(step.writer))
    return Status(Code::kUnavailable,
                  fmt::format("{}: the fragment of '{}' is under way", object_text(step.object), step.writer));
  if (const auto receipt = object.receipts.find(step.writer); receipt != object.receipts.end()) {
    if (receipt->second.bytes == fragment_bytes) return std::optional(receipt->second);
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: writer '{}' has {} bytes now, {} before", object_text(step.object), step.writer,
                              fragment_bytes, receipt->second.bytes));
  }
  // taken_bytes is at most payload_bytes, kept by this very check.
  if (fragment_bytes > object.payload_bytes - object.taken_bytes)
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: writer '{}' has {} bytes, {} of {} are left", object_text(step.object), step.writer,
                              fragment_bytes, object.payload_bytes - object.taken_bytes, object.payload_bytes));
  // The sum alone would take two fragments of the same bytes for an object without a hole.
  const Result<std::vector<Range>> written = written_ranges(step.steps);
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: fragment of '{}': {}", object_text(step.object), step.writer, why));
  };
  if (!written.ok()) return refuse(written.status().message());
  if (const std::optional<uint64_t> byte = first_common_byte(object.taken, written.value()))
    return refuse(fmt::format("byte {} is another writer's already", *byte));
  // Counted at admission, not when they are taken: two fragments at once could otherwise pass the payload.
  object.taken = joined(object.taken, written.value());
  object.taken_bytes += fragment_bytes;
  object.under_way.insert(step.writer);
  return std::optional<PutReceipt>();
}

// The object of a fragment that is under way.
Result<UploadLedger::Object*> UploadLedger::object_under_way(Txn& txn, const PutStep& step) {
  const auto found = txn.objects.find(step.object);
  if (found == txn.objects.end() || !found->second.under_way.contains(step.writer))
    return Status(Code::kConflict,
                  fmt::format("{}: no fragment of '{}' is under way", object_text(step.object), step.writer));
  if (!found->second.lost) return &found->second;
  found->second.under_way.erase(step.writer);
  if (found->second.under_way.empty()) forget_object(txn, step.object);
  return Status(Code::kUnavailable, fmt::format("{}: its bytes were lost", object_text(step.object)));
}

void UploadLedger::forget_object(Txn& txn, const RegionId& object) {
  const auto found = txn.objects.find(object);
  uint64_t& open_bytes = open_bytes_[txn.target.tenant];
  // The sum saturates, so it may be smaller than its parts; it must not wrap below zero.
  open_bytes -= std::min(open_bytes, found->second.bytes);
  if (open_bytes == 0) open_bytes_.erase(txn.target.tenant);
  txn.objects.erase(found);
}

Result<bool> UploadLedger::fragment_taken(const TxnId& txn, const PutStep& step) {
  TRY(Txn* const open, open_txn(txn));
  TRY(Object* const object, object_under_way(*open, step));
  object->under_way.erase(step.writer);
  object->receipts[step.writer] = PutReceipt{txn, step.object, step.writer, step.steps.total_bytes(), std::nullopt};
  // Fragments under way are counted as taken, so the last one that ends completes the object, and no other does.
  const bool is_complete = object->taken_bytes == object->payload_bytes && object->under_way.empty();
  if (!is_complete && !is_broken(Canary::kPublishFirstFragment)) return false;
  object->under_way.insert(step.writer);  // until it is stored
  return true;
}

// The fragment counts as never admitted, so its writer may put it again. Nothing to do when the transaction is closed.
void UploadLedger::fragment_failed(const TxnId& txn, const PutStep& step) {
  const Result<Txn*> open = open_txn(txn);
  if (!open.ok()) return;
  const Result<Object*> found = object_under_way(*open.value(), step);
  if (!found.ok()) return;
  Object& object = *found.value();
  object.under_way.erase(step.writer);
  object.receipts.erase(step.writer);
  object.taken_bytes -= step.steps.total_bytes();
  object.taken = without(object.taken, written_ranges(step.steps).value());  // it was admitted with them
}

Result<PutReceipt> UploadLedger::object_stored(const TxnId& txn, const PutStep& step, StoredObject stored) {
  TRY(Txn* const open, open_txn(txn));
  TRY(Object* const object, object_under_way(*open, step));
  object->under_way.erase(step.writer);
  PutReceipt& receipt = object->receipts.at(step.writer);
  receipt.stored = stored;
  object->stored = std::move(stored);
  object->taken = {};  // nothing more is admitted
  return receipt;
}

void UploadLedger::object_lost(const TxnId& txn, const RegionId& object, const std::string& why) {
  const Result<Txn*> open = open_txn(txn);
  if (!open.ok()) return;
  if (!why.empty()) open.value()->last_loss = why;
  const auto found = open.value()->objects.find(object);
  if (found == open.value()->objects.end()) return;
  // Fragments under way learn of it when they end; until then no fragment of the object is admitted, because their late
  // bytes could mix with new ones.
  found->second.lost = true;
  if (found->second.under_way.empty()) forget_object(*open.value(), object);
}

// I2: what is published must be what is stored, object by object: complete, of this size and with these checksums.
Status UploadLedger::check_object(const Txn& txn, const StoredObject& wanted) const {
  const auto found = txn.objects.find(wanted.id);
  if (found == txn.objects.end())
    return Status(Code::kNotFound, txn.last_loss.empty() ? fmt::format("{} was not put", object_text(wanted.id))
                                                         : fmt::format("{} was not put; the store lost bytes: {}",
                                                                       object_text(wanted.id), txn.last_loss));
  const Object& object = found->second;
  if (!object.under_way.empty())
    return Status(Code::kUnavailable, fmt::format("{}: the fragment of '{}' is under way", object_text(wanted.id),
                                                  *object.under_way.begin()));
  if (!object.stored) {
    std::string writers;
    for (const auto& [writer, receipt] : object.receipts) writers += fmt::format(" '{}'", writer);
    return Status(Code::kNotFound,
                  fmt::format("{} is incomplete: {} of {} bytes are there, of{}", object_text(wanted.id),
                              object.taken_bytes, object.payload_bytes, writers.empty() ? " nobody" : writers));
  }
  if (object.stored->bytes != wanted.bytes)
    return Status(Code::kInvalidArgument, fmt::format("{} has {} bytes in the publication, {} as stored",
                                                      object_text(wanted.id), wanted.bytes, object.stored->bytes));
  if (object.stored->chunk_bytes != wanted.chunk_bytes || object.stored->chunk_crc32c != wanted.chunk_crc32c)
    return Status(
        Code::kInvalidArgument,
        fmt::format("{}: the publication's checksums are not those of the bytes as stored", object_text(wanted.id)));
  return Status();
}

Result<TxnState> UploadLedger::start_commit(const TxnId& txn, const Publication& publication, TimePoint now) {
  const auto found = txns_.find(txn);
  if (found == txns_.end()) return no_such(txn);
  Txn& known = found->second;
  // Commit and abort race, and the first has won: the other is told the state and no error.
  if (known.state.phase != TxnPhase::kOpen) return known.state;
  if (known.committing)
    return Status(Code::kUnavailable, fmt::format("transaction '{}' is being committed", txn.text()));
  known.time = now + known.target.lease;

  const auto* manifest = std::get_if<AnyManifest>(&publication.content);
  if ((manifest != nullptr) != known.target.content.has_value())
    return Status(Code::kInvalidArgument, fmt::format("transaction '{}' was begun for {}", txn.text(),
                                                      known.target.content ? "a snapshot" : "pages"));
  std::set<RegionId> named;
  const auto check = [&](const StoredObject& object) {
    named.insert(object.id);
    return check_object(known, object);
  };
  if (manifest != nullptr) {
    for (const StoredObject& object : (*manifest)->objects) TRY_STATUS(check(object));
  } else {
    for (const PageEntry& entry : std::get<std::vector<PageEntry>>(publication.content))
      TRY_STATUS(check(entry.object));
  }
  // An object that no manifest names would never be deleted with one (I4).
  for (const auto& [object, state] : known.objects)
    if (!named.contains(object))
      return Status(Code::kInvalidArgument,
                    fmt::format("{} was put, and the publication has no word of it", object_text(object)));
  // From here until committed() or commit_failed() neither an abort nor the end of the lease closes the transaction,
  // although the lock is given up for the write.
  known.committing = true;
  return known.state;
}

// The entry stays as the answer to later calls, without its objects; forget() bounds how many there are.
TxnState UploadLedger::close(Txn& txn, TxnPhase phase, TimePoint now) {
  CHECK(txn.state.phase == TxnPhase::kOpen);
  txn.state.phase = phase;
  txn.committing = false;
  txn.time = now;
  uint64_t bytes = 0;
  for (const auto& [id, object] : txn.objects) bytes = saturating_add(bytes, object.bytes);
  uint64_t& open_bytes = open_bytes_[txn.target.tenant];
  open_bytes -= std::min(open_bytes, bytes);
  if (open_bytes == 0) open_bytes_.erase(txn.target.tenant);
  txn.objects.clear();
  --open_count_;
  return txn.state;
}

TxnState UploadLedger::committed(const TxnId& txn, uint64_t sequence, TimePoint now) {
  Txn& known = txns_.at(txn);
  CHECK(known.committing);
  known.state.sequence = sequence;
  return close(known, TxnPhase::kCommitted, now);
}

void UploadLedger::commit_failed(const TxnId& txn) {
  Txn& known = txns_.at(txn);
  CHECK(known.committing);
  known.committing = false;
}

// An unknown transaction leaves a tombstone: a begin that arrives late must not open it again (I4).
Result<TxnState> UploadLedger::abort(const TxnId& txn, const std::string& reason, TimePoint now) {
  const auto [entry, is_new] = txns_.try_emplace(txn);
  Txn& known = entry->second;
  if (is_new) {
    known.state = TxnState{txn, TxnPhase::kAborted, reason, std::nullopt};
    known.time = now;
    return known.state;
  }
  if (known.state.phase != TxnPhase::kOpen) return known.state;
  if (known.committing)
    return Status(Code::kUnavailable, fmt::format("transaction '{}' is being committed", txn.text()));
  known.state.reason = reason;
  return close(known, TxnPhase::kAborted, now);
}

// A fragment that is under way is a word of its uploader, however long its bytes take.
std::vector<TxnId> UploadLedger::silent(TimePoint now) {
  std::vector<TxnId> found;
  for (auto& [id, txn] : txns_) {
    if (txn.state.phase != TxnPhase::kOpen || txn.committing || txn.time > now) continue;
    if (std::any_of(txn.objects.begin(), txn.objects.end(),
                    [](const auto& each) { return !each.second.under_way.empty(); }))
      txn.time = now + txn.target.lease;
    else
      found.push_back(id);
  }
  return found;
}

std::vector<TxnId> UploadLedger::uploads_of(const ContentId& content) const {
  std::vector<TxnId> found;
  for (const auto& [id, txn] : txns_)
    if (txn.state.phase == TxnPhase::kOpen && txn.target.content == content) found.push_back(id);
  return found;
}

// By age, oldest first. A tombstone that is forgotten no longer stops a delayed begin, hence the long closed_kept.
std::vector<TxnId> UploadLedger::forget(TimePoint now) {
  std::vector<std::pair<TimePoint, TxnId>> closed;
  for (const auto& [id, txn] : txns_)
    if (txn.state.phase != TxnPhase::kOpen) closed.emplace_back(txn.time, id);
  std::sort(closed.begin(), closed.end());
  std::vector<TxnId> forgotten;
  for (const auto& [time, id] : closed) {
    const bool too_many = closed.size() - forgotten.size() > limits_.closed_count_max;
    if (!too_many && time + limits_.closed_kept > now) break;
    txns_.erase(id);
    forgotten.push_back(id);
  }
  return forgotten;
}

void UploadLedger::restore(const TxnState& state, const UploadTarget& target, TimePoint lease_end_or_closed) {
  Txn& txn = txns_[state.txn];
  txn = Txn{target, state, false, lease_end_or_closed, {}};
  if (state.phase == TxnPhase::kOpen) ++open_count_;
}

const UploadTarget* UploadLedger::target(const TxnId& txn) const {
  const auto found = txns_.find(txn);
  return found == txns_.end() ? nullptr : &found->second.target;
}

bool UploadLedger::is_open(const TxnId& txn) const {
  const auto found = txns_.find(txn);
  return found != txns_.end() && found->second.state.phase == TxnPhase::kOpen;
}

uint64_t UploadLedger::open_bytes(const std::string& tenant) const {
  const auto found = open_bytes_.find(tenant);
  return found == open_bytes_.end() ? 0 : found->second;
}

}  // namespace crossdock
