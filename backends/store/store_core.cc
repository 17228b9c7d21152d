#include "backends/store/store_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "backends/store/store_state.h"
#include "base/checked.h"
#include "base/steady_clock.h"
#include "model/wire/manifest.h"

// The state is a few sets; the records are the truth, and the maps of State are derived from them.
//
//   Publications P     records p/SEQUENCE. Each names its segments.
//   Live(t)            those of P that are not removed, and that are pinned or not expired at t. Lookups find Live(t).
//   Uploads U          open transactions. Each has segments of its own, which no publication names.
//   Leases L           each holds some of P until its end; Held = the publications that some lease holds.
//   Named              the segments of P and of U.
//
// What each call keeps:
//   I2  Besides by time, Live changes only by one atomic, durable write of records, made after the data of the
//       publication is durable (commit) or before its data is touched (mark_removed). Live never has two publications
//       of a snapshot.
//   I4  A segment that is not Named is dropped by collect(), at the latest by the next opening. A publication that is
//       removed is dropped when it leaves Held; its records go last, so that a crash in between repeats the drop.
//   R4  begin, commit and abort may be repeated. The ledger (executor/upload_ledger.h) decides which of commit and
//       abort wins; a call returns OK only after the record of that decision was written.
//
// The state of one upload. The ledger has the transition in memory; the record follows, and only then the call returns.
//
//   unknown    --begin-->   open        t/NAME, not durable; no segments yet
//   open       --put-->     open        segments grow, unseen by readers; no record changes
//   open       --commit-->  committing  only in memory: puts, aborts and second commits are refused until it ends
//   committing --OK-->      committed   segments durable, then p/ m/ o/ k/ t/ in one durable batch
//   committing --error-->   open        the data may be part of the table; a repeated commit or an abort follows
//   open       --abort-->   aborted     t/NAME durable, then the segments go
//   unknown    --abort-->   aborted     a tombstone: a begin that arrives late finds it and is refused
//
// A receipt says that a fragment was taken; the one that completes an object has its checksums as stored. It is not a
// promise of durability: only a commit that returned OK is.
//
// Locks: `mutex` covers every map. It is released around I/O on bulk data only (commit, drop, put, get); what such a
// section relies on afterwards is kept stable by the ledger's committing state, by `dropping`, or is looked up again.

