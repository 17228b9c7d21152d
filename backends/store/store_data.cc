// Bulk data: objects into segments, and chunks back out of them.
//
//   object    the bytes of one part. Its payload is what writers send; padding between and behind it is zero.
//   fragment  what one writer sends of an object, in one put. An object is complete when its fragments add up to
//             the payload.
//   segment   objects one after another. At any time either `uploads` or exactly one put has a segment, never both, so
//             a writer is used by one thread without a lock.
//
// put: admit (ledger) -> bytes -> fragment_taken -> [object into a segment] -> object_stored. The mutex is held only
// for the calls of the ledger, never while bytes are copied. The transaction may therefore be aborted at any point in
// between: each step asks the ledger again, and bytes that were written for an aborted transaction lie in a segment
// that is destroyed and never handed over (I2, I4).
//
// get: lease -> chunks -> checksum -> copy. No byte reaches the target before the checksum of its whole chunk was
// compared (I5); a get that fails may have written the chunks before the bad one (R3).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/memory/strided_copy.h"
#include "backends/store/store_state.h"
#include "base/checked.h"
#include "base/crc32c.h"

namespace crossdock {
namespace {

constexpr size_t kChunksAtOnce = 16;  // that one get reads before it hands them out
// A get knows the size of its own part only. It assumes a restore of many parts, so its writes go past the cache.
constexpr uint64_t kRestoredBytes = kStreamingTotalBytesMin;

// In the form without a sum: offset + span may pass 2^64, region_bytes - span cannot.
Status check_region(uint64_t offset, uint64_t span, uint64_t region_bytes, const RegionKey& key) {
  if (span <= region_bytes && offset <= region_bytes - span) return Status();
  return Status(Code::kInvalidArgument, fmt::format("a step ends at byte {} of region {}, which has {}",
                                                    saturating_add(offset, span), key.to_text(), region_bytes));
}

// Refuses steps whose spans pass 2^64 bytes, since the checks that follow compute with spans.
Status check_reach(const StepSpan& steps, const RegionId& object) {
  for (const CopyStep& each : steps.steps())
    if (!fits(each, UINT64_MAX, UINT64_MAX))
      return Status(Code::kInvalidArgument, fmt::format("object '{}': a step passes 2^64 bytes", object.text()));
  return Status();
}

std::string chunk_text(const FoundObject& object, uint64_t chunk) {
  const Range bytes = chunk_range(chunk, object.object.chunk_bytes, object.object.bytes);
  return fmt::format("object '{}' bytes [{},{}) (chunk {})", object.object.id.text(), bytes.begin(), bytes.end(),
                     chunk);
}

}  // namespace

// Blocks until the bytes are free. A request above the whole budget is cut to it, else it would wait for ever.
uint64_t Staging::take(uint64_t bytes) {
  bytes = std::min(bytes, bytes_max_);
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return left_ >= bytes; });
  left_ -= bytes;
  most_used_ = std::max(most_used_, bytes_max_ - left_);
  return bytes;
}

void Staging::give(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  left_ += bytes;
  // All, not one: the waiter that is woken first may want more than was given back.
  freed_.notify_all();
}

// The checksum of chunks that are not stored (docs/store.md). Computed piece by piece, so that no chunk of zeros is
// allocated.
uint32_t StoreCore::State::zero_crc(uint64_t bytes) const {
  static constexpr std::array<std::byte, 4096> kZeros = {};
  uint32_t sum = 0;
  for (; bytes > kZeros.size(); bytes -= kZeros.size()) sum = crc32c(kZeros, sum);
  return crc32c(std::span(kZeros).first(bytes), sum);
}

uint64_t StoreCore::State::next_segment() { return ++last_segment; }

// A segment that no other put is writing, or a new one; so as many segments grow as puts run at once. The number is
// recorded in `numbers` before the file exists: collect() never takes the segment for an orphan.
Result<std::unique_ptr<UploadSegment>> StoreCore::State::take_segment(const TxnId& txn) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex);
    const auto found = uploads.find(txn);
    if (found == uploads.end()) return Status(Code::kConflict, fmt::format("transaction '{}' was aborted", txn.text()));
    UploadData& upload = found->second;
    for (auto& segment : upload.segments)
      if (!segment->finished) {
        std::unique_ptr<UploadSegment> taken = std::move(segment);
        std::erase(upload.segments, nullptr);
        return taken;
      }
    number = next_segment();
    upload.numbers.insert(number);
  }
  auto made = std::make_unique<UploadSegment>();
  // Without the mutex: the backend opens a file here.
  made->number = number;
  TRY(made->writer, chunks->new_segment(number));
  return made;
}

