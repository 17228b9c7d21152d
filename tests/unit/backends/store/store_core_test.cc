// The store by examples: what readers see and when, who keeps what alive, what damage and failing tables do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/store/layout_registry.h"
#include "executor/retry.h"
#include "planner/kv/layout_catalog.h"
#include "tests/support/example_documents.h"
#include "tests/support/small_store.h"

namespace crossdock::testing {
namespace {

SnapshotId id_of(uint64_t number) { return digest(numbered_snapshot(number)); }

// Looks up and reads a whole snapshot: its objects' bytes are right, or the code says why there are none.
Code read_snapshot(SmallStore& store, uint64_t number) {
  const Result<Found> found = store.look_up(id_of(number));
  if (!found.ok()) return found.status().code();
  Code code = Code::kOk;
  EXPECT_EQ(found.value().objects.size(), kSnapshotObjects.size());
  for (size_t i = 0; i < found.value().objects.size(); ++i) {
    const ObjectBytes right = snapshot_bytes(number, i);
    const Result<ObjectBytes> bytes = store.read(found.value().lease, found.value().objects[i], &right);
    if (!bytes.ok()) code = bytes.status().code();
    EXPECT_TRUE(!bytes.ok() || bytes.value() == right);
  }
  const Status released = store.core().release(found.value().lease);
  return code == Code::kOk ? released.code() : code;
}

// The segments of the chunk table are those of the publications.
void expect_nothing_leaks(SmallStore& store, uint64_t publications_with_data) {
  const StoreStats stats = store.stats();
  EXPECT_EQ(stats.open_transactions, 0u);
  EXPECT_EQ(stats.leases, 0u);
  EXPECT_EQ(stats.removed, 0u);
  EXPECT_EQ(store.tables.all_chunks().segments().value().size(), publications_with_data) << "I4";
}

void collect_after(SmallStore& store, Duration time) {
  store.pass(time);
  ASSERT_TRUE(store.core().gc().ok());
}

TEST(StoreCore, WhatWasPublishedIsFoundAndReadBackByteByByteAlsoAfterARestart) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_snapshot(store, "a", 1).ok());
  EXPECT_EQ(read_snapshot(store, 1), Code::kOk);
  EXPECT_EQ(read_snapshot(store, 2), Code::kNotFound);
  ASSERT_TRUE(store.open().ok());
  EXPECT_EQ(read_snapshot(store, 1), Code::kOk);
  EXPECT_EQ(store.core().manifest(id_of(1)).value().text(), store.look_up(id_of(1)).value().manifest.text());
}

TEST(StoreCore, ObjectsOfSeveralWritersAreAssembledFromTheirParts) {
  for (uint64_t writers = 1; writers <= 4; ++writers)
    for (const Range hole : {Range(), Range(8, 16), Range(7, 25), Range(0, 30)}) {
      SCOPED_TRACE(fmt::format("{} writers, hole [{},{})", writers, hole.begin(), hole.end()));
      SmallStore store;
      ASSERT_TRUE(store.open().ok());
      const TxnId txn("a");
      ASSERT_TRUE(store.core().begin(txn, UploadTarget{"team-a", std::nullopt, Duration::from_s(60)}).ok());
      const ObjectBytes bytes = random_bytes(45, hole, writers);
      const StoredObject stored = store.put(txn, "o", bytes, hole, writers).value();
      EXPECT_EQ(stored.chunk_crc32c.size(), 6u);
      const Publication pages{std::vector<PageEntry>{PageEntry{numbered_page(0), stored}}, std::nullopt};
      ASSERT_EQ(store.core().commit(txn, pages).value().phase, TxnPhase::kCommitted);
      const Found found = store.look_up(std::vector<PageObjectKey>{numbered_page(0)}).value();
      ASSERT_EQ(found.objects.size(), 1u);
      EXPECT_TRUE(store.read(found.lease, found.objects[0]).value() == bytes);
    }
}