namespace crossdock {
namespace {

// The store wrote these manifests itself, after their rules were checked, so the limits for foreign documents do not
// apply. A commit refuses a text that passes these.
JsonLimits manifest_limits() {
  JsonLimits limits;
  limits.bytes_max = UINT32_MAX;
  limits.values_max = uint32_t{1} << 28;
  return limits;
}

Status no_snapshot(const ContentId& content) {
  return Status(Code::kNotFound, fmt::format("snapshot {} is not stored", content.hex()));
}

Status no_publication(uint64_t sequence) {
  return Status(Code::kNotFound, fmt::format("there is no publication {}", sequence));
}

Status check_name(std::string_view what, const std::string& name) {
  if (!name.empty() && name.size() <= kNameBytesMax) return Status();
  return Status(Code::kInvalidArgument, fmt::format("{} has {} bytes, not 1 to {}", what, name.size(), kNameBytesMax));
}

}  // namespace

// The crash tests stop the process at each of these and open the store again; a new order of writes needs a new point.
const std::vector<std::string_view> kCrashPoints = {
    "begin-recorded", "put-object-written", "commit-before-data", "commit-after-data", "commit-published",
    "abort-recorded", "remove-recorded",    "drop-after-data",    "gc-begin",          "gc-orphans-dropped",
    "recovery-begin", "recovery-aborted",   "recovery-dropped",
};

StoreCore::State::State(std::unique_ptr<RecordTable> record_table, std::unique_ptr<ChunkTable> chunk_table,
                        StoreOptions store_options)
    : options(std::move(store_options)),
      records(std::move(record_table)),
      chunks(std::move(chunk_table)),
      // At least one chunk: a share is cut to what exists at all, so a smaller budget would not hold a chunk's buffer.
      staging(std::max<uint64_t>(options.staging_bytes, options.chunk_bytes)),
      opened_at(TimePoint::from_ns(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count())),
      opened_steady(steady_now()),
      ledger(options.ledger) {}

TimePoint StoreCore::State::now() const {
  if (options.clock) return options.clock();
  return opened_at + (steady_now() - opened_steady);
}

bool StoreCore::State::is_leased(uint64_t sequence) const {
  const auto found = lease_counts.find(sequence);
  return found != lease_counts.end() && found->second > 0;
}

uint64_t StoreCore::State::tenant_bytes(const std::string& tenant) const {
  const auto found = published_bytes.find(tenant);
  return saturating_add(found == published_bytes.end() ? 0 : found->second, ledger.open_bytes(tenant));
}

StoreCore::StoreCore(std::unique_ptr<State> state) : state_(std::move(state)) {}

StoreCore::~StoreCore() = default;

Result<TxnState> StoreCore::begin(const TxnId& txn, const UploadTarget& target) {
  State& state = *state_;
  TRY_STATUS(check_name("the transaction's name", txn.text()));
  TRY_STATUS(check_name("the tenant's name", target.tenant));
  const std::lock_guard lock(state.mutex);
  const bool is_known = state.ledger.target(txn) != nullptr;
  if (!is_known && target.content) {
    const auto published = state.contents.find(*target.content);
    // Refused early, before any byte moves. The commit asks again, since another upload may publish first.
    // An expired publication does not conflict: the commit removes it.
    if (published != state.contents.end() && state.is_live(state.publications.at(published->second), state.now()))
      return Status(Code::kConflict, fmt::format("snapshot {} is stored already, as publication {}",
                                                 target.content->hex(), published->second));
  }
  TRY(const TxnState begun, state.ledger.begin(txn, target, state.now()));
  // Repeated (R4): the record exists. Only a new transaction is written.
  if (is_known || begun.phase != TxnPhase::kOpen) return begun;
  // Not durable: a begin that a loss of power takes has no data yet, and its uploader begins again.
  const Status written = state.write({{txn_key(txn), encode(TxnRecord{begun, target, state.now()})}}, false);
  if (!written.ok()) {
    // The record may be in the table nevertheless (tables.h). It then names an open transaction without data, which the
    // next opening aborts at the end of its lease (I4).
    state.ledger.undo_begin(txn);
    return written;
  }
  state.uploads[txn];
  state.crash_point("begin-recorded");
  return begun;
}

namespace {

// The ledger has found every object of the manifest (start_commit), and both lists change together under the mutex. A
// difference is refused all the same: it would publish an object without bytes (I2).
Result<std::vector<ObjectNumber>> numbers_of(const ManifestEnvelope& manifest, const UploadData& upload) {
  std::vector<ObjectNumber> numbers;
  for (const StoredObject& object : manifest.objects) {
    const auto found = upload.objects.find(object.id);
    if (found == upload.objects.end())
      return Status(Code::kNotFound, fmt::format("object '{}' was not put", object.id.text()));
    numbers.push_back(found->second);
  }
  return numbers;
}

uint64_t bytes_of(const std::vector<StoredObject>& objects) {
  uint64_t bytes = 0;
  for (const StoredObject& object : objects) bytes = saturating_add(bytes, object.bytes);
  return bytes;
}

}  // namespace

// Publishes an upload: data first, then one batch of records. Every return between start_commit and committed() goes
// through `failed`, or the transaction would stay in the committing state and could never end (I4).
Result<TxnState> StoreCore::commit(const TxnId& txn, const Publication& publication) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  // Checks that the upload holds exactly the objects of the publication, with equal checksums (I1), and that no put is
  // under way. What follows does not check that again.
  TRY(const TxnState started, state.ledger.start_commit(txn, publication, state.now()));
  if (started.phase != TxnPhase::kOpen) return started;
  const auto failed = [&](Status status) {
    state.ledger.commit_failed(txn);
    return status;
  };
  const UploadTarget target = *state.ledger.target(txn);
  if (const auto published = target.content ? state.contents.find(*target.content) : state.contents.end();
      published != state.contents.end()) {
    PublicationRecord& other = state.publications.at(published->second);
    if (state.is_live(other, state.now()))
      return failed(Status(Code::kConflict, fmt::format("snapshot {} is stored already, as publication {}",
                                                        target.content->hex(), other.sequence)));
    // It has expired, so lookups do not find it anyway. Its name has to be free before the new publication takes it.
    if (const Status removed = state.mark_removed(other); !removed.ok()) return failed(removed);
  }
  if (publication.ttl && publication.ttl->ns() <= 0)
    return failed(Status(Code::kInvalidArgument, "a time to live is not above zero"));
  const auto* manifest = std::get_if<AnyManifest>(&publication.content);
  if (manifest != nullptr && (*manifest)->content != *target.content)
    return failed(Status(Code::kInvalidArgument,
                         fmt::format("the manifest is of another snapshot than {}", target.content->hex())));
  UploadData& upload = state.uploads[txn];

