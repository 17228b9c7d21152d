#include "tests/crash/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "backends/store/store_records.h"
#include "model/kv/snapshot.h"

namespace crossdock::testing {
namespace {

using Texts = std::map<std::string, std::string>;

Texts records_of(const RecordTable& records, std::string_view prefix, Findings& findings) {
  Texts found;
  const Status status = records.scan(std::string(prefix), [&](std::string_view key, std::string_view value) {
    found.emplace(key, value);
    return true;
  });
  if (!status.ok()) findings.push_back("scan: " + status.message());
  return found;
}

template <class Record>
std::vector<Record> decoded(const RecordTable& records, std::string_view prefix, Findings& findings) {
  std::vector<Record> all;
  for (const auto& [key, text] : records_of(records, prefix, findings)) {
    Result<Record> record = decode<Record>(key, text);
    if (record.ok())
      all.push_back(std::move(record).value());
    else
      findings.push_back(record.status().message());
  }
  return all;
}

std::set<std::string> keys_of(const RecordTable& records, std::string_view prefix, Findings& findings) {
  std::set<std::string> keys;
  for (const auto& [key, text] : records_of(records, prefix, findings)) keys.insert(key);
  return keys;
}

void expect_equal(const std::string& what, uint64_t actual, uint64_t expected, Findings& findings) {
  if (actual != expected) findings.push_back(fmt::format("I4: {} is {}, not {}", what, actual, expected));
}

// The code with which the store refuses an object of `bytes` bytes, of which one is put: the object is never written.
Code refusal_of(StoreCore& core, const std::string& tenant, uint64_t bytes, Findings& findings) {
  static std::atomic<uint64_t> count = 0;
  const TxnId txn(fmt::format("audit-{}", ++count));
  if (!core.begin(txn, UploadTarget{tenant, std::nullopt, kShortLease}).ok()) findings.push_back("no upload begins");
  auto work = std::make_shared<CopyWork>();
  CopyStep step;
  step.bytes = 1;
  work->steps.push_back(step);
  work->source_regions = {RegionKey{InstanceId("test"), RegionId("none"), std::nullopt, 0}};
  const PutStep put{RegionId("audit"), bytes, bytes, "writer", StepSpan(work)};
  const Code code = core.put(txn, put, MemoryRegistry()).status().code();
  if (!core.abort(txn).ok()) findings.push_back("no upload is aborted");
  return code;
}

// The bytes that the store counts for a tenant: one byte more than its quota leaves is refused for that reason, and one
// less is not.
void audit_quota(StoreCore& core, const std::string& tenant, uint64_t bytes, Findings& findings) {
  const Code more = refusal_of(core, tenant, kQuotaBytes - bytes + 1, findings);
  const Code fits = refusal_of(core, tenant, kQuotaBytes - bytes, findings);
  if (more != Code::kQuota || fits != Code::kInvalidArgument)
    findings.push_back(fmt::format("I4: tenant '{}' has {} bytes, and the store counts others", tenant, bytes));
}

}  // namespace

void audit(const OpenStore& store, AuditTime time, Findings& findings) {
  const RecordTable& records = *store.records;
  const bool is_the_end = time == AuditTime::kAtTheEnd;
  StoreStats counted;
  std::set<uint64_t> segments;
  std::set<uint64_t> needed;  // a removed publication's data goes before its records do
  std::set<std::string> manifests;
  std::set<std::string> object_lists;
  std::set<SnapshotId> snapshots;
  std::map<std::string, uint64_t> tenants;
  for (uint32_t thread = 0; thread < kThreadsMax; ++thread) tenants[tenant_of(thread)] = 0;
  std::map<uint64_t, PublicationRecord> publications;
  for (PublicationRecord& record : decoded<PublicationRecord>(records, kPublicationPrefix, findings)) {
    for (const uint64_t segment : record.segments) {
      if (!segments.insert(segment).second) findings.push_back(fmt::format("I4: segment {} has two owners", segment));
      if (!record.removed) needed.insert(segment);
    }
    object_lists.insert(numbered_key(kObjectsPrefix, record.sequence));
    if (record.content) manifests.insert(numbered_key(kManifestPrefix, record.sequence));
    tenants[record.tenant] += record.bytes;
    if (record.removed) {
      ++counted.removed;
      counted.removed_bytes += record.bytes;
    } else {
      ++(record.content ? counted.snapshots : counted.page_publications);
      counted.objects += record.object_count;
      counted.bytes += record.bytes;
      counted.pins += record.pins.size();
      if (record.content && !snapshots.insert(*record.content).second)
        findings.push_back(fmt::format("I2: snapshot {} has several publications", record.content->hex()));
    }
    const uint64_t sequence = record.sequence;
    publications[sequence] = std::move(record);
  }
  if (keys_of(records, kManifestPrefix, findings) != manifests) findings.push_back("I4: manifests without publication");
  if (keys_of(records, kObjectsPrefix, findings) != object_lists)
    findings.push_back("I4: lists of objects without publication");
  for (const PageRecord& page : decoded<PageRecord>(records, kPagePrefix, findings)) {
    const auto owner = publications.find(page.sequence);
    if (owner == publications.end() || owner->second.removed ||
        !std::ranges::binary_search(owner->second.segments, segment_of(page.object.number)))
      findings.push_back(fmt::format("I4: page object '{}' is of publication {}, which does not have it",
                                     page.object.object.id.text(), page.sequence));
  }

  const Result<std::vector<uint64_t>> stored = store.chunks->segments();
  if (!stored.ok()) return findings.push_back(stored.status().message());
  if (!std::ranges::includes(segments, stored.value()) || !std::ranges::includes(stored.value(), needed))
    findings.push_back(fmt::format("I4: segments {} are stored, publications have {}", fmt::join(stored.value(), ","),
                                   fmt::join(segments, ",")));
  counted.segments = stored.value().size();

  for (const TxnRecord& record : decoded<TxnRecord>(records, kTxnPrefix, findings))
    counted.open_transactions += record.state.phase == TxnPhase::kOpen;
  for (const LeaseRecord& lease : decoded<LeaseRecord>(records, kLeasePrefix, findings)) {
    ++counted.leases;
    for (const uint64_t sequence : lease.sequences)
      if (!publications.contains(sequence))
        findings.push_back(fmt::format("I4: lease {} is of publication {}, which is gone", lease.id.value(), sequence));
  }
  const Result<StoreStats> stats = store.core->stats();
  if (!stats.ok()) return findings.push_back(stats.status().message());
  expect_equal("snapshots", stats.value().snapshots, counted.snapshots, findings);
  expect_equal("page_publications", stats.value().page_publications, counted.page_publications, findings);
  expect_equal("objects", stats.value().objects, counted.objects, findings);
  expect_equal("bytes", stats.value().bytes, counted.bytes, findings);
  expect_equal("removed", stats.value().removed, counted.removed, findings);
  expect_equal("removed_bytes", stats.value().removed_bytes, counted.removed_bytes, findings);
  expect_equal("open_transactions", stats.value().open_transactions, counted.open_transactions, findings);
  expect_equal("leases", stats.value().leases, counted.leases, findings);
  expect_equal("pins", stats.value().pins, counted.pins, findings);
  expect_equal("segments", stats.value().segments, counted.segments, findings);
  for (const auto& [tenant, bytes] : tenants) audit_quota(*store.core, tenant, bytes, findings);
  if (!is_the_end) return;
  expect_equal("removed, when all is over,", counted.removed, 0, findings);
  expect_equal("open_transactions, when all is over,", counted.open_transactions, 0, findings);
  expect_equal("leases, when all is over,", counted.leases, 0, findings);
}

}  // namespace crossdock::testing