TEST(StoreCore, OnlyTheChunksThatAreTouchedAreRead) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_snapshot(store, "a", 1).ok());
  const Found found = store.look_up(id_of(1)).value();
  ObjectBytes target(20, kGuard);
  auto work = std::make_shared<CopyWork>();
  work->target_regions = {RegionKey{InstanceId("test"), RegionId("target"), std::nullopt, 1}};
  ASSERT_TRUE(store.memory.add(work->target_regions[0], target).ok());
  ASSERT_TRUE(store.memory.grant({GrantId("grant"), {{work->target_regions[0], Range(0, 20)}}, {}}).ok());
  for (const uint64_t offset : {uint64_t{6}, uint64_t{9}, uint64_t{100}}) {
    CopyStep step;
    step.source_offset = offset;
    step.target_offset = work->steps.size() * 4;
    step.bytes = 4;
    work->steps.push_back(step);
  }
  const GetStep get{found.lease, std::make_shared<const FoundObject>(found.objects[0]), Range(0, 640), StepSpan(work),
                    GrantId("grant")};
  EXPECT_EQ(store.core().get(get, store.memory).value(), (GetReport{12, 24, 3})) << "bytes 0-15 and 96-103";
  const ObjectBytes all = snapshot_bytes(1, 0);
  for (size_t i = 0; i < target.size(); ++i)
    EXPECT_EQ(target[i], i >= 12 ? kGuard : all[(i < 4 ? 6 : i < 8 ? 9 : 100) + i % 4]) << i;
}

// Case U46: a key was published before the index of the disk had it; readers got "not found" after a hit.
TEST(StoreCore, ALookUpSeesNothingBeforeTheDataIsDurable) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  size_t publishing_writes = 0;
  store.tables.on_write([&](std::span<const RecordChange> changes, bool durable) {
    for (const RecordChange& change : changes) {
      if (!change.key.starts_with("p/") || !change.value) continue;
      ++publishing_writes;
      EXPECT_TRUE(durable);
      EXPECT_EQ(store.tables.all_chunks().segments().value().size(), publishing_writes) << "its data is in the table";
      // All that a reader needs is in the same write.
      const auto has = [&](std::string_view kind) {
        return std::any_of(changes.begin(), changes.end(),
                           [&](const RecordChange& other) { return other.key.starts_with(kind) && other.value; });
      };
      EXPECT_TRUE(has("o/") && has("t/") && (has("m/") || has("k/")));
    }
  });
  ASSERT_TRUE(publish_snapshot(store, "a", 1).ok());
  ASSERT_TRUE(publish_pages(store, "b", {1, 2}).ok());
  EXPECT_EQ(publishing_writes, 2u);
}

// Case U59: the write of one of two parts failed, and the index named the object all the same.
TEST(StoreCore, WhatWasNotPutCompletelyIsNeverFound) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  const TxnId txn("a");
  ASSERT_TRUE(store.core().begin(txn, UploadTarget{"team-a", id_of(1), Duration::from_s(60)}).ok());
  const StoredObject first = store.put(txn, kSnapshotObjects[0], snapshot_bytes(1, 0)).value();
  store.tables.fail({.call = 3, .kind = "append"});
  EXPECT_EQ(store.put(txn, kSnapshotObjects[1], snapshot_bytes(1, 1)).status().code(), Code::kIo);
  store.tables.heal();
  EXPECT_EQ(read_snapshot(store, 1), Code::kNotFound);
  const StoredObject second{RegionId(kSnapshotObjects[1]), 512, 8, std::vector<uint32_t>(64)};
  EXPECT_EQ(store.core().commit(txn, Publication{numbered_manifest(1, {first, second}), std::nullopt}).status().code(),
            Code::kNotFound);
  EXPECT_EQ(read_snapshot(store, 1), Code::kNotFound);
  ASSERT_EQ(store.core().abort(txn).value().phase, TxnPhase::kAborted);
  collect_after(store, Duration::from_s(1));
  expect_nothing_leaks(store, 0);
}