  // Data first (I2): what the records will name is durable before they are written. The mutex can be released: the
  // ledger admits no put and no second commit of this transaction now, so no other thread uses the upload's segments.
  if (!upload.added || !upload.segments.empty()) {
    std::vector<std::unique_ptr<UploadSegment>> segments = std::move(upload.segments);
    upload.segments.clear();
    lock.unlock();
    state.crash_point("commit-before-data");
    Status status;
    std::vector<std::unique_ptr<SegmentWriter>> writers;
    for (const std::unique_ptr<UploadSegment>& segment : segments) {
      if (!segment->finished && status.ok()) status = segment->writer->finish();
      writers.push_back(std::move(segment->writer));
    }
    if (status.ok()) status = state.chunks->add(std::move(writers));
    state.crash_point("commit-after-data");
    lock.lock();
    if (!status.ok()) {
      // add() makes all segments part of the table or none, so no object of this upload can be relied on.
      // The segments are gone with their writers; the next commit names the objects that have to be put again.
      for (const auto& [object, number] : upload.objects) state.ledger.object_lost(txn, object, status.message());
      upload.objects.clear();
      return failed(status);
    }
    upload.added = true;
  }

  // Then one atomic, durable write that makes it visible (I2). A repeated commit uses the same sequence, so a
  // publication whose write ended unknown is written over and not doubled.
  // Set before the write and kept on failure: an abort finds by it the records that may have been written.
  if (!upload.sequence) upload.sequence = ++state.last_sequence;
  PublicationRecord record;
  record.sequence = *upload.sequence;
  record.txn = txn;
  record.content = target.content;
  record.tenant = target.tenant;
  record.created = state.now();
  if (publication.ttl) record.expires = record.created + *publication.ttl;
  // All numbers that were ever given to the upload, also those of segments that were given up: naming one that does not
  // exist is harmless, and not naming one that exists would let collect() drop data of a publication.
  record.segments.assign(upload.numbers.begin(), upload.numbers.end());
  ObjectsRecord objects;
  std::vector<RecordChange> changes;
  if (manifest != nullptr) {
    Result<std::vector<ObjectNumber>> numbers = numbers_of(**manifest, upload);
    if (!numbers.ok()) return failed(numbers.status());
    objects.numbers = std::move(numbers).value();
    record.object_count = objects.numbers.size();
    record.bytes = bytes_of((*manifest)->objects);
    std::string text = manifest->text();
    if (text.size() > manifest_limits().bytes_max)
      return failed(
          Status(Code::kInvalidArgument, fmt::format("the manifest has {} bytes, at most {} can be read again",
                                                     text.size(), manifest_limits().bytes_max)));
    changes.push_back({numbered_key(kManifestPrefix, record.sequence), std::move(text)});
  } else {
    for (const PageEntry& entry : std::get<std::vector<PageEntry>>(publication.content)) {
      const std::string key = page_key(entry.key);
      record.bytes = saturating_add(record.bytes, entry.object.bytes);
      ++record.object_count;
      const Result<std::optional<std::string>> known = state.records->get(key);
      if (!known.ok()) return failed(known.status());
      if (known.value()) {
        const Result<PageRecord> page = decode<PageRecord>(key, *known.value());
        if (!page.ok()) return failed(page.status());
        const auto other = state.publications.find(page.value().sequence);
        if (other != state.publications.end() && state.is_live(other->second, record.created))
          continue;  // a live publication has this page: the first one stays
      }
      objects.page_keys.push_back(key);
      changes.push_back(
          {key, encode(PageRecord{record.sequence, FoundObject{entry.object, upload.objects.at(entry.object.id)}})});
    }
  }
  changes.push_back({numbered_key(kObjectsPrefix, record.sequence), encode(objects)});
  changes.push_back({numbered_key(kPublicationPrefix, record.sequence), encode(record)});
  TxnRecord closed{started, target, record.created};
  closed.state.phase = TxnPhase::kCommitted;
  closed.state.sequence = record.sequence;
  changes.push_back({txn_key(txn), encode(closed)});
  // Records of the transaction and of the publication go in the same batch, so no crash leaves one without the other
  // (I2, R4).
  // An error does not say that nothing was written: the process may die before the table recovers (tables.h).
  if (const Status written = state.write(std::move(changes), true); !written.ok())
    return failed(Status(Code::kOutcomeUnknown,
                         fmt::format("publication {} may have been written: {}", record.sequence, written.message())));
  state.crash_point("commit-published");
  // From here on memory follows the table; nothing below can fail.
  if (record.content) state.contents[*record.content] = record.sequence;
  uint64_t& tenant_bytes = state.published_bytes[record.tenant];
  tenant_bytes = saturating_add(tenant_bytes, record.bytes);
  const TxnState committed = state.ledger.committed(txn, record.sequence, record.created);
  state.publications[record.sequence] = std::move(record);
  state.uploads.erase(txn);
  return committed;
}