// Puts a segment back, or drops it after an error: a segment with a gap is never handed over (I2). Objects that were
// written into it before are lost with it, and a commit names them (docs/store.md). Returns the error.
Status StoreCore::State::give_segment(const TxnId& txn, std::unique_ptr<UploadSegment> segment, const Status& status) {
  Status last = status;
  if (last.ok() &&
      (segment->writer->bytes() >= options.segment_bytes_max || segment->object_count == kObjectsPerSegment)) {
    last = segment->writer->finish();
    segment->finished = true;
  }
  const std::lock_guard lock(mutex);
  // Under a new lock: the transaction may have ended since the caller looked.
  const auto found = uploads.find(txn);
  if (found == uploads.end()) return last;  // aborted meanwhile
  if (last.ok()) {
    found->second.segments.push_back(std::move(segment));
    return last;
  }
  for (const RegionId& object : segment->objects) {
    found->second.objects.erase(object);
    ledger.object_lost(txn, object, last.message());
  }
  return last;
}

// fill_chunk(range, buffer): the bytes of this chunk into the zeroed buffer; false when none of the writers has any.
template <class FillChunk>
Result<StoredObject> StoreCore::State::append_object(const TxnId& txn, const PutStep& step, FillChunk fill_chunk) {
  TRY(std::unique_ptr<UploadSegment> segment, take_segment(txn));
  // Cannot overflow: a segment's number is below 2^40 - 1 (tables.h), and give_segment() retires one with 2^24 objects.
  const ObjectNumber number(segment->number * kObjectsPerSegment + segment->object_count++);
  StoredObject stored;
  stored.id = step.object;
  stored.bytes = step.object_bytes;
  stored.chunk_bytes = options.chunk_bytes;
  const uint64_t chunk_count = div_round_up(step.object_bytes, options.chunk_bytes);
  stored.chunk_crc32c.reserve(chunk_count);
  // Waits with a segment in hand, which cannot deadlock: no put waits for a segment.
  const Staging::Share share(staging, std::min<uint64_t>(options.chunk_bytes, step.object_bytes));
  std::vector<std::byte> buffer(std::min<uint64_t>(options.chunk_bytes, step.object_bytes));
  std::optional<uint32_t> zeros;
  Status status;
  for (uint64_t chunk = 0; chunk < chunk_count && status.ok(); ++chunk) {
    const Range range = chunk_range(chunk, options.chunk_bytes, step.object_bytes);
    const std::span<std::byte> bytes = std::span(buffer).first(range.size());
    // Only a chunk into which no step writes is left out. A chunk of payload that happens to be zero is stored, which
    // costs bytes but keeps the test cheap.
    if (fill_chunk(range, bytes)) {
      stored.chunk_crc32c.push_back(crc32c(bytes));
      // put() has refused objects of more than 2^32 - 1 chunks.
      status = segment->writer->append(number, static_cast<uint32_t>(chunk), bytes);
    } else if (range.size() == options.chunk_bytes) {
      if (!zeros) zeros = zero_crc(options.chunk_bytes);
      stored.chunk_crc32c.push_back(*zeros);
    } else {
      stored.chunk_crc32c.push_back(zero_crc(range.size()));
    }
  }
  if (status.ok()) {
    // Before give_segment(), which takes the object back when the segment's end fails.
    segment->objects.push_back(step.object);
    const std::lock_guard lock(mutex);
    if (const auto found = uploads.find(txn); found != uploads.end()) found->second.objects[step.object] = number;
  }
  TRY_STATUS(give_segment(txn, std::move(segment), status));
  return stored;
}