TEST(StoreCore, ASegmentThatCannotBeWrittenTakesTheObjectsInItAlongAndTheyCanBePutAgain) {
  for (const char* kind : {"append", "finish"}) {
    SCOPED_TRACE(kind);
    SmallStore store;
    store.options.segment_bytes_max = kind == std::string("finish") ? 600 : 100'000;
    ASSERT_TRUE(store.open().ok());
    const TxnId txn("a");
    ASSERT_TRUE(store.core().begin(txn, UploadTarget{"team-a", id_of(1), Duration::from_s(60)}).ok());
    std::vector<StoredObject> stored(2);
    stored[1] = store.put(txn, kSnapshotObjects[1], snapshot_bytes(1, 1)).value();
    store.tables.fail({.call = 0, .kind = kind});
    EXPECT_EQ(store.put(txn, kSnapshotObjects[0], snapshot_bytes(1, 0), Range(), 3).status().code(), Code::kIo);
    store.tables.heal();
    stored[0] = store.put(txn, kSnapshotObjects[0], snapshot_bytes(1, 0), Range(), 3).value();
    const Publication publication{numbered_manifest(1, stored), std::nullopt};
    EXPECT_EQ(store.core().commit(txn, publication).status().code(), Code::kNotFound) << "the first one is gone";
    EXPECT_EQ(store.put(txn, kSnapshotObjects[1], snapshot_bytes(1, 1)).value(), stored[1]);
    ASSERT_EQ(store.core().commit(txn, publication).value().phase, TxnPhase::kCommitted);
    EXPECT_EQ(read_snapshot(store, 1), Code::kOk);
    EXPECT_EQ(store.stats().segments, store.tables.all_chunks().segments().value().size());
  }
}

// Case U50: a key that was removed while it was being written came back with the end of the write.
TEST(StoreCore, ASnapshotThatIsRemovedDuringItsUploadStaysRemoved) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  const TxnId txn("a");
  ASSERT_TRUE(store.core().begin(txn, UploadTarget{"team-a", id_of(1), Duration::from_s(60)}).ok());
  std::vector<StoredObject> stored;
  for (size_t i = 0; i < 2; ++i) stored.push_back(store.put(txn, kSnapshotObjects[i], snapshot_bytes(1, i)).value());
  EXPECT_TRUE(store.core().remove(id_of(1)).ok());
  const TxnState state = store.core().commit(txn, Publication{numbered_manifest(1, stored), std::nullopt}).value();
  EXPECT_EQ(state.phase, TxnPhase::kAborted);
  EXPECT_EQ(state.reason, "its snapshot was removed");
  EXPECT_EQ(read_snapshot(store, 1), Code::kNotFound);
  EXPECT_EQ(store.core().remove(id_of(1)).code(), Code::kNotFound);
}

// Case U50: what was new had the time 0 and was evicted first.
TEST(StoreCore, ANewPublicationIsNotTheFirstToExpire) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_snapshot(store, "old", 1, Duration::from_s(100)).ok());
  store.pass(Duration::from_s(90));
  ASSERT_TRUE(publish_snapshot(store, "new", 2, Duration::from_s(100)).ok());
  EXPECT_EQ(store.core().list().value()[1].created, store.now);
  collect_after(store, Duration::from_s(10));
  EXPECT_EQ(read_snapshot(store, 1), Code::kNotFound);
  EXPECT_EQ(read_snapshot(store, 2), Code::kOk);
}

// Case U53: one lease of a batch ended in the middle of it, and the whole batch failed.
TEST(StoreCore, OfSeveralLeasesOnlyTheOneThatEndedFails) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  std::vector<Found> found;
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(publish_snapshot(store, fmt::format("txn{}", i), i).ok());
    found.push_back(store.look_up(id_of(i), Duration::from_s(i == 2 ? 1 : 60)).value());
  }
  store.pass(Duration::from_ms(1500));
  for (uint64_t i = 1; i <= 3; ++i)
    EXPECT_EQ(store.read(found[i - 1].lease, found[i - 1].objects[0]).status().code(),
              i == 2 ? Code::kConflict : Code::kOk);
  EXPECT_EQ(store.read(LeaseId(99), found[0].objects[0]).status().code(), Code::kConflict);
  EXPECT_EQ(store.read(found[0].lease, found[2].objects[0]).status().code(), Code::kNotFound)
      << "of another publication";
}

TEST(StoreCore, LookUpsThatAreNeverReleasedEndWithTheirLeases) {  // U39
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_snapshot(store, "a", 1).ok());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(store.look_up(id_of(1), Duration::from_s(30)).ok());
  EXPECT_EQ(store.stats().leases, 1000u);
  collect_after(store, Duration::from_s(30));
  expect_nothing_leaks(store, 1);
  store.options.lease_count_max = 2;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(store.look_up(id_of(1)).ok() && store.look_up(id_of(1)).ok());
  EXPECT_EQ(store.look_up(id_of(1)).status().code(), Code::kUnavailable) << "a stated limit";
}