// Order: ledger, record, segments. The ledger first, so that from now on no commit can win. When the record cannot be
// written the upload stays in `uploads` with a closed transaction; the caller's next abort or collect() writes it
// again. A crash before the record leaves the transaction open, and one behind it leaves segments that no record names:
// both are collected (I4).
Result<TxnState> StoreCore::State::abort(const TxnId& txn, const std::string& reason) {
  TRY(const TxnState ended, ledger.abort(txn, reason, now()));
  if (ended.phase != TxnPhase::kAborted) return ended;
  std::vector<RecordChange> changes;
  std::vector<uint64_t> garbage;
  const auto upload = uploads.find(txn);
  if (upload != uploads.end()) {
    if (const std::optional<uint64_t> sequence = upload->second.sequence) {
      // A commit ended unknown, so its publication may be in the table. It must not be found after the abort (I2).
      changes.push_back({numbered_key(kPublicationPrefix, *sequence), std::nullopt});
      changes.push_back({numbered_key(kManifestPrefix, *sequence), std::nullopt});
      TRY(const std::optional<std::string> objects, records->get(numbered_key(kObjectsPrefix, *sequence)));
      if (objects) {
        TRY(const ObjectsRecord written, decode<ObjectsRecord>(kObjectsPrefix, *objects));
        for (const std::string& key : written.page_keys) {
          TRY(const bool is_own, owns_page(*sequence, key));
          if (is_own) changes.push_back({key, std::nullopt});
        }
      }
      changes.push_back({numbered_key(kObjectsPrefix, *sequence), std::nullopt});
    }
    if (upload->second.added) garbage.assign(upload->second.numbers.begin(), upload->second.numbers.end());
  }
  const UploadTarget* target = ledger.target(txn);
  changes.push_back({txn_key(txn), encode(TxnRecord{ended, *target, now()})});
  const Status written = write(std::move(changes), true);
  if (!written.ok())
    return Status(Code::kOutcomeUnknown,
                  fmt::format("the abort of '{}' may not be recorded: {}", txn.text(), written.message()));
  // After the write only: a repeated abort has to remove the same records (R4).
  if (upload != uploads.end()) {
    for (const auto& [object, assembly] : upload->second.assemblies) assembly_bytes -= assembly->charged;
    uploads.erase(upload);
  }
  crash_point("abort-recorded");
  // The abort is recorded, so an error is not the caller's: no record names these segments now, and collect() removes
  // those that are left (I4).
  if (!garbage.empty()) [[maybe_unused]]
    const Status removed = chunks->remove(garbage);
  return ended;
}