// For objects with one writer: gathers chunk by chunk, so a put needs one chunk of memory whatever the object's size.
Result<StoredObject> StoreCore::State::write_object(const TxnId& txn, const PutStep& step,
                                                    const MemoryRegistry& memory) {
  const std::span<const CopyStep> steps = step.steps.steps();
  std::vector<MemoryRegistry::Access> sources;
  if (!steps.empty()) {
    const std::vector<RegionKey>& keys = step.steps.work().source_regions;
    TRY(sources, memory.access_all(keys));
    for (const CopyStep& each : steps)
      TRY_STATUS(check_region(each.source_offset, each.source_span(), sources[each.source_region].bytes().size(),
                              keys[each.source_region]));
  }
  return append_object(txn, step, [&](Range range, std::span<std::byte> bytes) {
    bool is_clean = false;
    for (const CopyStep& each : steps) {
      if (!touches(each, StepEnd::kTarget, range)) continue;
      // The buffer still has the chunk before. Padding has to be zero, or equal content would have different checksums.
      if (!std::exchange(is_clean, true)) std::memset(bytes.data(), 0, bytes.size());
      copy_step_within(each, StepEnd::kTarget, range, sources[each.source_region].bytes(), bytes);
    }
    return is_clean;
  });
}

// Writers of one object copy at the same time without a lock: fragments are disjoint by the plan's proof
// (plan-overlap), and admit() has checked that every step ends inside the object.
Status StoreCore::State::assemble(const PutStep& step, const MemoryRegistry& memory, Assembly& assembly) {
  const std::span<const CopyStep> steps = step.steps.steps();
  if (steps.empty()) return Status();
  const std::vector<RegionKey>& keys = step.steps.work().source_regions;
  TRY(const std::vector<MemoryRegistry::Access> sources, memory.access_all(keys));
  for (const CopyStep& each : steps)
    TRY_STATUS(check_region(each.source_offset, each.source_span(), sources[each.source_region].bytes().size(),
                            keys[each.source_region]));
  for (const CopyStep& each : steps)
    copy_step(each, sources[each.source_region].bytes(), assembly.bytes, CopyStores::kCached);
  return Status();
}

Result<StoredObject> StoreCore::State::write_assembled(const TxnId& txn, const PutStep& step,
                                                       const Assembly& assembly) {
  return append_object(txn, step, [&](Range range, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), assembly.bytes.data() + range.begin(), range.size());
    return true;
  });
}

// Between admit() and the next call of the ledger the fragment is "under way": a repetition of the same put gets
// kUnavailable, so bytes are never written twice at once. Every error path calls fragment_failed(), unless the ledger
// has dropped the fragment itself, or a repetition could never be admitted.
Result<PutReceipt> StoreCore::put(const TxnId& txn, const PutStep& step, const MemoryRegistry& memory) {
  State& state = *state_;
  if (step.object_bytes > uint64_t{UINT32_MAX} * state.options.chunk_bytes)
    return Status(Code::kInvalidArgument,
                  fmt::format("object '{}' has {} bytes, at most {} can be stored", step.object.text(),
                              step.object_bytes, uint64_t{UINT32_MAX} * state.options.chunk_bytes));
  TRY_STATUS(check_reach(step.steps, step.object));
  // A single writer has the whole payload: no assembly is needed.
  const bool is_whole = step.steps.total_bytes() == step.payload_bytes;
  std::shared_ptr<Assembly> assembly;
  {
    const std::lock_guard lock(state.mutex);
    TRY(std::optional<PutReceipt> receipt, state.ledger.admit(txn, step, state.now()));
    if (receipt) return *receipt;
    const std::string& tenant = state.ledger.target(txn)->tenant;
    const auto refuse = [&](Status status) {
      state.ledger.fragment_failed(txn, step);
      return status;
    };
    UploadData& upload = state.uploads[txn];
    // After admit(), which has counted the object already; so two puts at once cannot both fit into the last bytes of a
    // quota.
    if (state.tenant_bytes(tenant) > state.options.quota_bytes) {
      const uint64_t others = state.tenant_bytes(tenant) - step.object_bytes;
      state.ledger.fragment_failed(txn, step);
      state.ledger.object_lost(txn, step.object);
      return Status(Code::kQuota,
                    fmt::format("object '{}': {} bytes more than the {} that tenant '{}' has would pass "
                                "its quota of {}",
                                step.object.text(), step.object_bytes, others, tenant, state.options.quota_bytes));
    }
    if (!is_whole) {
      std::shared_ptr<Assembly>& known = upload.assemblies[step.object];
      if (known == nullptr) {
        if (step.object_bytes > state.options.assembly_bytes) {
          upload.assemblies.erase(step.object);
          return refuse(Status(Code::kInvalidArgument,
                               fmt::format("object '{}' of {} bytes has several writers; together {} bytes can be put "
                                           "together here",
                                           step.object.text(), step.object_bytes, state.options.assembly_bytes)));
        }
        // The subtraction cannot wrap: larger objects were refused above. kUnavailable, because memory comes back when
        // other objects are complete or their uploads end.
        if (state.assembly_bytes > state.options.assembly_bytes - step.object_bytes) {
          upload.assemblies.erase(step.object);
          return refuse(Status(Code::kUnavailable,
                               fmt::format("objects of {} bytes wait for other writers", state.assembly_bytes)));
        }
        known = std::make_shared<Assembly>();
        // Charged once for all writers of the object; given back when it is stored, or by the abort.
        known->charged = step.object_bytes;
        state.assembly_bytes += step.object_bytes;
        known->bytes.resize(step.object_bytes);
      }
      assembly = known;
    }
  }

  const auto failed = [&](const Status& status) {
    const std::lock_guard lock(state.mutex);
    state.ledger.fragment_failed(txn, step);
    return status;
  };
  std::optional<StoredObject> stored;
  if (is_whole) {
    Result<StoredObject> written = state.write_object(txn, step, memory);
    if (!written.ok()) return failed(written.status());
    stored = std::move(written).value();
  } else if (const Status status = state.assemble(step, memory, *assembly); !status.ok()) {
    return failed(status);
  }
  bool complete = false;
  {
    const std::lock_guard lock(state.mutex);
    TRY(complete, state.ledger.fragment_taken(txn, step));
    if (!complete) {
      // Without checksums: the object is not complete, so there are none as stored.
      return PutReceipt{txn, step.object, step.writer, step.steps.total_bytes(), std::nullopt};
    }
  }
  if (!is_whole) {
    Result<StoredObject> written = state.write_assembled(txn, step, *assembly);
    if (!written.ok()) return failed(written.status());
    stored = std::move(written).value();
  }
  state.crash_point("put-object-written");
  const std::lock_guard lock(state.mutex);
  // An upload that was aborted meanwhile has given the charge back itself (State::abort).
  if (const auto found = state.uploads.find(txn); !is_whole && found != state.uploads.end()) {
    state.assembly_bytes -= assembly->charged;
    found->second.assemblies.erase(step.object);
  }
  return state.ledger.object_stored(txn, step, std::move(*stored));
}