// Case U55: a put beyond the quota of its tenant was thrown away and reported as a success.
TEST(StoreCore, APutBeyondTheQuotaIsRefusedByName) {
  SmallStore store;
  store.options.quota_bytes = 1000;
  ASSERT_TRUE(store.open().ok());
  const TxnId txn("a");
  ASSERT_TRUE(store.core().begin(txn, UploadTarget{"team-a", std::nullopt, Duration::from_s(60)}).ok());
  ASSERT_TRUE(store.put(txn, "fits", random_bytes(900, Range(), 1)).ok());
  const Status refused = store.put(txn, "large", random_bytes(101, Range(), 2), Range(), 2).status();
  EXPECT_EQ(refused.code(), Code::kQuota);
  EXPECT_NE(refused.message().find("'team-a'"), std::string::npos) << refused.message();
  const TxnId other("b");
  ASSERT_TRUE(store.core().begin(other, UploadTarget{"team-b", std::nullopt, Duration::from_s(60)}).ok());
  EXPECT_TRUE(store.put(other, "large", random_bytes(101, Range(), 2)).ok()) << "another tenant's quota";
  EXPECT_TRUE(store.put(txn, "small", random_bytes(100, Range(), 3)).ok()) << "a refused one takes nothing";
  ASSERT_TRUE(store.core().abort(txn).ok() && store.core().abort(other).ok());
  EXPECT_EQ(publish_snapshot(store, "c", 1).status().code(), Code::kQuota) << "1152 bytes";
  EXPECT_TRUE(publish_pages(store, "d", {1, 2}).ok()) << "an upload that was aborted counts no more";
}

// Case U57: a store that restarted took its segments for empty and overwrote them.
TEST(StoreCore, ARestartAdoptsWhatIsThereAndOverwritesNothing) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_snapshot(store, "a", 1).ok());
  const uint64_t segment = store.tables.all_chunks().segments().value().at(0);
  const TxnId open_txn("open");
  ASSERT_TRUE(store.core().begin(open_txn, UploadTarget{"team-a", id_of(2), Duration::from_s(60)}).ok());
  ASSERT_TRUE(store.put(open_txn, kSnapshotObjects[0], snapshot_bytes(2, 0)).ok());
  ASSERT_TRUE(store.open().ok());
  EXPECT_EQ(store.stats().open_transactions, 1u);
  EXPECT_EQ(read_snapshot(store, 1), Code::kOk);
  const std::vector<StoredObject> gone(2,
                                       StoredObject{RegionId(kSnapshotObjects[0]), 640, 8, std::vector<uint32_t>(80)});
  std::vector<StoredObject> stored = {gone[0], gone[1]};
  stored[1] = StoredObject{RegionId(kSnapshotObjects[1]), 512, 8, std::vector<uint32_t>(64)};
  EXPECT_EQ(store.core().commit(open_txn, Publication{numbered_manifest(2, stored), std::nullopt}).status().code(),
            Code::kNotFound)
      << "its bytes are gone, and its commit is told";
  for (size_t i = 0; i < 2; ++i) stored[i] = store.put(open_txn, kSnapshotObjects[i], snapshot_bytes(2, i)).value();
  ASSERT_TRUE(store.core().commit(open_txn, Publication{numbered_manifest(2, stored), std::nullopt}).ok());
  EXPECT_GT(store.tables.all_chunks().segments().value().at(1), segment);
  EXPECT_EQ(read_snapshot(store, 1), Code::kOk);
  EXPECT_EQ(read_snapshot(store, 2), Code::kOk);
}

