// Transactions: begin -> put* -> commit | abort, each repeated, raced and refused.
#include <array>
#include <set>
#include <utility>

#include "tests/conformance/object_store_conformance.h"

namespace crossdock::testing {
namespace {

// Repeats a control operation while it is told to try later.
Completion insist(Backend& backend, Participant& participant, const Call& call) {
  while (true) {
    Completion completion = participant.run(call);
    if (completion.status.code() != Code::kUnavailable) return completion;
    backend.pause();
  }
}

TEST_P(ObjectStoreConformance, R1_EveryAcceptedPostCompletesOnceAndNoRefusedOneDoes) {
  constexpr size_t kPostsMax = 2000;
  Blocked blocked = block_workers(user(), 2);
  size_t accepted = 0;
  size_t refused = 0;
  while (accepted < kPostsMax && refused < 3) {
    const TxnId txn(std::to_string(accepted));
    const std::vector<Call> calls = {BeginPost{txn, UploadTarget{"tenant", {}, Duration::from_s(60)}}, AbortPost{txn},
                                     look_up_pages({"none"}), ReleaseLeasePost{LeaseId(4711)}};
    const Status status = user().try_post(user().new_op(), calls[accepted % calls.size()]);
    if (!status.ok()) {
      ASSERT_EQ(status.code(), Code::kResourceExhausted);
    }
    ++(status.ok() ? accepted : refused);
  }
  blocked.holds.clear();
  const std::vector<Completion> all = user().take_all();
  EXPECT_EQ(all.size(), accepted + blocked.revokes.size());
  for (const Completion& each : all) EXPECT_EQ(each.status, Status());
  EXPECT_EQ(begin("after").phase, TxnPhase::kOpen);
}

TEST_P(ObjectStoreConformance, R2_AFragmentsStepsStayThoughThePosterDropsThem) {
  begin("txn");
  const Bytes bytes(150, std::byte{3});
  Blocked blocked = block_workers(user(), 2);
  PutStep step = whole("object", bytes);
  const OpId op = user().post(PutPost{TxnId("txn"), step});
  step = PutStep();
  blocked.holds.clear();
  EXPECT_EQ(result_of<PutReceipt>(user().take(op)).stored, stored("object", bytes));
}

TEST_P(ObjectStoreConformance, R4_RepeatedCallsGetTheAnswerOfTheFirst) {
  const TxnId txn("txn");
  const BeginPost begin_call{txn, UploadTarget{"tenant", {}, Duration::from_s(60)}};
  const auto begun = result_of<TxnState>(user().run(begin_call));
  EXPECT_EQ(begun, (TxnState{txn, TxnPhase::kOpen, "", std::nullopt}));
  EXPECT_EQ(result_of<TxnState>(user().run(begin_call)), begun);
  const Bytes bytes(150, std::byte{3});
  const PutPost put_call{txn, whole("object", bytes)};
  const auto receipt = result_of<PutReceipt>(user().run(put_call));
  EXPECT_EQ(result_of<PutReceipt>(user().run(put_call)), receipt);
  EXPECT_EQ(result_of<TxnState>(user().run(begin_call)), begun);
  const CommitPost commit_call{txn, pages_of({stored("object", bytes)})};
  const auto committed = result_of<TxnState>(user().run(commit_call));
  EXPECT_EQ(committed.phase, TxnPhase::kCommitted);
  EXPECT_TRUE(committed.sequence.has_value());
  EXPECT_EQ(result_of<TxnState>(user().run(commit_call)), committed);
  EXPECT_EQ(result_of<TxnState>(user().run(AbortPost{txn})), committed) << "the commit was first";
  EXPECT_EQ(result_of<TxnState>(user().run(begin_call)), committed);
  EXPECT_EQ(user().run(put_call).status.code(), Code::kConflict);

  begin("other");
  const auto aborted = result_of<TxnState>(user().run(AbortPost{TxnId("other")}));
  EXPECT_EQ(aborted.phase, TxnPhase::kAborted);
  EXPECT_EQ(result_of<TxnState>(user().run(AbortPost{TxnId("other")})), aborted);
  EXPECT_EQ(begin("other"), aborted);
  EXPECT_EQ(result_of<TxnState>(user().run(CommitPost{TxnId("other"), pages_of({})})), aborted);
}

TEST_P(ObjectStoreConformance, R4_CallsRepeatedAtTheSameTimeGetOneAnswer) {
  constexpr size_t kThreadCount = 4;
  constexpr int kRoundCount = 10;
  std::vector<Participant*> callers;
  for (size_t i = 0; i < kThreadCount; ++i) callers.push_back(&join("caller" + std::to_string(i)));
  const Bytes bytes(500, std::byte{3});
  for (int round = 0; round < kRoundCount; ++round) {
    const std::string object = "object" + std::to_string(round);
    const TxnId txn("txn" + std::to_string(round));
    const PutPost put_call{txn, whole(object, bytes)};
    const CommitPost commit_call{txn, pages_of({stored(object, bytes)})};
    std::array<PutReceipt, kThreadCount> receipts;
    std::array<TxnState, kThreadCount> committed;
    Bodies bodies;
    for (size_t i = 0; i < kThreadCount; ++i)
      bodies.emplace_back([&, i] {
        Participant& caller = *callers[i];
        const UploadTarget target{"tenant", {}, Duration::from_s(60)};
        // Another caller may have committed before this one begins.
        result_of<TxnState>(insist(*backend_, caller, BeginPost{txn, target}));
        const Completion put = insist(*backend_, caller, put_call);
        EXPECT_TRUE(put.status.ok() || put.status.code() == Code::kConflict) << put.status.message();
        if (put.status.ok()) receipts[i] = result_of<PutReceipt>(put);
        committed[i] = result_of<TxnState>(insist(*backend_, caller, commit_call));
      });
    backend_->run_together(bodies);
    for (size_t i = 0; i < kThreadCount; ++i) {
      if (receipts[i].bytes > 0) {
        EXPECT_EQ(receipts[i].stored, stored(object, bytes));
      }
      EXPECT_EQ(committed[i], committed[0]);
    }
    EXPECT_EQ(committed[0].phase, TxnPhase::kCommitted);
  }
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, kRoundCount, 0, kRoundCount}));
}