Result<TxnState> StoreCore::abort(const TxnId& txn) {
  State& state = *state_;
  TRY_STATUS(check_name("the transaction's name", txn.text()));
  const std::lock_guard lock(state.mutex);
  return state.abort(txn, "by its uploader");
}

// Finds and leases in one critical section: a removal either comes before and is seen, or comes after and waits for the
// lease. The lease's record is not durable: after a loss of power its holder's gets fail with kConflict, and it looks
// up again.
Result<Found> StoreCore::lookup(const Lookup& lookup) {
  State& state = *state_;
  TRY_STATUS(check_name("the lease holder's name", lookup.lease.holder));
  if (!lookup.lease.request.empty()) TRY_STATUS(check_name("the name of the look-up", lookup.lease.request));
  const std::lock_guard lock(state.mutex);
  // The same question again, whose answer may have been lost: one lease, which holds what is found now (I4).
  const std::pair<std::string, std::string> request(lookup.lease.holder, lookup.lease.request);
  const auto known = request.second.empty() ? state.requested_leases.end() : state.requested_leases.find(request);
  const bool is_again = known != state.requested_leases.end();
  // Leases that are over count until collect() runs; the limit bounds memory, not holders.
  if (!is_again && state.leases.size() >= state.options.lease_count_max)
    return Status(Code::kUnavailable, fmt::format("{} leases are held, which is the limit", state.leases.size()));
  Found found;
  LeaseRecord lease;
  std::set<uint64_t> sequences;
  const TimePoint now = state.now();
  if (const ContentId* content = std::get_if<ContentId>(&lookup.key)) {
    TRY(const PublicationRecord* const record, state.find_live(*content, now));
    TRY(found.manifest, state.manifest_of(record->sequence));
    const std::string key = numbered_key(kObjectsPrefix, record->sequence);
    TRY(const std::string text, state.required_record(key));
    TRY(const ObjectsRecord objects, decode<ObjectsRecord>(key, text));
    const std::vector<StoredObject>& stored = found.manifest->objects;
    // Manifest and numbers are two records of one batch. A difference is damage, and pairing them by index would read
    // the bytes of another object.
    if (objects.numbers.size() != stored.size())
      return Status(Code::kDataLoss, fmt::format("publication {} has {} objects and {} numbers of objects",
                                                 record->sequence, stored.size(), objects.numbers.size()));
    for (size_t i = 0; i < stored.size(); ++i) found.objects.push_back(FoundObject{stored[i], objects.numbers[i]});
    sequences.insert(record->sequence);
  } else {
    // Pages that are not stored are left out of the answer and are no error: the caller asks for a prefix and uses what
    // exists. Each page is complete by itself (I2).
    for (const PageObjectKey& page : std::get<std::vector<PageObjectKey>>(lookup.key)) {
      const std::string key = page_key(page);
      TRY(const std::optional<std::string> text, state.records->get(key));
      if (!text) continue;
      TRY(PageRecord record, decode<PageRecord>(key, *text));
      const auto publication = state.publications.find(record.sequence);
      if (publication == state.publications.end() || !state.is_live(publication->second, now)) continue;
      found.objects.push_back(std::move(record.object));
      found.pages.push_back(page);
      sequences.insert(record.sequence);
    }
  }
  lease.id = is_again ? known->second : LeaseId(++state.last_lease);
  lease.holder = lookup.lease.holder;
  lease.end = now + lookup.lease.duration;
  lease.sequences.assign(sequences.begin(), sequences.end());
  // Before memory: on an error no publication is held by a lease that the caller never heard of.
  TRY_STATUS(state.write({{numbered_key(kLeasePrefix, lease.id.value()), encode(lease)}}, false));
  for (const uint64_t sequence : sequences) ++state.lease_counts[sequence];
  if (is_again) state.count_off(state.leases.at(lease.id));
  if (!request.second.empty()) state.requested_leases[request] = lease.id;
  found.lease = lease.id;
  found.lease_end = lease.end;
  state.leases[lease.id] = std::move(lease);
  return found;
}