TEST(StoreCore, AnUploaderThatFellSilentIsAbortedAtTheEndOfItsLeaseAlsoByARestart) {
  for (const bool by_restart : {false, true}) {
    SmallStore store;
    ASSERT_TRUE(store.open().ok());
    ASSERT_TRUE(store.core().begin(TxnId("a"), UploadTarget{"team-a", id_of(1), Duration::from_s(60)}).ok());
    ASSERT_TRUE(store.put(TxnId("a"), kSnapshotObjects[0], snapshot_bytes(1, 0)).ok());
    store.pass(Duration::from_s(60));
    if (by_restart) {
      ASSERT_TRUE(store.open().ok());
    } else {
      EXPECT_EQ(store.core().gc().value().transactions_aborted, 1u);
    }
    expect_nothing_leaks(store, 0);
    EXPECT_EQ(store.core().begin(TxnId("a"), UploadTarget{}).status().code(), Code::kInvalidArgument) << "no tenant";
    const UploadTarget target{"team-a", id_of(1), Duration::from_s(60)};
    EXPECT_EQ(store.core().begin(TxnId("a"), target).value().phase, TxnPhase::kAborted);
    EXPECT_EQ(store.core().begin(TxnId("a"), target).value().reason, "its uploader fell silent");
  }
}

TEST(StoreCore, ATimeToLiveRespectsPinsAndLeases) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  const uint64_t leased = publish_snapshot(store, "a", 1, Duration::from_s(10)).value();
  const uint64_t pinned = publish_snapshot(store, "b", 2, Duration::from_s(10)).value();
  const Found found = store.look_up(id_of(1), Duration::from_s(100)).value();
  ASSERT_TRUE(store.core().pin(pinned, "backup").ok());
  store.pass(Duration::from_s(10));
  EXPECT_EQ(read_snapshot(store, 1), Code::kNotFound) << "also before anything is collected";
  EXPECT_EQ(store.core().gc().value().publications_expired, 1u);
  EXPECT_EQ(store.core().list().value()[0].sequence, leased);
  EXPECT_TRUE(store.core().list().value()[0].removed);
  const ObjectBytes right = snapshot_bytes(1, 0);
  EXPECT_TRUE(store.read(found.lease, found.objects[0], &right).value() == right) << "who has a lease can finish";
  EXPECT_EQ(read_snapshot(store, 2), Code::kOk) << "a pin keeps it found";
  EXPECT_EQ(store.core().remove(id_of(2)).code(), Code::kConflict);
  ASSERT_TRUE(store.core().release(found.lease).ok());
  EXPECT_EQ(store.core().list().value().size(), 1u) << "dropped with its last lease";
  ASSERT_TRUE(store.core().unpin(pinned, "backup").ok());
  ASSERT_TRUE(store.core().gc().ok());
  expect_nothing_leaks(store, 0);
}

TEST(StoreCore, WhatHasExpiredCanBeUploadedAgainAtOnce) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_snapshot(store, "a", 1, Duration::from_s(10)).ok());
  ASSERT_TRUE(publish_pages(store, "b", {1}, Duration::from_s(10)).ok());
  EXPECT_EQ(publish_snapshot(store, "c", 1).status().code(), Code::kConflict);
  store.pass(Duration::from_s(10));
  EXPECT_TRUE(publish_snapshot(store, "d", 1).ok());
  EXPECT_TRUE(publish_pages(store, "e", {1}).ok());
  ASSERT_TRUE(store.core().gc().ok());
  EXPECT_EQ(read_snapshot(store, 1), Code::kOk);
  EXPECT_EQ(store.look_up(std::vector<PageObjectKey>{numbered_page(1)}).value().pages.size(), 1u)
      << "the old one's end does not take the new one's page along";
}

TEST(StoreCore, APageThatIsThereStaysAsItIsAndGoesWithThePublicationThatBroughtIt) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  const uint64_t first = publish_pages(store, "a", {1, 2}).value();
  ASSERT_TRUE(publish_pages(store, "b", {2, 3}).ok());
  const std::vector<PageObjectKey> all = {numbered_page(3), numbered_page(0), numbered_page(1), numbered_page(2)};
  const Found found = store.look_up(all).value();
  EXPECT_EQ(found.pages, (std::vector<PageObjectKey>{all[0], all[2], all[3]})) << "those that are there, in order";
  ASSERT_TRUE(store.core().remove_publication(first).ok());
  EXPECT_EQ(store.look_up(all).value().pages, std::vector<PageObjectKey>{all[0]});
  EXPECT_TRUE(store.read(found.lease, found.objects[1]).value() == page_bytes(1)) << "by the lease";
  EXPECT_TRUE(publish_pages(store, "c", {2}).ok());
  EXPECT_EQ(store.look_up(all).value().pages.size(), 2u) << "a page that went can come again";
}