TEST_P(ObjectStoreConformance, R4_OfACommitAndAnAbortOneWinsAndBothAreTold) {
  constexpr int kRoundCount = 40;
  std::vector<Participant*> callers;
  for (int i = 0; i < 4; ++i) callers.push_back(&join("caller" + std::to_string(i)));
  uint64_t committed_count = 0;
  for (int round = 0; round < kRoundCount; ++round) {
    const std::string object = "object" + std::to_string(round);
    const TxnId txn("txn" + std::to_string(round));
    begin(txn.text());
    const std::vector<StoredObject> objects = {put(txn.text(), object, Bytes(100, std::byte{1}))};
    Meeting start(*backend_, 4);
    std::array<TxnState, 4> ends;
    Bodies bodies;
    for (size_t i = 0; i < 4; ++i)
      bodies.emplace_back([&, i] {
        start.arrive_and_wait();
        const bool commits = (i + static_cast<size_t>(round)) % 2 == 0;
        const Call call = commits ? Call(CommitPost{txn, pages_of(objects)}) : Call(AbortPost{txn});
        ends[i] = result_of<TxnState>(insist(*backend_, *callers[i], call));
      });
    backend_->run_together(bodies);
    for (const TxnState& end : ends) EXPECT_EQ(end, ends[0]);
    const bool is_committed = ends[0].phase == TxnPhase::kCommitted;
    EXPECT_TRUE(is_committed || ends[0].phase == TxnPhase::kAborted);
    committed_count += is_committed ? 1 : 0;
    const auto found = result_of<Found>(user().run(look_up_pages({object})));
    EXPECT_EQ(found.objects.size(), is_committed ? 1u : 0u);
    release(found);
  }
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, committed_count, 0, committed_count}));
}