Result<PublicationRecord*> StoreCore::State::find(const ContentId& content) {
  const auto found = contents.find(content);
  if (found == contents.end()) return no_snapshot(content);
  return &publications.at(found->second);
}

Result<const PublicationRecord*> StoreCore::State::find_live(const ContentId& content, TimePoint time) {
  TRY(const PublicationRecord* const record, find(content));
  if (!is_live(*record, time)) return no_snapshot(content);
  return record;
}

Result<std::string> StoreCore::State::required_record(const std::string& key) const {
  TRY(std::optional<std::string> text, records->get(key));
  if (!text) return Status(Code::kDataLoss, fmt::format("the store's record '{}' is missing", key));
  return *std::move(text);
}

Result<AnyManifest> StoreCore::State::manifest_of(uint64_t sequence) {
  if (const auto* cached = manifests.find(sequence)) return *cached;
  TRY(const std::string text, required_record(numbered_key(kManifestPrefix, sequence)));
  Diagnostics diagnostics(fmt::format("the manifest of publication {}", sequence));
  AnyManifest manifest = read_manifest(text, manifest_limits(), diagnostics);
  if (manifest == nullptr) return Status(Code::kDataLoss, diagnostics.to_status().message());
  return manifests.put(sequence, std::move(manifest));
}

Result<AnyManifest> StoreCore::manifest(const ContentId& content) const {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  TRY(const PublicationRecord* const record, state.find_live(content, state.now()));
  return state.manifest_of(record->sequence);
}

void StoreCore::State::count_off(const LeaseRecord& lease) {
  for (const uint64_t sequence : lease.sequences)
    if (--lease_counts[sequence] == 0) lease_counts.erase(sequence);
}

std::map<LeaseId, LeaseRecord>::iterator StoreCore::State::forget_lease(
    std::map<LeaseId, LeaseRecord>::iterator lease) {
  count_off(lease->second);
  std::erase_if(requested_leases, [&](const auto& each) { return each.second == lease->first; });
  return leases.erase(lease);
}

// Repeatable (R4): a lease that is not known is released already. The lease is gone before drop() is tried, so an error
// of the drop does not bring it back; collect() then drops what is left (I4).
Status StoreCore::release(LeaseId lease) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto found = state.leases.find(lease);
  if (found == state.leases.end()) return Status();  // released before, or over
  const std::vector<uint64_t> sequences = found->second.sequences;
  TRY_STATUS(state.write({{numbered_key(kLeasePrefix, lease.value()), std::nullopt}}, false));
  state.forget_lease(found);
  for (const uint64_t sequence : sequences) {
    const auto publication = state.publications.find(sequence);
    // Looked up again in each round, because drop() releases the mutex.
    if (publication != state.publications.end() && publication->second.removed && !state.is_leased(sequence))
      TRY_STATUS(state.drop(sequence, lock));
  }
  return Status();
}

Result<bool> StoreCore::State::owns_page(uint64_t sequence, const std::string& key) const {
  TRY(const std::optional<std::string> text, records->get(key));
  if (!text) return false;
  TRY(const PageRecord page, decode<PageRecord>(key, *text));
  return page.sequence == sequence;
}

