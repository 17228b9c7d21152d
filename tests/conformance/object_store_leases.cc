// Leases and publications: what was found stays readable for its lease, whatever happens meanwhile, and no longer.
#include "tests/conformance/object_store_conformance.h"

namespace crossdock::testing {
namespace {

const Bytes kOnes(100, std::byte{1});
const Bytes kTwos(100, std::byte{2});

// Case U53: one lease of a batch ended in the middle of it, and the whole batch failed.
TEST_P(ObjectStoreConformance, ALeaseThatIsOverFailsItsOwnGetsOnly) {
  publish("txn", {{"1", kOnes}, {"2", kTwos}, {"3", kOnes}});
  const auto first = result_of<Found>(user().run(look_up_pages({"1"})));
  const auto second = result_of<Found>(user().run(look_up_pages({"2"}, Duration::from_ms(500))));
  const auto third = result_of<Found>(user().run(look_up_pages({"3"})));
  EXPECT_LT(second.lease_end, first.lease_end);
  expect_bytes(second, {kTwos});
  backend_->pass_time(Duration::from_ms(500));
  expect_bytes(first, {kOnes});
  const Got late = get(second.lease, second.objects.at(0));
  EXPECT_EQ(late.status.code(), Code::kConflict) << late.status.message();
  EXPECT_NE(late.status.message().find("'2'"), std::string::npos) << late.status.message();
  EXPECT_EQ(late.bytes, Bytes(100, Region::kFill));
  expect_bytes(third, {kOnes});
  EXPECT_EQ(backend_->collect_garbage(), Status());
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, 1, 2, 1}));
  expect_bytes(result_of<Found>(user().run(look_up_pages({"2"}))), {kTwos});
}

// The answer of a look-up was lost, and it is repeated.
TEST_P(ObjectStoreConformance, R4_ALookUpThatIsRepeatedHasOneLease) {
  publish("txn", {{"1", kOnes}, {"2", kTwos}});
  LookupPost lookup = look_up_pages({"1"}, Duration::from_ms(500));
  lookup.lookup.lease.request = "request";
  const auto first = result_of<Found>(user().run(lookup));
  backend_->pass_time(Duration::from_ms(400));
  const auto again = result_of<Found>(user().run(lookup));
  EXPECT_EQ(again.lease, first.lease);
  EXPECT_GT(again.lease_end, first.lease_end) << "and is renewed";
  EXPECT_EQ(backend_->store_use().leases, 1u);
  backend_->pass_time(Duration::from_ms(400));
  expect_bytes(again, {kOnes});
  // Another holder, another request, and none at all have leases of their own.
  for (const auto& [holder, request] : {std::pair("reader", "other"), {"another", "request"}, {"reader", ""}}) {
    LookupPost other = look_up_pages({"1"});
    other.lookup.lease.holder = holder;
    other.lookup.lease.request = request;
    EXPECT_NE(result_of<Found>(user().run(other)).lease, first.lease) << holder << " " << request;
  }
  // It holds what was found last.
  lookup = look_up_pages({"2"});
  lookup.lookup.lease.request = "request";
  const auto second = result_of<Found>(user().run(lookup));
  EXPECT_EQ(second.lease, first.lease);
  expect_bytes(second, {kTwos});
  release(second);
  EXPECT_EQ(backend_->store_use().leases, 3u);
  const auto fresh = result_of<Found>(user().run(lookup));
  EXPECT_NE(fresh.lease, first.lease) << "a lease that was released does not come back";
}

TEST_P(ObjectStoreConformance, R4_ALeaseIsReleasedOnceHoweverOftenItIsAsked) {
  publish("txn", {{"object", kOnes}});
  const auto found = result_of<Found>(user().run(look_up_pages({"object"})));
  const auto other = result_of<Found>(user().run(look_up_pages({"object"})));
  EXPECT_NE(found.lease, other.lease);
  for (int i = 0; i < 3; ++i) release(found);
  EXPECT_EQ(get(found.lease, found.objects.at(0)).status.code(), Code::kConflict);
  expect_bytes(other, {kOnes});
  EXPECT_EQ(status_of(ReleaseLeasePost{LeaseId(4711)}), Status());
  EXPECT_EQ(backend_->store_use().leases, 1u);
}

