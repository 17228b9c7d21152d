// Opening, listing and verifying a store, and its catalog of layouts: calls that the port does not have.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/store/store_state.h"
#include "base/bytes.h"
#include "base/checked.h"

namespace crossdock {
namespace {

// Calls take(record) for each record of a kind.
template <class Record, class Take>
Status read_records(const RecordTable& records, std::string_view prefix, Take take) {
  Status status;
  TRY_STATUS(records.scan(std::string(prefix), [&](std::string_view key, std::string_view value) {
    Result<Record> record = decode<Record>(key, value);
    status = record.ok() ? take(std::move(record).value()) : record.status();
    return status.ok();
  }));
  return status;
}

Status write_number(RecordTable& records, std::string_view key, uint64_t number) {
  ByteWriter out;
  out.u64(number);
  const RecordChange change{std::string(key), std::move(out).take()};
  return records.write(std::span(&change, 1), true);
}

// A store without the record is new: the format is written before anything else, so no store with data lacks it.
Status check_format(RecordTable& records) {
  TRY(const std::optional<std::string> written, records.get(std::string(kFormatKey)));
  if (!written) return write_number(records, kFormatKey, kStoreFormat);
  ByteReader in(*written);
  const uint64_t format = in.u64();
  if (in.at_end() && format == kStoreFormat) return Status();
  return Status(Code::kInvalidArgument,
                fmt::format("the store has format {}, this program knows format {}", format, kStoreFormat));
}

// Leases are not durable. After a loss of power a new lease must not get the number of a lost one, whose holder would
// read under it. So the upper 32 bits of a lease's number count how often the store was opened, and that count is
// durable.
Result<uint64_t> first_lease_of_next_life(RecordTable& records) {
  constexpr int kLifeShift = 32;
  TRY(const std::optional<std::string> written, records.get(std::string(kLifeKey)));
  uint64_t life = 0;
  if (written) {
    ByteReader in(*written);
    life = in.u64();
    if (!in.at_end() || life >= UINT32_MAX)
      return Status(Code::kDataLoss, fmt::format("the store's record '{}' is damaged", kLifeKey));
  }
  // Before the first lease of this life is given, so a crash wastes a number and never repeats one.
  TRY_STATUS(write_number(records, kLifeKey, life + 1));
  return life << kLifeShift;
}

}  // namespace

// Recovery. Memory is derived from the records; nothing else survives a restart. Publications come first, since leases
// and transactions refer to them, and the collection comes last, when everything that names a segment is known (I4). It
// deletes only segments that no record names and publications that are marked as removed, so a crash in the middle of
// it is repaired by the next opening.
Result<std::unique_ptr<StoreCore>> StoreCore::open(std::unique_ptr<RecordTable> records,
                                                   std::unique_ptr<ChunkTable> chunks, StoreOptions options) {
  if (options.chunk_bytes == 0) return Status(Code::kInvalidArgument, "chunks of 0 bytes");
  auto made = std::make_unique<State>(std::move(records), std::move(chunks), std::move(options));
  State& state = *made;
  TRY_STATUS(check_format(*state.records));
  TRY(state.last_lease, first_lease_of_next_life(*state.records));
  state.crash_point("recovery-begin");
  const TimePoint now = state.now();
  TRY_STATUS(read_records<PublicationRecord>(*state.records, kPublicationPrefix, [&](PublicationRecord record) {
    state.last_sequence = std::max(state.last_sequence, record.sequence);
    for (const uint64_t segment : record.segments) state.last_segment = std::max(state.last_segment, segment);
    uint64_t& bytes = state.published_bytes[record.tenant];
    bytes = saturating_add(bytes, record.bytes);
    if (record.content && !record.removed) {
      // Two publications of one snapshot: the commit of the first ended unknown, and the second was written without
      // knowing of it. Lookups find the newest only (I2); collect() drops the other (I4).
      const auto [found, is_first] = state.contents.try_emplace(*record.content, record.sequence);
      if (!is_first) state.publications.at(std::exchange(found->second, record.sequence)).removed = true;
    }
    state.publications[record.sequence] = std::move(record);
    return Status();
  }));
  TRY_STATUS(read_records<LeaseRecord>(*state.records, kLeasePrefix, [&](LeaseRecord record) {
    state.last_lease = std::max(state.last_lease, record.id.value());
    for (const uint64_t sequence : record.sequences) ++state.lease_counts[sequence];
    state.leases[record.id] = std::move(record);
    return Status();
  }));
  TRY_STATUS(read_records<TxnRecord>(*state.records, kTxnPrefix, [&](const TxnRecord& record) {
    const bool is_open = record.state.phase == TxnPhase::kOpen;
    // Renewals of a transaction's lease are not recorded, so it gets one lease from its begin on. Segments that were
    // not added to the table are gone; a commit names the objects that have to be put again.
    const TimePoint time = is_open ? record.time + record.target.lease : record.time;
    state.ledger.restore(record.state, record.target, time);
    if (is_open) state.uploads[record.state.txn];
    // Also of publications that were removed since: a sequence names one publication for ever.
    if (record.state.sequence) state.last_sequence = std::max(state.last_sequence, *record.state.sequence);
    return Status();
  }));
  // A number that an interrupted upload used is not given out again, since its segment may still be in the table.
  TRY(const std::vector<uint64_t> segments, state.chunks->segments());
  for (const uint64_t segment : segments) state.last_segment = std::max(state.last_segment, segment);
  // No other thread knows the store yet; abort() and collect() ask for the mutex all the same.
  std::unique_lock lock(state.mutex);
  for (const TxnId& txn : state.ledger.silent(now)) TRY_STATUS(state.abort(txn, "its uploader fell silent").status());
  state.crash_point("recovery-aborted");
  TRY_STATUS(state.collect(lock).status());
  state.crash_point("recovery-dropped");
  lock.unlock();
  return std::unique_ptr<StoreCore>(new StoreCore(std::move(made)));
}

Result<std::vector<PublicationInfo>> StoreCore::list() const {
  const State& state = *state_;
  const std::lock_guard lock(state.mutex);
  std::vector<PublicationInfo> infos;
  for (const auto& [sequence, record] : state.publications) {
    PublicationInfo info;
    info.sequence = sequence;
    info.content = record.content;
    info.tenant = record.tenant;
    info.object_count = record.object_count;
    info.bytes = record.bytes;
    info.created = record.created;
    info.expires = record.expires;
    info.removed = record.removed;
    info.pins.assign(record.pins.begin(), record.pins.end());
    if (const auto leases = state.lease_counts.find(sequence); leases != state.lease_counts.end())
      info.lease_count = leases->second;
    infos.push_back(std::move(info));
  }
  return infos;
}

Result<StoreStats> StoreCore::stats() const {
  const State& state = *state_;
  const std::lock_guard lock(state.mutex);
  StoreStats stats;
  for (const auto& [sequence, record] : state.publications) {
    if (record.removed) {
      ++stats.removed;
      stats.removed_bytes = saturating_add(stats.removed_bytes, record.bytes);
      continue;
    }
    ++(record.content ? stats.snapshots : stats.page_publications);
    stats.objects += record.object_count;
    stats.bytes = saturating_add(stats.bytes, record.bytes);
    stats.pins += record.pins.size();
  }
  stats.open_transactions = state.ledger.open_count();
  stats.leases = state.leases.size();
  TRY(const std::vector<uint64_t> segments, state.chunks->segments());
  stats.segments = segments.size();
  stats.staging_bytes_most = state.staging.most_used();
  return stats;
}

// Reads chunks as a get does. Snapshots are read under leases of its own, so a removal during the check does not look
// like damage; pages are not leased here. Damage is reported and does not end the check; only a caller that cancels
// does.
Result<VerifyReport> StoreCore::verify(const std::function<bool(uint64_t, uint64_t)>& progress) const {
  const State& state = *state_;
  auto& self = const_cast<StoreCore&>(*this);
  VerifyReport report;
  std::map<uint64_t, std::vector<FoundObject>> objects;
  std::vector<LeaseId> leases;
  TRY(const std::vector<PublicationInfo> infos, list());
  uint64_t all_bytes = 0;
  for (const PublicationInfo& info : infos) {
    if (info.removed) continue;
    ++report.publications;
    if (info.content) {
      const Result<Found> found = self.lookup(Lookup{*info.content, LeaseRequest{"verify", Duration::from_s(86400)}});
      if (!found.ok()) {
        if (found.status().code() == Code::kNotFound) continue;  // removed or expired meanwhile
        return found.status();
      }
      leases.push_back(found.value().lease);
      objects[info.sequence] = found.value().objects;
    }
  }
  TRY_STATUS(read_records<PageRecord>(*state.records, kPagePrefix, [&](PageRecord record) {
    objects[record.sequence].push_back(std::move(record.object));
    return Status();
  }));
  for (const auto& [sequence, list] : objects)
    for (const FoundObject& object : list) all_bytes = saturating_add(all_bytes, object.object.bytes);
  Status ended;
  uint64_t seen_bytes = 0;
  for (const auto& [sequence, list] : objects)
    for (const FoundObject& object : list) {
      ++report.objects;
      for (uint64_t chunk = 0; chunk < object.object.chunk_crc32c.size(); ++chunk) {
        GetReport read;
        const Status status = state.read_chunks(
            object, std::span(&chunk, 1), [](uint64_t, std::span<const std::byte>) {}, read);
        ++report.chunks;
        const Range bytes = chunk_range(chunk, object.object.chunk_bytes, object.object.bytes);
        report.bytes += bytes.size();
        if (!status.ok()) report.damaged.push_back({sequence, object.object.id.text(), chunk, bytes, status.message()});
        seen_bytes += bytes.size();
        if (progress && !progress(seen_bytes, all_bytes))
          ended =
              Status(Code::kCancelled,
                     fmt::format("the check was cancelled after {} of {} bytes, of which {} chunks are damaged; the "
                                 "store is unchanged",
                                 seen_bytes, all_bytes, report.damaged.size()));
        if (!ended.ok()) break;
      }
      if (!ended.ok()) break;
    }
  for (const LeaseId lease : leases) TRY_STATUS(self.release(lease));
  TRY_STATUS(ended);
  return report;
}

Result<std::vector<std::string>> StoreCore::documents(const Sha256Digest& list) const {
  const std::string key = fmt::format("{}{}", kCatalogPrefix, list.hex());
  TRY(const std::optional<std::string> text, state_->records->get(key));
  std::vector<std::string> documents;
  if (!text) return documents;
  ByteReader in(*text);
  for (uint64_t left = in.count(8); left > 0; --left) documents.emplace_back(in.text());
  if (!in.at_end()) return Status(Code::kDataLoss, fmt::format("the store's record '{}' is damaged", key));
  return documents;
}

Status StoreCore::replace_documents(const Sha256Digest& list, const std::vector<std::string>& replacement,
                                    uint64_t expected_count) {
  const std::lock_guard lock(state_->mutex);
  TRY(const std::vector<std::string> current, documents(list));
  // Compare and swap with the mutex held. The count stands for a revision, since lists only grow (layout_registry.cc).
  if (current.size() != expected_count)
    return Status(Code::kConflict, fmt::format("the list has {} documents, not {}", current.size(), expected_count));
  ByteWriter out;
  out.u64(replacement.size());
  for (const std::string& each : replacement) out.text(each);
  return state_->write({{fmt::format("{}{}", kCatalogPrefix, list.hex()), std::move(out).take()}}, true);
}

}  // namespace crossdock