// Hands out verified chunks only (I5). `taken_ok` tells an error of this code, which names the chunk, from one of the
// table, which does not know objects.
Status StoreCore::State::read_chunks(const FoundObject& object, std::span<const uint64_t> chunk_list,
                                     const UseChunk& use, GetReport& report) const {
  const StoredObject& stored = object.object;
  if (stored.chunk_bytes == 0)
    return Status(Code::kDataLoss, fmt::format("object '{}' has chunks of 0 bytes", stored.id.text()));
  // Half of the budget at most, so that one get does not make all others wait.
  const uint64_t at_once = std::clamp<uint64_t>(staging.bytes_max() / stored.chunk_bytes / 2, 1, kChunksAtOnce);
  while (!chunk_list.empty()) {
    const std::span<const uint64_t> batch = chunk_list.first(std::min<size_t>(at_once, chunk_list.size()));
    chunk_list = chunk_list.subspan(batch.size());
    std::vector<ChunkName> names;
    for (const uint64_t chunk : batch) names.push_back(ChunkName{object.number, static_cast<uint32_t>(chunk)});
    const Staging::Share share(staging, batch.size() * stored.chunk_bytes);
    bool taken_ok = true;
    Status status = chunks->read(names, [&](size_t i, bool found, std::span<const std::byte> bytes) {
      taken_ok = false;
      const uint64_t chunk = batch[i];
      const uint64_t length = chunk_range(chunk, stored.chunk_bytes, stored.bytes).size();
      if (chunk >= stored.chunk_crc32c.size())
        return Status(Code::kDataLoss, fmt::format("{} has no checksum", chunk_text(object, chunk)));
      const uint32_t expected = stored.chunk_crc32c[chunk];
      if (!found) {
        // A chunk that is missing is right only where the manifest says that it is zero.
        if (expected != zero_crc(length))
          return Status(Code::kDataLoss, fmt::format("{} is not there", chunk_text(object, chunk)));
        const std::vector<std::byte> zeros(length);
        use(chunk, zeros);
        taken_ok = true;
        return Status();
      }
      report.bytes_read += bytes.size();
      ++report.chunks_read;
      if (bytes.size() != length)
        return Status(Code::kDataLoss,
                      fmt::format("{}: {} bytes are stored, not {}", chunk_text(object, chunk), bytes.size(), length));
      if (const uint32_t sum = crc32c(bytes); sum != expected)
        return Status(Code::kDataLoss,
                      fmt::format("{} has CRC-32C {:08x}, not {:08x}", chunk_text(object, chunk), sum, expected));
      use(chunk, bytes);
      taken_ok = true;
      return Status();
    });
    if (status.ok()) continue;
    if (!taken_ok) return status;
    return Status(status.code(), fmt::format("object '{}': {}", stored.id.text(), status.message()));
  }
  return Status();
}