TEST_P(ObjectStoreConformance, ALeaseReadsNothingButWhatItFound) {
  publish("one", {{"1", kOnes}});
  publish("two", {{"2", kTwos}});
  const auto first = result_of<Found>(user().run(look_up_pages({"1"})));
  const auto second = result_of<Found>(user().run(look_up_pages({"2"})));
  const Got got = get(first.lease, second.objects.at(0));
  EXPECT_EQ(got.status.code(), Code::kNotFound) << got.status.message();
  EXPECT_EQ(got.bytes, Bytes(100, Region::kFill));
}

TEST_P(ObjectStoreConformance, AReaderFinishesThoughItsSnapshotIsRemoved) {
  publish_snapshot("resource", {{"a", kOnes}, {"b", kTwos}});
  const auto first = result_of<Found>(user().run(look_up("resource")));
  const auto second = result_of<Found>(user().run(look_up("resource")));
  expect_bytes(first, {kOnes, kTwos});
  EXPECT_EQ(backend_->remove(snapshot_id("resource")), Status());
  EXPECT_EQ(user().run(look_up("resource")).status.code(), Code::kNotFound);
  expect_bytes(first, {kOnes, kTwos});
  EXPECT_EQ(backend_->collect_garbage(), Status());
  release(first);
  expect_bytes(second, {kOnes, kTwos});
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, 1, 1, 1}));
  release(second);
  EXPECT_EQ(backend_->store_use(), StoreUse());
}

TEST_P(ObjectStoreConformance, ARemovedSnapshotIsDroppedWhenItsLastLeaseIsOver) {
  publish_snapshot("resource", {{"a", kOnes}});
  const auto found = result_of<Found>(user().run(look_up("resource", Duration::from_s(10))));
  EXPECT_EQ(backend_->remove(snapshot_id("resource")), Status());
  // The same content again, while a reader still has the old one.
  EXPECT_EQ(begin("again", snapshot_id("resource")).phase, TxnPhase::kOpen);
  const std::vector<StoredObject> objects = {put("again", "a", kTwos)};
  EXPECT_EQ(status_of(CommitPost{TxnId("again"), manifest_of("resource", objects)}), Status());
  expect_bytes(found, {kOnes});
  expect_bytes(result_of<Found>(user().run(look_up("resource", Duration::from_s(100)))), {kTwos});
  backend_->pass_time(Duration::from_s(10));
  EXPECT_EQ(backend_->collect_garbage(), Status());
  EXPECT_EQ(get(found.lease, found.objects.at(0)).status.code(), Code::kConflict);
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, 1, 1, 1}));
}

TEST_P(ObjectStoreConformance, AGetAtTheEndOfItsLeaseGetsAllOrIsToldThatItIsOver) {
  constexpr int kRoundCount = 30;
  const Bytes bytes(200 * chunk_bytes_, std::byte{1});
  Participant& other = join("other");
  for (int round = 0; round < kRoundCount; ++round) {
    const std::string resource = "resource" + std::to_string(round);
    publish_snapshot(resource, {{"object", bytes}});
    const auto found = result_of<Found>(user().run(look_up(resource, Duration::from_s(10))));
    EXPECT_EQ(backend_->remove(snapshot_id(resource)), Status());
    const auto end = [&] {
      if (round % 2 == 0) {
        EXPECT_EQ(other.run(ReleaseLeasePost{found.lease}).status, Status());
      } else {
        backend_->pass_time(Duration::from_s(10));
        EXPECT_EQ(backend_->collect_garbage(), Status());
      }
    };
    const auto read = [&] {
      Got got{Status(), {}, bytes};
      while (got.status.ok() && !HasFailure()) {
        EXPECT_EQ(got.bytes, bytes);
        got = get(found.lease, found.objects.at(0));
      }
      EXPECT_EQ(got.status.code(), Code::kConflict) << got.status.message();
    };
    backend_->run_together({end, read});
    EXPECT_EQ(backend_->store_use(), StoreUse());
    if (HasFailure()) return;
  }
}