TEST_P(ObjectStoreConformance, R4_AnAbortBeforeTheBeginWins) {
  const auto aborted = result_of<TxnState>(user().run(AbortPost{TxnId("txn")}));
  EXPECT_EQ(aborted.phase, TxnPhase::kAborted);
  EXPECT_EQ(begin("txn"), aborted);
  EXPECT_EQ(user().run(PutPost{TxnId("txn"), whole("object", Bytes(5))}).status.code(), Code::kConflict);
  EXPECT_EQ(result_of<TxnState>(user().run(CommitPost{TxnId("txn"), pages_of({})})), aborted);
  EXPECT_EQ(backend_->store_use(), StoreUse());
}

TEST_P(ObjectStoreConformance, R5_ACancelledCallCompletesAndAnUnknownOneDoesNoHarm) {
  ObjectStore& store = *user().ports().store;
  store.cancel(OpId(4711));
  begin("txn");
  const PutPost put_call{TxnId("txn"), whole("object", Bytes(100, std::byte{1}))};
  Blocked blocked = block_workers(user(), 2);
  const std::vector<OpId> ops = {user().post(put_call), user().post(look_up_pages({"none"})),
                                 user().post(AbortPost{TxnId("other")})};
  for (const OpId op : ops) store.cancel(op);
  for (const OpId op : ops) store.cancel(op);
  blocked.holds.clear();
  for (const Completion& each : user().take_all())
    EXPECT_TRUE(each.status.ok() || each.status.code() == Code::kCancelled) << each.status.message();
  for (const OpId op : ops) store.cancel(op);
  EXPECT_EQ(result_of<PutReceipt>(user().run(put_call)).stored, stored("object", Bytes(100, std::byte{1})));
  EXPECT_EQ(status_of(AbortPost{TxnId("other")}), Status());
  EXPECT_TRUE(user().take_all().empty());
}

TEST_P(ObjectStoreConformance, I2_NothingIsFoundBeforeTheCommitAndAllAfterIt) {
  begin("resource", snapshot_id("resource"));
  std::vector<StoredObject> objects;
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(user().run(look_up("resource")).status.code(), Code::kNotFound);
    objects.push_back(put("resource", name, Bytes(100, std::byte{1})));
  }
  EXPECT_EQ(user().run(look_up("resource")).status.code(), Code::kNotFound);
  const Publication publication = manifest_of("resource", objects);
  EXPECT_EQ(status_of(CommitPost{TxnId("resource"), publication}), Status());
  const auto found = result_of<Found>(user().run(look_up("resource")));
  ASSERT_FALSE(found.manifest == nullptr);
  EXPECT_EQ(found.manifest.text(), std::get<AnyManifest>(publication.content).text());
  ASSERT_EQ(found.objects.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found.objects[i].object, found.manifest->objects[i]);
  expect_bytes(found, std::vector<Bytes>(3, Bytes(100, std::byte{1})));
  EXPECT_EQ(user().run(look_up("another")).status.code(), Code::kNotFound);
}

TEST_P(ObjectStoreConformance, I2_ALookupDuringACommitFindsAllOrNothing) {
  constexpr int kRoundCount = 15;
  Participant& reader = join("reader");
  for (int round = 0; round < kRoundCount; ++round) {
    std::map<std::string, Bytes> objects;
    std::vector<std::string> names;
    for (int i = 0; i < 8; ++i) names.push_back(std::to_string(round) + "-" + std::to_string(i));
    for (const std::string& name : names) objects[name] = Bytes(70, std::byte{1});
    const auto read = [&] {
      while (true) {
        const auto found = result_of<Found>(reader.run(look_up_pages(names)));
        EXPECT_TRUE(found.objects.empty() || found.objects.size() == 8) << found.objects.size();
        EXPECT_EQ(reader.run(ReleaseLeasePost{found.lease}).status, Status());
        if (!found.objects.empty() || ::testing::Test::HasFailure()) return;
      }
    };
    const auto write = [&] { publish("txn" + std::to_string(round), objects); };
    backend_->run_together({read, write});
  }
}

