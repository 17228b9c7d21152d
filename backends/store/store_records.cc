#include "backends/store/store_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace crossdock {
namespace {

// Each record has one encode() and one read(), with the fields in the same order (docs/store.md). There are no tags and
// no version in a record: kStoreFormat covers all of them, and a change of a record is a new format.
//
// Reading checks nothing on its way. A ByteReader that ran out of bytes gives zeros and remembers it, and decode() asks
// once at the end. Counts come through count(width), which bounds them by the bytes that are left, so a damaged count
// allocates no more than the record's own size.
void put(ByteWriter& out, const std::optional<ContentId>& content) { out.text(content ? content->hex() : ""); }

void get(ByteReader& in, std::optional<ContentId>& content) {
  const std::string_view hex = in.text();
  if (!hex.empty()) content = Sha256Digest::from_hex(hex);
}

void put(ByteWriter& out, const std::optional<uint64_t>& number) { out.u8(number ? 1 : 0).u64(number.value_or(0)); }

void get(ByteReader& in, std::optional<uint64_t>& number) {
  const bool is_there = in.u8() != 0;
  const uint64_t value = in.u64();
  if (is_there) number = value;
}

void put(ByteWriter& out, const StoredObject& object) {
  out.text(object.id.text()).u64(object.bytes).u64(object.chunk_bytes).u64(object.chunk_crc32c.size());
  for (const uint32_t sum : object.chunk_crc32c) out.u32(sum);
}

void get(ByteReader& in, StoredObject& object) {
  object.id = RegionId(std::string(in.text()));
  object.bytes = in.u64();
  object.chunk_bytes = in.u64();
  object.chunk_crc32c.resize(in.count(4));
  for (uint32_t& sum : object.chunk_crc32c) sum = in.u32();
}

void put(ByteWriter& out, const std::vector<uint64_t>& numbers) {
  out.u64(numbers.size());
  for (const uint64_t number : numbers) out.u64(number);
}

void get(ByteReader& in, std::vector<uint64_t>& numbers) {
  numbers.resize(in.count(8));
  for (uint64_t& number : numbers) number = in.u64();
}

TimePoint time_of(ByteReader& in) { return TimePoint::from_ns(in.i64()); }

void read(ByteReader& in, TxnRecord& record) {
  record.state.txn = TxnId(std::string(in.text()));
  // A value that no phase has becomes kAborted, the end that publishes nothing.
  record.state.phase = static_cast<TxnPhase>(std::min<uint8_t>(in.u8(), 2));
  record.state.reason = in.text();
  get(in, record.state.sequence);
  record.target.tenant = in.text();
  get(in, record.target.content);
  record.target.lease = Duration::from_ns(in.i64());
  record.time = time_of(in);
}

void read(ByteReader& in, PublicationRecord& record) {
  record.sequence = in.u64();
  record.txn = TxnId(std::string(in.text()));
  get(in, record.content);
  record.tenant = in.text();
  record.object_count = in.u64();
  record.bytes = in.u64();
  record.created = time_of(in);
  std::optional<uint64_t> expires;
  get(in, expires);
  if (expires) record.expires = TimePoint::from_ns(static_cast<int64_t>(*expires));
  record.removed = in.u8() != 0;
  for (uint64_t left = in.count(8); left > 0; --left) record.pins.insert(std::string(in.text()));
  get(in, record.segments);
}

void read(ByteReader& in, ObjectsRecord& record) {
  std::vector<uint64_t> numbers;
  get(in, numbers);
  for (const uint64_t number : numbers) record.numbers.emplace_back(number);
  for (uint64_t left = in.count(8); left > 0; --left) record.page_keys.emplace_back(in.text());
}

void read(ByteReader& in, PageRecord& record) {
  record.sequence = in.u64();
  record.object.number = ObjectNumber(in.u64());
  get(in, record.object.object);
}

void read(ByteReader& in, LeaseRecord& record) {
  record.id = LeaseId(in.u64());
  record.holder = in.text();
  record.end = time_of(in);
  get(in, record.sequences);
}

}  // namespace

std::string txn_key(const TxnId& txn) { return fmt::format("{}{}", kTxnPrefix, txn.text()); }

// Hexadecimal with all 16 digits, so that the order of bytes in the table is the order of numbers.
std::string numbered_key(std::string_view prefix, uint64_t number) { return fmt::format("{}{:016x}", prefix, number); }

// The part comes last, because it is the only field of free length.
std::string page_key(const PageObjectKey& key) {
  return fmt::format("{}{}/{}/{}/{}", kPagePrefix, key.page.digest().hex(), key.layout.hex(),
                     key.object == PageObject::kRows ? 'r' : 's', key.part.text());
}

std::string encode(const TxnRecord& record) {
  ByteWriter out;
  out.text(record.state.txn.text()).u8(static_cast<uint8_t>(record.state.phase)).text(record.state.reason);
  put(out, record.state.sequence);
  out.text(record.target.tenant);
  put(out, record.target.content);
  out.i64(record.target.lease.ns()).i64(record.time.ns());
  return std::move(out).take();
}

std::string encode(const PublicationRecord& record) {
  ByteWriter out;
  out.u64(record.sequence).text(record.txn.text());
  put(out, record.content);
  out.text(record.tenant).u64(record.object_count).u64(record.bytes).i64(record.created.ns());
  put(out, record.expires ? std::optional(static_cast<uint64_t>(record.expires->ns())) : std::nullopt);
  out.u8(record.removed ? 1 : 0).u64(record.pins.size());
  for (const std::string& pin : record.pins) out.text(pin);
  put(out, record.segments);
  return std::move(out).take();
}

std::string encode(const ObjectsRecord& record) {
  ByteWriter out;
  std::vector<uint64_t> numbers;
  for (const ObjectNumber number : record.numbers) numbers.push_back(number.value());
  put(out, numbers);
  out.u64(record.page_keys.size());
  for (const std::string& key : record.page_keys) out.text(key);
  return std::move(out).take();
}

std::string encode(const PageRecord& record) {
  ByteWriter out;
  out.u64(record.sequence).u64(record.object.number.value());
  put(out, record.object.object);
  return std::move(out).take();
}

std::string encode(const LeaseRecord& record) {
  ByteWriter out;
  out.u64(record.id.value()).text(record.holder).i64(record.end.ns());
  put(out, record.sequences);
  return std::move(out).take();
}

template <class Record>
Result<Record> decode(std::string_view key, std::string_view bytes) {
  ByteReader in(bytes);
  Record record;
  read(in, record);
  if (in.at_end()) return record;
  return Status(Code::kDataLoss, fmt::format("the store's record '{}' ({} bytes) is damaged", key, bytes.size()));
}

template Result<TxnRecord> decode(std::string_view, std::string_view);
template Result<PublicationRecord> decode(std::string_view, std::string_view);
template Result<ObjectsRecord> decode(std::string_view, std::string_view);
template Result<PageRecord> decode(std::string_view, std::string_view);
template Result<LeaseRecord> decode(std::string_view, std::string_view);

}  // namespace crossdock