// Takes the publication out of Live with one durable write, together with the records of its pages (I2). Its data stays
// while a lease holds it. A page whose record is another publication's keeps that record.
Status StoreCore::State::mark_removed(PublicationRecord& publication) {
  PublicationRecord removed = publication;
  removed.removed = true;
  std::vector<RecordChange> changes = {{numbered_key(kPublicationPrefix, removed.sequence), encode(removed)}};
  const std::string key = numbered_key(kObjectsPrefix, removed.sequence);
  TRY(const std::optional<std::string> text, records->get(key));
  if (text) {
    TRY(const ObjectsRecord objects, decode<ObjectsRecord>(key, *text));
    for (const std::string& page : objects.page_keys) {
      TRY(const bool is_own, owns_page(removed.sequence, page));
      if (is_own) changes.push_back({page, std::nullopt});
    }
  }
  TRY_STATUS(write(std::move(changes), true));
  if (removed.content) contents.erase(*removed.content);
  publication.removed = true;
  return Status();
}

// Removes the data of a removed publication that no lease holds, and then its records. In this order a crash in between
// leaves records that name what is still to be dropped (I4). Releases the mutex meanwhile; `dropping` keeps two threads
// from dropping the same publication.
Status StoreCore::State::drop(uint64_t sequence, std::unique_lock<std::mutex>& lock) {
  if (!dropping.insert(sequence).second) return Status();
  const PublicationRecord record = publications.at(sequence);
  lock.unlock();
  const Status status = chunks->remove(record.segments);
  crash_point("drop-after-data");
  lock.lock();
  dropping.erase(sequence);
  TRY_STATUS(status);
  // Not durable: after a loss of power the publication is back, still marked as removed, and is dropped again.
  TRY_STATUS(write({{numbered_key(kPublicationPrefix, sequence), std::nullopt},
                    {numbered_key(kManifestPrefix, sequence), std::nullopt},
                    {numbered_key(kObjectsPrefix, sequence), std::nullopt}},
                   false));
  // The quota counts removed publications until here: their bytes occupy the disk for as long as a lease holds them.
  uint64_t& bytes = published_bytes[record.tenant];
  bytes -= std::min(bytes, record.bytes);
  if (bytes == 0) published_bytes.erase(record.tenant);
  publications.erase(sequence);
  return Status();
}

Status StoreCore::remove(const ContentId& content) {
  State& state = *state_;
  uint64_t sequence = 0;
  {
    const std::lock_guard lock(state.mutex);
    // Else an open upload of the snapshot could publish it again after the removal.
    bool aborted = false;
    for (const TxnId& txn : state.ledger.uploads_of(content)) {
      TRY(const TxnState ended, state.abort(txn, "its snapshot was removed"));
      aborted |= ended.phase == TxnPhase::kAborted;
    }
    const Result<PublicationRecord*> found = state.find(content);
    if (!found.ok()) return aborted ? Status() : found.status();
    sequence = found.value()->sequence;
  }
  // The mutex was released in between, so a second removal or an expiry may have come first; that call decides by the
  // record as it is now.
  return remove_publication(sequence);
}

// Pins are checked and the removal recorded in one critical section, so a pin is either seen here or is refused because
// the publication is removed.
Status StoreCore::remove_publication(uint64_t sequence) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto found = state.publications.find(sequence);
  if (found == state.publications.end() || found->second.removed) return no_publication(sequence);
  if (!found->second.pins.empty())
    return Status(Code::kConflict,
                  fmt::format("publication {} is pinned by '{}'", sequence, fmt::join(found->second.pins, "', '")));
  TRY_STATUS(state.mark_removed(found->second));
  state.crash_point("remove-recorded");
  if (state.is_leased(sequence)) return Status();
  return state.drop(sequence, lock);
}

Status StoreCore::pin(uint64_t sequence, const std::string& holder) {
  State& state = *state_;
  TRY_STATUS(check_name("the pin's holder", holder));
  const std::lock_guard lock(state.mutex);
  const auto found = state.publications.find(sequence);
  if (found == state.publications.end() || found->second.removed) return no_publication(sequence);
  // Changed as a copy, so that memory stays as recorded when the write fails.
  PublicationRecord pinned = found->second;
  pinned.pins.insert(holder);
  TRY_STATUS(state.write({{numbered_key(kPublicationPrefix, sequence), encode(pinned)}}, true));
  found->second = std::move(pinned);
  return Status();
}