TEST_P(ObjectStoreConformance, ACommitThatDiffersFromWhatWasPutIsRefusedByName) {
  const TxnId txn("txn");
  begin("txn");
  const StoredObject a = put("txn", "object-a", Bytes(100, std::byte{1}));
  const StoredObject b = put("txn", "object-b", Bytes(200, std::byte{2}));
  Region& source = region("source", 10);
  PutStep half{RegionId("object-c"), 20, 20, "first", steps_between({source.key}, {}, {plain_step(0, 0, 10)})};
  const auto refused = [&](const std::vector<StoredObject>& objects, Code code, const std::string& name) {
    const Status status = user().run(CommitPost{txn, pages_of(objects)}).status;
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    EXPECT_TRUE(result_of<Found>(user().run(look_up_pages({"object-a", "object-b"}))).objects.empty());
  };
  StoredObject wrong_sum = b;
  wrong_sum.chunk_crc32c[1] ^= 1;
  StoredObject wrong_bytes = b;
  wrong_bytes.bytes -= 1;
  StoredObject wrong_chunks = b;
  wrong_chunks.chunk_bytes += 1;
  refused({a, b, stored("object-z", Bytes(1))}, Code::kNotFound, "object-z");
  refused({a, wrong_sum}, Code::kInvalidArgument, "object-b");
  refused({a, wrong_bytes}, Code::kInvalidArgument, "object-b");
  refused({a, wrong_chunks}, Code::kInvalidArgument, "object-b");
  refused({a}, Code::kInvalidArgument, "object-b");
  EXPECT_EQ(result_of<PutReceipt>(user().run(PutPost{txn, half})).stored, std::nullopt);
  refused({a, b, stored("object-c", Bytes(20))}, Code::kNotFound, "object-c");
  half.writer = "second";
  half.steps = steps_between({source.key}, {}, {plain_step(0, 10, 10)});
  const auto c = result_of<PutReceipt>(user().run(PutPost{txn, half})).stored;
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(result_of<TxnState>(user().run(CommitPost{txn, pages_of({a, b, *c})})).phase, TxnPhase::kCommitted);
}