// The object has to lie in a segment of a publication that the lease holds. So a get cannot read data that may be
// dropped meanwhile, nor objects of others by guessing numbers.
Status StoreCore::State::check_lease(const GetStep& step) const {
  const FoundObject& object = *step.object;
  const std::lock_guard lock(mutex);
  const auto lease = leases.find(step.lease);
  if (lease == leases.end() || lease->second.end <= now())
    return Status(Code::kConflict,
                  fmt::format("object '{}': lease {} is over", object.object.id.text(), step.lease.value()));
  const uint64_t segment = segment_of(object.number);
  for (const uint64_t sequence : lease->second.sequences) {
    const auto publication = publications.find(sequence);
    if (publication != publications.end() &&
        std::binary_search(publication->second.segments.begin(), publication->second.segments.end(), segment))
      return Status();
  }
  return Status(Code::kNotFound, fmt::format("object '{}' (number {}) is not one that lease {} holds",
                                             object.object.id.text(), object.number.value(), step.lease.value()));
}

// All checks come before the first chunk is read, so a refused get has changed nothing.
Result<GetReport> StoreCore::get(const GetStep& step, const MemoryRegistry& memory) {
  State& state = *state_;
  const FoundObject& object = *step.object;
  TRY_STATUS(state.check_lease(step));
  GetReport report;
  const std::span<const CopyStep> steps = step.steps.steps();
  if (steps.empty()) return report;
  TRY_STATUS(check_reach(step.steps, object.object.id));
  const std::vector<RegionKey>& keys = step.steps.work().target_regions;
  // Held until the get returns: a revoke of the grant waits for it (R6).
  TRY(const std::vector<MemoryRegistry::Access> targets, memory.write_access_all(keys, step.grant, nullptr));
  for (const CopyStep& each : steps) {
    const Range granted = targets[each.target_region].range();
    TRY_STATUS(check_region(each.target_offset, each.target_span(), granted.end(), keys[each.target_region]));
    if (each.target_offset < granted.begin())
      return Status(Code::kInvalidArgument,
                    fmt::format("a step to byte {} of region {} begins before byte {}, where the grant does",
                                each.target_offset, keys[each.target_region].to_text(), granted.begin()));
    TRY_STATUS(check_region(each.source_offset, each.source_span(), object.object.bytes,
                            RegionKey{InstanceId("object"), object.object.id, std::nullopt, 0}));
  }
  const uint64_t chunk_bytes = object.object.chunk_bytes;
  if (chunk_bytes == 0) return Status(Code::kInvalidArgument, "an object has chunks of 0 bytes");
  const Range within = step.within.intersect(Range(0, object.object.bytes));
  std::vector<uint64_t> chunk_list;
  for (uint64_t chunk = within.begin() / chunk_bytes; chunk * chunk_bytes < within.end(); ++chunk) {
    const Range range = chunk_range(chunk, chunk_bytes, object.object.bytes).intersect(within);
    const auto is_touched = [&](const CopyStep& each) { return touches(each, StepEnd::kSource, range); };
    if (std::any_of(steps.begin(), steps.end(), is_touched)) chunk_list.push_back(chunk);
  }
  const Status read = state.read_chunks(
      object, chunk_list,
      [&](uint64_t chunk, std::span<const std::byte> bytes) {
        const Range range = chunk_range(chunk, chunk_bytes, object.object.bytes).intersect(within);
        const std::span<const std::byte> window = bytes.subspan(range.begin() - chunk * chunk_bytes, range.size());
        for (const CopyStep& each : steps)
          report.bytes += copy_step_within(each, StepEnd::kSource, range, window, targets[each.target_region].bytes(),
                                           choose_stores(each.bytes, kRestoredBytes));
      },
      report);
  if (read.ok()) return report;
  // When the lease ended during the read, missing bytes are no damage: the publication may have been dropped (I4).
  TRY_STATUS(state.check_lease(step));
  return read;
}

}  // namespace crossdock