TEST_P(ObjectStoreConformance, PagesAreFoundInTheOrderAskedWithoutTheMissingOnes) {
  publish("one", {{"1", kOnes}, {"3", kOnes}});
  publish("two", {{"2", kTwos}, {"4", Bytes()}});
  const auto found = result_of<Found>(user().run(look_up_pages({"4", "x", "2", "1", "y", "2"})));
  EXPECT_TRUE(found.manifest == nullptr);
  EXPECT_EQ(found.pages, (std::vector<PageObjectKey>{page_key("4"), page_key("2"), page_key("1"), page_key("2")}));
  expect_bytes(found, {Bytes(), kTwos, kOnes, kTwos});
  const auto none = result_of<Found>(user().run(look_up_pages({"x"})));
  EXPECT_TRUE(none.objects.empty() && none.pages.empty());
}

TEST_P(ObjectStoreConformance, APageThatIsThereAlreadyStaysAsItIs) {
  publish("one", {{"1", kOnes}, {"2", kOnes}});
  const TxnState second = publish("two", {{"2", kTwos}, {"3", kTwos}});
  EXPECT_EQ(second.phase, TxnPhase::kCommitted);
  const auto found = result_of<Found>(user().run(look_up_pages({"1", "2", "3"})));
  expect_bytes(found, {kOnes, kOnes, kTwos});
}

TEST_P(ObjectStoreConformance, APublicationIsFoundUntilItsTimeIsOver) {
  begin("txn");
  Publication publication = pages_of({put("txn", "page", kOnes)});
  publication.ttl = Duration::from_s(30);
  EXPECT_EQ(status_of(CommitPost{TxnId("txn"), publication}), Status());
  begin("resource", snapshot_id("resource"));
  Publication manifest = manifest_of("resource", {put("resource", "object", kOnes)});
  manifest.ttl = Duration::from_s(30);
  EXPECT_EQ(status_of(CommitPost{TxnId("resource"), manifest}), Status());
  backend_->pass_time(Duration::from_s(29));
  release(result_of<Found>(user().run(look_up("resource"))));
  const auto last = result_of<Found>(user().run(look_up_pages({"page"})));
  expect_bytes(last, {kOnes});
  backend_->pass_time(Duration::from_s(1));
  EXPECT_EQ(user().run(look_up("resource")).status.code(), Code::kNotFound);
  EXPECT_TRUE(result_of<Found>(user().run(look_up_pages({"page"}))).objects.empty());
  EXPECT_EQ(backend_->collect_garbage(), Status());
  expect_bytes(last, {kOnes});
  release(last);
  EXPECT_EQ(backend_->store_use().publications, 0u);
  EXPECT_EQ(backend_->store_use().segments, 0u);
}

TEST_P(ObjectStoreConformance, WhatCameAfterAnExpiredPublicationIsFound) {
  begin("first");
  Publication publication = pages_of({put("first", "page", kOnes)});
  publication.ttl = Duration::from_s(30);
  EXPECT_EQ(status_of(CommitPost{TxnId("first"), publication}), Status());
  begin("resource", snapshot_id("resource"));
  Publication manifest = manifest_of("resource", {put("resource", "object", kOnes)});
  manifest.ttl = Duration::from_s(30);
  EXPECT_EQ(status_of(CommitPost{TxnId("resource"), manifest}), Status());
  backend_->pass_time(Duration::from_s(31));
  // The garbage was not collected yet.
  publish("second", {{"page", kTwos}});
  EXPECT_EQ(begin("again", snapshot_id("resource")).phase, TxnPhase::kOpen);
  const std::vector<StoredObject> objects = {put("again", "object", kTwos)};
  EXPECT_EQ(status_of(CommitPost{TxnId("again"), manifest_of("resource", objects)}), Status());
  for (int i = 0; i < 2; ++i) {
    const auto page = result_of<Found>(user().run(look_up_pages({"page"})));
    expect_bytes(page, {kTwos});
    release(page);
    const auto found = result_of<Found>(user().run(look_up("resource")));
    expect_bytes(found, {kTwos});
    release(found);
    EXPECT_EQ(backend_->collect_garbage(), Status());
  }
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, 2, 0, 2}));
}

}  // namespace
}  // namespace crossdock::testing