TEST_P(ObjectStoreConformance, WhatATransactionIsForDoesNotChange) {
  begin("txn", snapshot_id("one"));
  for (const UploadTarget& other : {UploadTarget{"tenant", {}, Duration::from_s(60)},
                                    UploadTarget{"tenant", snapshot_id("two"), Duration::from_s(60)},
                                    UploadTarget{"other tenant", snapshot_id("one"), Duration::from_s(60)}})
    EXPECT_EQ(user().run(BeginPost{TxnId("txn"), other}).status.code(), Code::kConflict);
  const std::vector<StoredObject> objects = {put("txn", "object", Bytes(10))};
  EXPECT_EQ(user().run(CommitPost{TxnId("txn"), pages_of(objects)}).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(user().run(CommitPost{TxnId("txn"), manifest_of("two", objects)}).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(user().run(CommitPost{TxnId("unknown"), pages_of({})}).status.code(), Code::kConflict);
  EXPECT_EQ(user().run(PutPost{TxnId("unknown"), whole("object", Bytes(10))}).status.code(), Code::kConflict);
  EXPECT_EQ(status_of(CommitPost{TxnId("txn"), manifest_of("one", objects)}), Status());
  const UploadTarget again{"tenant", snapshot_id("one"), Duration::from_s(60)};
  EXPECT_EQ(user().run(BeginPost{TxnId("again"), again}).status.code(), Code::kConflict) << "it is stored already";
}

// Case U55: a put beyond the quota of its tenant was thrown away and reported as a success.
TEST_P(ObjectStoreConformance, AnObjectBeyondTheQuotaIsRefusedAndItsTenantNamed) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  open_store({.chunk_bytes = 64 << 10, .quota_bytes = 10 * kMiB});
  const Bytes large(11 * kMiB, std::byte{1});
  begin("large");
  const Status status = user().run(PutPost{TxnId("large"), whole("object", large)}).status;
  EXPECT_EQ(status.code(), Code::kQuota);
  EXPECT_NE(status.message().find("'tenant'"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("'object'"), std::string::npos) << status.message();
  EXPECT_EQ(user().run(CommitPost{TxnId("large"), pages_of({stored("object", large)})}).status.code(), Code::kNotFound);

  // What is under way counts, what was aborted does not, and other tenants have their own.
  const Bytes half(6 * kMiB, std::byte{2});
  const Call put_half = PutPost{TxnId("large"), whole("half", half)};
  EXPECT_EQ(status_of(put_half), Status());
  begin("second");
  const PutPost second{TxnId("second"), whole("second", half)};
  EXPECT_EQ(user().run(second).status.code(), Code::kQuota);
  begin("foreign", {}, "another tenant");
  EXPECT_EQ(status_of(PutPost{TxnId("foreign"), whole("foreign", half)}), Status());
  EXPECT_EQ(status_of(AbortPost{TxnId("large")}), Status());
  EXPECT_EQ(status_of(second), Status());
  EXPECT_EQ(status_of(CommitPost{TxnId("second"), pages_of({stored("second", half)})}), Status());
  // What is published counts until it is gone.
  begin("third");
  EXPECT_EQ(user().run(PutPost{TxnId("third"), whole("third", half)}).status.code(), Code::kQuota);
}

TEST_P(ObjectStoreConformance, TheUploadOfASilentUploaderIsAborted) {
  begin("silent");
  put("silent", "a", Bytes(10));
  begin("busy");
  backend_->pass_time(Duration::from_s(40));
  put("busy", "b", Bytes(10));  // renews
  backend_->pass_time(Duration::from_s(40));
  EXPECT_EQ(backend_->collect_garbage(), Status());
  EXPECT_EQ(backend_->store_use().open_transactions, 1u);
  EXPECT_EQ(begin("silent").phase, TxnPhase::kAborted);
  EXPECT_EQ(user().run(PutPost{TxnId("silent"), whole("c", Bytes(10))}).status.code(), Code::kConflict);
  EXPECT_EQ(status_of(CommitPost{TxnId("busy"), pages_of({stored("b", Bytes(10))})}), Status());
  EXPECT_EQ(backend_->store_use(), (StoreUse{0, 1, 0, 1}));
}

// Case U50: a key that was removed while it was being written came back with the end of the write.
TEST_P(ObjectStoreConformance, ASnapshotRemovedDuringItsUploadStaysRemoved) {
  begin("resource", snapshot_id("resource"));
  const std::vector<StoredObject> objects = {put("resource", "object", Bytes(100, std::byte{1}))};
  EXPECT_EQ(backend_->remove(snapshot_id("resource")), Status());
  const Completion late_put = user().run(PutPost{TxnId("resource"), whole("late", Bytes(10))});
  EXPECT_EQ(late_put.status.code(), Code::kConflict);
  EXPECT_EQ(result_of<TxnState>(user().run(CommitPost{TxnId("resource"), manifest_of("resource", objects)})).phase,
            TxnPhase::kAborted);
  EXPECT_EQ(user().run(look_up("resource")).status.code(), Code::kNotFound);
  EXPECT_EQ(backend_->store_use(), StoreUse());
  EXPECT_EQ(backend_->remove(snapshot_id("resource")).code(), Code::kNotFound);
}

TEST_P(ObjectStoreConformance, AnAbortDuringPutsLeavesNothingBehind) {
  constexpr int kRoundCount = 10;
  Participant& other = join("other");
  for (int round = 0; round < kRoundCount; ++round) {
    const std::string txn = "txn" + std::to_string(round);
    begin(txn);
    Region& source = region("source" + txn, 4096);
    for (int i = 0; i < 12; ++i) {
      // Some whole, some with a second writer that never comes.
      PutStep step{RegionId("object" + std::to_string(i)), 4096, 4096, "writer", {}};
      const uint64_t bytes = i % 3 == 0 ? 100 : 4096;
      step.steps = steps_between({source.key}, {}, {plain_step(0, 0, bytes)});
      user().post(PutPost{TxnId(txn), step});
    }
    EXPECT_EQ(result_of<TxnState>(other.run(AbortPost{TxnId(txn)})).phase, TxnPhase::kAborted);
    for (const Completion& each : user().take_all())
      EXPECT_TRUE(each.status.ok() || each.status.code() == Code::kConflict) << each.status.message();
    EXPECT_EQ(backend_->store_use(), StoreUse());
  }
}

}  // namespace
}  // namespace crossdock::testing