// Case U60: bytes of the right length with a wrong value were handed out.
TEST(StoreCore, AnyFlippedByteIsFoundNamedAndNeverHandedOut) {
  SmallStore store(24);
  ASSERT_TRUE(store.open().ok());
  ASSERT_TRUE(publish_pages(store, "a", {1, 40}).ok());
  const Found found = store.look_up({numbered_page(1), numbered_page(40)}, Duration::from_s(1'000'000)).value();
  ASSERT_EQ(found.objects.size(), 2u);
  size_t flipped = 0;
  for (size_t i = 0; i < 2; ++i) {
    const ObjectBytes right = page_bytes(i == 0 ? 1 : 40);
    for (size_t byte = 0; byte < right.size(); ++byte) {
      const uint32_t chunk = static_cast<uint32_t>(byte / 24);
      for (const auto what : {ChunkDamage::What::kFlip, ChunkDamage::What::kCut, ChunkDamage::What::kGone}) {
        store.tables.damage(ChunkDamage{found.objects[i].number, chunk, what, byte % 24});
        const Status status = store.read(found.lease, found.objects[i], &right).status();
        EXPECT_EQ(status.code(), Code::kDataLoss) << byte;
        const std::string name = fmt::format("object '{}' bytes [{},", found.objects[i].object.id.text(), chunk * 24);
        EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
        EXPECT_FALSE(may_pass(status.code())) << "a caller would repeat the read for ever";
        ++flipped;
      }
      const VerifyReport report = store.core().verify({}).value();
      ASSERT_EQ(report.damaged.size(), 1u);
      EXPECT_EQ(report.damaged[0].object, found.objects[i].object.id.text());
      EXPECT_EQ(report.damaged[0].chunk, chunk);
      EXPECT_TRUE(report.damaged[0].bytes.contains(byte));
    }
    store.tables.damage(std::nullopt);
    EXPECT_TRUE(store.read(found.lease, found.objects[i], &right).value() == right);
  }
  EXPECT_EQ(flipped, 3 * (21u + 60u));
}

TEST(StoreCore, ACatalogIsChangedByCompareAndSwapAndSurvivesARestart) {
  SmallStore store;
  ASSERT_TRUE(store.open().ok());
  const PageDomain domain = make_page_domain(example_snapshot(), 4).value();
  const Valid<StoreLayout> first = example_store_layout();
  StoreLayout other = *first;
  other.object_order = ObjectOrder::kHpld;
  const Valid<StoreLayout> second = valid_or_die(std::move(other));
  EXPECT_EQ(layout_catalog(store.core(), domain).value(), LayoutCatalog(domain));
  const LayoutCatalog one = register_layout(store.core(), domain, first, 0).value();
  EXPECT_EQ(register_layout(store.core(), domain, second, 0).status().code(), Code::kConflict)
      << "another register_layout came first";
  const LayoutCatalog two = register_layout(store.core(), domain, second, one.revision()).value();
  EXPECT_EQ(two.layouts().size(), 2u);
  EXPECT_NE(two.find(digest(first)), nullptr);
  EXPECT_NE(two.find(digest(second)), nullptr);
  EXPECT_EQ(register_layout(store.core(), domain, first, two.revision()).value(), two) << "it is there already";
  ASSERT_TRUE(store.open().ok());
  EXPECT_EQ(layout_catalog(store.core(), domain).value(), two);
  PageDomain elsewhere = domain;
  elsewhere.tenant = "team-b";
  EXPECT_TRUE(layout_catalog(store.core(), elsewhere).value().layouts().empty());
}