Status StoreCore::unpin(uint64_t sequence, const std::string& holder) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const auto found = state.publications.find(sequence);
  if (found == state.publications.end()) return no_publication(sequence);
  PublicationRecord unpinned = found->second;
  if (unpinned.pins.erase(holder) == 0)
    return Status(Code::kNotFound, fmt::format("publication {} is not pinned by '{}'", sequence, holder));
  TRY_STATUS(state.write({{numbered_key(kPublicationPrefix, sequence), encode(unpinned)}}, true));
  found->second = std::move(unpinned);
  return Status();
}

// Brings the store back to what is Named and Held (I4). The order matters: aborts free names of segments, ended leases
// free publications, expired publications join those to drop, and the sweep of segments comes last, when everything
// that may be named is known. Each step is idempotent, so a crash or an error in the middle costs only a repetition.
Result<GcReport> StoreCore::State::collect(std::unique_lock<std::mutex>& lock) {
  GcReport report;
  const TimePoint time = now();
  for (const TxnId& txn : ledger.silent(time)) {
    TRY(const TxnState ended, abort(txn, "its uploader fell silent"));
    report.transactions_aborted += ended.phase == TxnPhase::kAborted ? 1 : 0;
  }
  // Aborts whose record could not be written: the ledger has them, the table does not.
  std::vector<TxnId> unrecorded;
  for (const auto& [txn, upload] : uploads)
    if (!ledger.is_open(txn)) unrecorded.push_back(txn);
  for (const TxnId& txn : unrecorded) TRY_STATUS(abort(txn, "its abort was not recorded").status());
  std::vector<RecordChange> forgotten;
  for (const TxnId& txn : ledger.forget(time)) forgotten.push_back({txn_key(txn), std::nullopt});
  for (auto lease = leases.begin(); lease != leases.end();) {
    if (lease->second.end > time) {
      ++lease;
      continue;
    }
    forgotten.push_back({numbered_key(kLeasePrefix, lease->first.value()), std::nullopt});
    lease = forget_lease(lease);
    ++report.leases_ended;
  }
  if (!forgotten.empty()) TRY_STATUS(write(std::move(forgotten), false));
  std::vector<uint64_t> to_drop;
  for (auto& [sequence, record] : publications) {
    if (!record.removed && record.expires && *record.expires <= time && record.pins.empty()) {
      TRY_STATUS(mark_removed(record));
      ++report.publications_expired;
    }
    if (record.removed && !is_leased(sequence)) to_drop.push_back(sequence);
  }
  for (const uint64_t sequence : to_drop) {
    const auto found = publications.find(sequence);
    if (found == publications.end()) continue;  // another thread dropped it while drop() had released the mutex
    const PublicationRecord record = found->second;
    TRY_STATUS(drop(sequence, lock));
    ++report.publications_dropped;
    report.segments_dropped += record.segments.size();
    report.bytes_dropped = saturating_add(report.bytes_dropped, record.bytes);
  }

  // Segments that are not Named (I4): of uploads that a crash interrupted, or of a drop or an abort that failed.
  std::set<uint64_t> named;
  for (const auto& [sequence, record] : publications) named.insert(record.segments.begin(), record.segments.end());
  for (const auto& [txn, upload] : uploads) named.insert(upload.numbers.begin(), upload.numbers.end());
  // With the mutex held since `named` was filled, no upload can get a number in between. A segment above `newest` was
  // not given out by this store, so it is not ours to remove.
  const uint64_t newest = last_segment;
  TRY(std::vector<uint64_t> orphans, chunks->segments());
  std::erase_if(orphans, [&](uint64_t segment) { return segment > newest || named.contains(segment); });
  if (!orphans.empty()) TRY_STATUS(chunks->remove(orphans));
  report.segments_dropped += orphans.size();
  crash_point("gc-orphans-dropped");
  return report;
}

Result<GcReport> StoreCore::gc() {
  std::unique_lock lock(state_->mutex);
  state_->crash_point("gc-begin");
  return state_->collect(lock);
}

}  // namespace crossdock