TEST(StoreCore, PutsAndGetsTogetherKeepToTheStagingMemory) {
  SmallStore store(64);
  store.options.staging_bytes = 150;
  ASSERT_TRUE(store.open().ok());
  std::vector<std::thread> threads;
  MemoryRegistry memory;
  std::array<std::array<std::byte, 1000>, 4> bytes = {};
  for (uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const RegionKey key{InstanceId("test"), RegionId("memory"), std::nullopt, i + 1};
      EXPECT_TRUE(memory.add(key, bytes[i]).ok());
      EXPECT_TRUE(memory.grant({GrantId(std::to_string(i)), {{key, Range(0, 1000)}}, {}}).ok());
      auto work = std::make_shared<CopyWork>();
      work->source_regions = work->target_regions = {key};
      CopyStep step;
      step.bytes = 1000;
      work->steps = {step};
      for (uint64_t round = 0; round < 30; ++round) {
        const TxnId txn(fmt::format("txn{}-{}", i, round));
        const PageObjectKey page = numbered_page(i * 30 + round);
        EXPECT_TRUE(store.core().begin(txn, UploadTarget{"team-a", std::nullopt, Duration::from_s(60)}).ok());
        const auto receipt = store.core().put(txn, PutStep{RegionId("o"), 1000, 1000, "w", StepSpan(work)}, memory);
        const Publication pages{std::vector<PageEntry>{PageEntry{page, *receipt.value().stored}}, std::nullopt};
        EXPECT_TRUE(store.core().commit(txn, pages).ok());
        const Found found = store.core().lookup(Lookup{std::vector<PageObjectKey>{page}, LeaseRequest{"r"}}).value();
        const auto object = std::make_shared<const FoundObject>(found.objects.at(0));
        EXPECT_TRUE(
            store.core()
                .get(GetStep{found.lease, object, Range(0, 1000), StepSpan(work), GrantId(std::to_string(i))}, memory)
                .ok());
        EXPECT_TRUE(store.core().release(found.lease).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  const StoreStats stats = store.stats();
  EXPECT_LE(stats.staging_bytes_most, 150u);
  EXPECT_GE(stats.staging_bytes_most, 64u);
  EXPECT_EQ(stats.page_publications, 120u);
}

// A commit whose records were written although the store was told that they were not.
struct UnknownCommit {
  UnknownCommit() {
    EXPECT_TRUE(store.open().ok());
    EXPECT_TRUE(store.core().begin(txn, UploadTarget{"team-a", std::nullopt, Duration::from_s(60)}).ok());
    publication.content = std::vector<PageEntry>{PageEntry{numbered_page(1), put(1)}};
    store.tables.fail({.kind = "write", .happens = true});
    EXPECT_EQ(store.core().commit(txn, publication).status().code(), Code::kOutcomeUnknown);
    store.tables.heal();
  }
  StoredObject put(uint64_t number) {
    return store.put(txn, fmt::format("page{}", number), page_bytes(number), Range(9, 17)).value();
  }
  std::vector<PageObjectKey> found() { return store.look_up({numbered_page(1), numbered_page(2)}).value().pages; }

  SmallStore store;
  TxnId txn{"a"};
  Publication publication;
};

TEST(StoreCore, APageCommitThatIsRepeatedBecauseItsOutcomeWasUnknownOwnsItsPages) {
  UnknownCommit unknown;
  const TxnState state = unknown.store.core().commit(unknown.txn, unknown.publication).value();
  ASSERT_EQ(state.phase, TxnPhase::kCommitted);
  EXPECT_EQ(unknown.found(), std::vector<PageObjectKey>{numbered_page(1)});
  ASSERT_TRUE(unknown.store.core().remove_publication(*state.sequence).ok());
  EXPECT_TRUE(unknown.found().empty());
  ASSERT_TRUE(publish_pages(unknown.store, "b", {1}).ok());
  EXPECT_EQ(unknown.found(), std::vector<PageObjectKey>{numbered_page(1)}) << "its record is not in the way";
}

TEST(StoreCore, ObjectsThatArePutAfterACommitFailedArePublishedWithTheirBytes) {
  UnknownCommit unknown;
  auto& entries = std::get<std::vector<PageEntry>>(unknown.publication.content);
  entries.push_back(PageEntry{numbered_page(2), unknown.put(2)});
  ASSERT_EQ(unknown.store.core().commit(unknown.txn, unknown.publication).value().phase, TxnPhase::kCommitted);
  EXPECT_EQ(unknown.found().size(), 2u);
  EXPECT_TRUE(unknown.store.core().verify({}).value().damaged.empty());
}

TEST(StoreCore, AnAbortThatCouldNotBeRecordedIsRepeatedUntilNothingIsLeft) {
  for (const bool by_collection : {false, true}) {
    UnknownCommit unknown;
    unknown.store.tables.fail({.kind = "write"});
    EXPECT_EQ(unknown.store.core().abort(unknown.txn).status().code(), Code::kOutcomeUnknown);
    unknown.store.tables.heal();
    if (by_collection) {
      ASSERT_TRUE(unknown.store.core().gc().ok());
    } else {
      ASSERT_EQ(unknown.store.core().abort(unknown.txn).value().phase, TxnPhase::kAborted);
    }
    ASSERT_TRUE(unknown.store.open().ok());
    EXPECT_TRUE(unknown.found().empty()) << "I2: after a restart it would be visible";
    collect_after(unknown.store, Duration::from_s(100));
    expect_nothing_leaks(unknown.store, 0);
  }
}

// A day in the life of a store; each step's outcome may be an error.
struct Day {
  SmallStore& store;
  std::vector<std::string> errors;

  void expect(const Status& status) {
    if (!status.ok()) errors.push_back(status.message());
  }
  template <class Value>
  void expect(const Result<Value>& result) {
    expect(result.status());
  }
  void live() {
    expect(publish_snapshot(store, "a", 1));
    expect(read_snapshot(store, 1) == Code::kOk ? Status() : Status(Code::kIo, "it cannot be read"));
    expect(publish_pages(store, "b", {1, 2, 3}));
    expect(store.core().begin(TxnId("c"), UploadTarget{"team-a", id_of(2), Duration::from_s(60)}));
    expect(store.put(TxnId("c"), kSnapshotObjects[0], snapshot_bytes(2, 0)));
    expect(store.core().abort(TxnId("c")));
    expect(store.core().remove(id_of(1)));
    expect(publish_snapshot(store, "d", 3, Duration::from_s(10)));
    store.pass(Duration::from_s(20));
    expect(store.core().gc());
    expect(publish_snapshot(store, "e", 4));
    expect(store.core().stats());
  }
};

// Each table operation that happens in a day fails, before or after it happens: the caller gets an error, no reader
// sees half of anything (I2), and afterwards the store works and holds nothing that no record names (I4).
TEST(StoreCore, WhicheverTableOperationFailsTheStoreStaysWholeAndUsable) {
  size_t failed_count = 0;
  for (const bool happens : {false, true})
    for (const bool reopens : {false, true})
      for (uint64_t call = 0;; ++call) {
        SCOPED_TRACE(
            fmt::format("call {}{}{}", call, happens ? ", which happens" : "", reopens ? ", then a restart" : ""));
        SmallStore store(64);
        store.options.segment_bytes_max = 600;  // several segments
        ASSERT_TRUE(store.open().ok());
        Day day{store, {}};
        store.tables.fail({.call = call, .kind = "", .happens = happens});
        day.live();
        const std::string failed = store.tables.failed();
        store.tables.heal();
        if (failed.empty()) break;
        ++failed_count;
        EXPECT_TRUE(!day.errors.empty() || failed == "remove") << failed << " failed, and no call returned an error";
        // I2: all or nothing of each.
        for (uint64_t number = 1; number <= 4; ++number) {
          const Code code = read_snapshot(store, number);
          EXPECT_TRUE(code == Code::kOk || code == Code::kNotFound) << failed << ": snapshot " << number;
          EXPECT_TRUE(code == Code::kNotFound || number != 2) << "an aborted upload is visible";
        }
        if (reopens) {
          ASSERT_TRUE(store.open().ok());
        }
        collect_after(store, Duration::from_s(100'000));
        EXPECT_TRUE(publish_snapshot(store, "again", 9).ok()) << failed;
        EXPECT_EQ(read_snapshot(store, 9), Code::kOk);
        EXPECT_TRUE(store.core().verify({}).value().damaged.empty());
        // I4: segments are those of publications; each of them is removed, and nothing is left.
        EXPECT_EQ(store.stats().open_transactions, 0u);
        EXPECT_EQ(store.stats().leases, 0u);
        const std::vector<PublicationInfo> infos = store.core().list().value();
        for (const PublicationInfo& info : infos)
          EXPECT_EQ(store.core().remove_publication(info.sequence).message(), "") << failed;
        collect_after(store, Duration::from_s(1));
        expect_nothing_leaks(store, 0);
        EXPECT_TRUE(store.core().list().value().empty());
        if (HasFailure()) return;
      }
  EXPECT_GT(failed_count, 200u);
}

}  // namespace
}  // namespace crossdock::testing
