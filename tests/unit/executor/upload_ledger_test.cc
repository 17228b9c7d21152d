// The rules of upload transactions: each by an example, then every short sequence of the calls of two writers, an
// aborter and the clock, against a model that keeps no more than what its answers need.
#include "executor/upload_ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "model/wire/documents.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr Duration kLease = Duration::from_s(10);
const TxnId kTxn("upload-1");
const UploadTarget kPages{"team-a", std::nullopt, kLease};

TimePoint at_s(int64_t seconds) { return TimePoint::from_ns(0) + Duration::from_s(seconds); }

// A fragment of `bytes` bytes that begins at `offset` of the object.
PutStep fragment(const std::string& object, const std::string& writer, uint64_t bytes, uint64_t payload,
                 uint64_t offset = 0, uint64_t object_bytes = 16) {
  auto work = std::make_shared<CopyWork>();
  if (bytes > 0) {
    CopyStep step;
    step.bytes = bytes;
    step.target_offset = offset;
    work->steps.push_back(step);
  }
  return PutStep{RegionId(object), object_bytes, payload, writer, StepSpan(work)};
}

StoredObject stored(const std::string& object, uint64_t bytes = 16, uint32_t sum = 7) {
  return StoredObject{RegionId(object), bytes, 16, {sum}};
}

// Pages of these objects.
Publication pages_of(const std::vector<StoredObject>& objects) {
  std::vector<PageEntry> entries;
  for (const StoredObject& object : objects)
    entries.push_back(
        PageEntry{PageObjectKey{PageKey(Sha256Digest()), Sha256Digest(), ObjectKey(object.id.text())}, object});
  return Publication{std::move(entries), std::nullopt};
}

// Puts an object of one writer.
void put_whole(UploadLedger& ledger, const TxnId& txn, const std::string& object, TimePoint now = at_s(0)) {
  const PutStep step = fragment(object, "w", 16, 16);
  ASSERT_FALSE(ledger.admit(txn, step, now).value().has_value());
  ASSERT_TRUE(ledger.fragment_taken(txn, step).value());
  ASSERT_TRUE(ledger.object_stored(txn, step, stored(object)).ok());
}

Code code_of(const Status& status) { return status.code(); }
template <class Value>
Code code_of(const Result<Value>& result) {
  return result.status().code();
}

TEST(UploadLedger, ATransactionIsOpenFromItsBeginOn) {
  UploadLedger ledger;
  const TxnState state = ledger.begin(kTxn, kPages, at_s(0)).value();
  EXPECT_EQ(state, (TxnState{kTxn, TxnPhase::kOpen, "", std::nullopt}));
  EXPECT_EQ(ledger.begin(kTxn, kPages, at_s(1)).value(), state) << "repeated";
  EXPECT_EQ(ledger.open_count(), 1u);
  EXPECT_EQ(*ledger.target(kTxn), kPages);
  EXPECT_TRUE(ledger.is_open(kTxn));
}

TEST(UploadLedger, ABeginForAnotherTargetIsAConflict) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  UploadTarget other = kPages;
  other.tenant = "team-b";
  EXPECT_EQ(code_of(ledger.begin(kTxn, other, at_s(0))), Code::kConflict);
}

TEST(UploadLedger, AbortBeforeBeginWins) {
  UploadLedger ledger;
  EXPECT_EQ(ledger.abort(kTxn, "cancelled", at_s(0)).value().phase, TxnPhase::kAborted);
  const TxnState begun = ledger.begin(kTxn, kPages, at_s(1)).value();
  EXPECT_EQ(begun.phase, TxnPhase::kAborted);
  EXPECT_EQ(begun.reason, "cancelled");
  EXPECT_EQ(ledger.open_count(), 0u);
  EXPECT_EQ(code_of(ledger.admit(kTxn, fragment("o", "w", 16, 16), at_s(1))), Code::kConflict);
}

TEST(UploadLedger, NothingIsTakenForATransactionThatIsNotOpen) {
  UploadLedger ledger;
  const PutStep step = fragment("o", "w", 16, 16);
  EXPECT_EQ(code_of(ledger.admit(kTxn, step, at_s(0))), Code::kConflict);
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, pages_of({}), at_s(0))), Code::kConflict);
  EXPECT_FALSE(ledger.is_open(kTxn));
  EXPECT_EQ(ledger.target(kTxn), nullptr);
}

TEST(UploadLedger, ARepeatedPutIsAnsweredByItsFirstReceipt) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  put_whole(ledger, kTxn, "o");
  const std::optional<PutReceipt> again = ledger.admit(kTxn, fragment("o", "w", 16, 16), at_s(0)).value();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->bytes, 16u);
  EXPECT_EQ(again->stored, stored("o"));
  EXPECT_EQ(code_of(ledger.admit(kTxn, fragment("o", "w", 8, 16), at_s(0))), Code::kInvalidArgument) << "another size";
}

// Two writers of the same bytes add up to the payload and leave a hole.
TEST(UploadLedger, AnObjectIsCompleteWhenItHasNoHoleAndNotWhenItHasEnoughBytes) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  const PutStep first = fragment("o", "a", 8, 16);
  ASSERT_TRUE(ledger.admit(kTxn, first, at_s(0)).ok());
  for (const uint64_t offset : std::array<uint64_t, 3>{0, 4, 7}) {
    const Result<std::optional<PutReceipt>> second = ledger.admit(kTxn, fragment("o", "b", 8, 16, offset), at_s(0));
    EXPECT_EQ(second.status(), Status(Code::kInvalidArgument, fmt::format("object 'o': fragment of 'b': byte {} is "
                                                                          "another writer's already",
                                                                          offset)));
  }
  // Also once the first is taken; and no more when it failed.
  EXPECT_FALSE(ledger.fragment_taken(kTxn, first).value());
  EXPECT_EQ(code_of(ledger.admit(kTxn, fragment("o", "b", 8, 16, 7), at_s(0))), Code::kInvalidArgument);
  const PutStep second = fragment("o", "b", 8, 16, 8);
  ASSERT_TRUE(ledger.admit(kTxn, second, at_s(0)).ok());
  ledger.fragment_failed(kTxn, second);
  ASSERT_TRUE(ledger.admit(kTxn, second, at_s(0)).ok()) << "its bytes are free again";
  EXPECT_TRUE(ledger.fragment_taken(kTxn, second).value());
}

TEST(UploadLedger, AFragmentWritesEachByteOnce) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  auto work = std::make_shared<CopyWork>();
  CopyStep step;
  step.bytes = 4;
  step.push_axis({2, 4, 2});  // bytes [0,4) and [2,6)
  work->steps = {step};
  PutStep twice;
  twice.object = RegionId("o");
  twice.object_bytes = twice.payload_bytes = 8;
  twice.writer = "w";
  twice.steps = StepSpan(work);
  EXPECT_EQ(ledger.admit(kTxn, twice, at_s(0)).status(),
            Status(Code::kInvalidArgument, "object 'o': fragment of 'w': byte 2 is written twice"));
}

TEST(UploadLedger, TheSameFragmentIsUnderWayOnce) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  const PutStep step = fragment("o", "w", 16, 16);
  ASSERT_TRUE(ledger.admit(kTxn, step, at_s(0)).ok());
  EXPECT_EQ(code_of(ledger.admit(kTxn, step, at_s(0))), Code::kUnavailable);
  ledger.fragment_failed(kTxn, step);
  EXPECT_FALSE(ledger.admit(kTxn, step, at_s(0)).value().has_value()) << "it may be tried again";
}

TEST(UploadLedger, AnObjectIsCompleteWithTheLastOfItsWriters) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  const PutStep first = fragment("o", "a", 6, 16);
  const PutStep second = fragment("o", "b", 10, 16, 6);
  ASSERT_TRUE(ledger.admit(kTxn, first, at_s(0)).ok());
  ASSERT_TRUE(ledger.admit(kTxn, second, at_s(0)).ok());
  EXPECT_FALSE(ledger.fragment_taken(kTxn, second).value());
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0))), Code::kUnavailable);
  EXPECT_TRUE(ledger.fragment_taken(kTxn, first).value());
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0))), Code::kUnavailable)
      << "it is still being stored";
  const PutReceipt receipt = ledger.object_stored(kTxn, first, stored("o")).value();
  EXPECT_EQ(receipt.writer, "a");
  EXPECT_EQ(receipt.stored, stored("o"));
  EXPECT_FALSE(ledger.admit(kTxn, second, at_s(0)).value()->stored.has_value()) << "the other one completed it";
  EXPECT_TRUE(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0)).ok());
}

TEST(UploadLedger, FragmentsThatDoNotFitTheObjectAreRefusedAndLeaveNothing) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  const auto admit = [&](const PutStep& step) { return code_of(ledger.admit(kTxn, step, at_s(0))); };
  EXPECT_EQ(admit(fragment("o", "a", 16, 16, 1)), Code::kInvalidArgument) << "beyond the object";
  EXPECT_EQ(admit(fragment("o", "a", 16, 16, UINT64_MAX)), Code::kInvalidArgument);
  EXPECT_EQ(admit(fragment("o", "a", 9, 8)), Code::kInvalidArgument) << "more than the payload";
  EXPECT_EQ(admit(fragment("o", "a", 0, 8)), Code::kInvalidArgument) << "nothing of a payload";
  EXPECT_EQ(ledger.open_bytes("team-a"), 0u);
  EXPECT_TRUE(ledger.start_commit(kTxn, pages_of({}), at_s(0)).ok()) << "no object is known";
  ledger.commit_failed(kTxn);
  ASSERT_EQ(admit(fragment("o", "a", 6, 10)), Code::kOk);
  EXPECT_EQ(admit(fragment("o", "b", 5, 10, 6)), Code::kInvalidArgument) << "4 bytes are left";
  EXPECT_EQ(admit(fragment("o", "b", 4, 11, 6)), Code::kInvalidArgument) << "another payload";
  EXPECT_EQ(admit(fragment("o", "b", 4, 10, 6, 17)), Code::kInvalidArgument) << "another size";
  EXPECT_EQ(admit(fragment("o", "b", 4, 10, 6)), Code::kOk);
}

TEST(UploadLedger, AnObjectMayBeEmpty) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  const PutStep step = fragment("o", "a", 0, 0, 0, 0);
  ASSERT_TRUE(ledger.admit(kTxn, step, at_s(0)).ok());
  EXPECT_TRUE(ledger.fragment_taken(kTxn, step).value());
  EXPECT_TRUE(ledger.object_stored(kTxn, step, stored("o", 0)).ok());
  EXPECT_TRUE(ledger.start_commit(kTxn, pages_of({stored("o", 0)}), at_s(0)).ok());
}

TEST(UploadLedger, ACommitNamesWhatIsMissingOrDifferent) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  put_whole(ledger, kTxn, "o");
  const PutStep half = fragment("half", "a", 6, 16);
  ASSERT_TRUE(ledger.admit(kTxn, half, at_s(0)).ok());
  ASSERT_FALSE(ledger.fragment_taken(kTxn, half).value());
  const auto commit = [&](const std::vector<StoredObject>& objects) {
    return ledger.start_commit(kTxn, pages_of(objects), at_s(0)).status();
  };
  EXPECT_EQ(commit({stored("o"), stored("gone")}).code(), Code::kNotFound);
  EXPECT_EQ(commit({stored("o"), stored("gone")}).message(), "object 'gone' was not put");
  EXPECT_EQ(commit({stored("o"), stored("half")}).code(), Code::kNotFound);
  EXPECT_EQ(commit({stored("o"), stored("half")}).message(),
            "object 'half' is incomplete: 6 of 16 bytes are there, of 'a'");
  EXPECT_EQ(code_of(commit({stored("o")})), Code::kInvalidArgument) << "no word of 'half'";
  ledger.object_lost(kTxn, RegionId("half"));
  EXPECT_EQ(code_of(commit({stored("o", 15)})), Code::kInvalidArgument) << "another size";
  EXPECT_EQ(code_of(commit({stored("o", 16, 8)})), Code::kInvalidArgument) << "another checksum";
  EXPECT_EQ(code_of(commit({})), Code::kInvalidArgument);
  EXPECT_EQ(code_of(commit({stored("o")})), Code::kOk);
}

TEST(UploadLedger, APublicationIsOfTheKindThatTheTransactionWasBegunFor) {
  UploadLedger ledger;
  UploadTarget snapshot = kPages;
  snapshot.content = digest(example_snapshot());
  ASSERT_TRUE(ledger.begin(kTxn, snapshot, at_s(0)).ok());
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, pages_of({}), at_s(0))), Code::kInvalidArgument);
  const TxnId pages("pages");
  ASSERT_TRUE(ledger.begin(pages, kPages, at_s(0)).ok());
  const Publication manifest{std::make_shared<const Valid<StoreManifest>>(example_store_manifest()), std::nullopt};
  EXPECT_EQ(code_of(ledger.start_commit(pages, manifest, at_s(0))), Code::kInvalidArgument);
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, manifest, at_s(0))), Code::kNotFound) << "its objects were not put";
}

TEST(UploadLedger, OfCommitAndAbortTheFirstWinsAndTheOtherIsTold) {
  UploadLedger ledger;
  const TxnId other("upload-2");
  for (const TxnId& txn : {kTxn, other}) {
    ASSERT_TRUE(ledger.begin(txn, kPages, at_s(0)).ok());
    put_whole(ledger, txn, "o");
  }
  ASSERT_EQ(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0)).value().phase, TxnPhase::kOpen);
  EXPECT_EQ(code_of(ledger.abort(kTxn, "x", at_s(0))), Code::kUnavailable) << "not decided yet";
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0))), Code::kUnavailable);
  EXPECT_EQ(code_of(ledger.admit(kTxn, fragment("p", "w", 16, 16), at_s(0))), Code::kConflict);
  EXPECT_EQ(ledger.committed(kTxn, 5, at_s(0)), (TxnState{kTxn, TxnPhase::kCommitted, "", 5}));
  EXPECT_EQ(ledger.abort(kTxn, "x", at_s(0)).value().phase, TxnPhase::kCommitted);
  EXPECT_EQ(ledger.begin(kTxn, kPages, at_s(0)).value().sequence, 5u);

  ASSERT_EQ(ledger.abort(other, "first", at_s(0)).value().phase, TxnPhase::kAborted);
  EXPECT_EQ(ledger.abort(other, "second", at_s(0)).value().reason, "first");
  EXPECT_EQ(ledger.start_commit(other, pages_of({stored("o")}), at_s(0)).value().phase, TxnPhase::kAborted);
}

TEST(UploadLedger, ACommitThatFailedLeavesTheTransactionOpen) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  ASSERT_TRUE(ledger.start_commit(kTxn, pages_of({}), at_s(0)).ok());
  ledger.commit_failed(kTxn);
  EXPECT_EQ(ledger.abort(kTxn, "x", at_s(0)).value().phase, TxnPhase::kAborted);
}

TEST(UploadLedger, WhoFallsSilentIsFoundAtTheEndOfTheLeaseAndEachWordRenewsIt) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  EXPECT_TRUE(ledger.silent(at_s(9)).empty());
  EXPECT_EQ(ledger.silent(at_s(10)), std::vector<TxnId>{kTxn});
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(5)).ok());
  EXPECT_TRUE(ledger.silent(at_s(14)).empty());
  ASSERT_TRUE(ledger.admit(kTxn, fragment("o", "w", 16, 16), at_s(9)).ok());
  EXPECT_TRUE(ledger.silent(at_s(18)).empty());
  EXPECT_TRUE(ledger.silent(at_s(1000)).empty()) << "its bytes are under way, however long they take";
  ledger.fragment_failed(kTxn, fragment("o", "w", 16, 16));
  EXPECT_TRUE(ledger.silent(at_s(1009)).empty()) << "and their end is a word too";
  EXPECT_EQ(ledger.silent(at_s(1010)), std::vector<TxnId>{kTxn});
  ledger.object_lost(kTxn, RegionId("o"));
  ASSERT_TRUE(ledger.start_commit(kTxn, pages_of({}), at_s(20)).ok());
  EXPECT_TRUE(ledger.silent(at_s(1000)).empty()) << "one that is committing is not silent";
  ledger.commit_failed(kTxn);
  EXPECT_TRUE(ledger.silent(at_s(29)).empty());
  EXPECT_EQ(ledger.silent(at_s(30)), std::vector<TxnId>{kTxn});
}

TEST(UploadLedger, ALostObjectIsAsIfItHadNeverBeenPut) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  put_whole(ledger, kTxn, "o");
  ledger.object_lost(kTxn, RegionId("o"));
  EXPECT_EQ(ledger.open_bytes("team-a"), 0u);
  EXPECT_EQ(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0)).status().message(), "object 'o' was not put");
  put_whole(ledger, kTxn, "o");
  EXPECT_TRUE(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(0)).ok());
}

TEST(UploadLedger, WhoWritesIntoALostObjectIsToldAndNobodyBeginsAnewBefore) {
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  const PutStep first = fragment("o", "a", 6, 16);
  const PutStep second = fragment("o", "b", 10, 16, 6);
  ASSERT_TRUE(ledger.admit(kTxn, first, at_s(0)).ok());
  ASSERT_FALSE(ledger.fragment_taken(kTxn, first).value());
  ASSERT_TRUE(ledger.admit(kTxn, second, at_s(0)).ok());
  ASSERT_TRUE(ledger.fragment_taken(kTxn, second).value());
  ledger.object_lost(kTxn, RegionId("o"));
  EXPECT_EQ(code_of(ledger.admit(kTxn, first, at_s(0))), Code::kUnavailable);
  EXPECT_EQ(code_of(ledger.object_stored(kTxn, second, stored("o"))), Code::kUnavailable);
  EXPECT_FALSE(ledger.admit(kTxn, first, at_s(0)).value().has_value());
  EXPECT_EQ(code_of(ledger.fragment_taken(kTxn, second)), Code::kConflict) << "it is not under way any more";
}

TEST(UploadLedger, LimitsAreKept) {
  LedgerLimits limits;
  limits.open_count_max = 2;
  limits.object_count_max = 1;
  UploadLedger ledger(limits);
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  ASSERT_TRUE(ledger.begin(TxnId("upload-2"), kPages, at_s(0)).ok());
  EXPECT_EQ(code_of(ledger.begin(TxnId("upload-3"), kPages, at_s(0))), Code::kUnavailable);
  EXPECT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok()) << "known ones are answered";
  ASSERT_TRUE(ledger.abort(TxnId("upload-2"), "x", at_s(0)).ok());
  EXPECT_TRUE(ledger.begin(TxnId("upload-3"), kPages, at_s(0)).ok());
  put_whole(ledger, kTxn, "o");
  EXPECT_EQ(code_of(ledger.admit(kTxn, fragment("p", "w", 16, 16), at_s(0))), Code::kInvalidArgument);
}

TEST(UploadLedger, ForgetsClosedTransactionsByAgeAndByNumberOldestFirst) {
  LedgerLimits limits;
  limits.closed_count_max = 3;
  limits.closed_kept = Duration::from_s(100);
  UploadLedger ledger(limits);
  ASSERT_TRUE(ledger.begin(TxnId("open"), kPages, at_s(0)).ok());
  const auto close = [&](const std::string& name, int64_t seconds) {
    ASSERT_TRUE(ledger.abort(TxnId(name), "x", at_s(seconds)).ok());
  };
  close("c", 1);
  close("b", 2);
  close("a", 3);
  EXPECT_TRUE(ledger.forget(at_s(100)).empty());
  EXPECT_EQ(ledger.forget(at_s(102)), (std::vector<TxnId>{TxnId("c"), TxnId("b")})) << "100 s after their end";
  EXPECT_EQ(ledger.begin(TxnId("a"), kPages, at_s(102)).value().phase, TxnPhase::kAborted) << "still known";
  for (const char* name : {"d", "e", "f"}) close(name, 50);
  EXPECT_EQ(ledger.forget(at_s(60)), std::vector<TxnId>{TxnId("a")}) << "the oldest of four";
  EXPECT_TRUE(ledger.forget(at_s(60)).empty());
  EXPECT_TRUE(ledger.is_open(TxnId("open"))) << "open ones are never forgotten";
}

TEST(UploadLedger, KnowsTheUploadsOfASnapshot) {
  UploadLedger ledger;
  UploadTarget target = kPages;
  target.content = digest(example_snapshot());
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(ledger.begin(TxnId(name), target, at_s(0)).ok());
  ASSERT_TRUE(ledger.begin(TxnId("pages"), kPages, at_s(0)).ok());
  ASSERT_TRUE(ledger.abort(TxnId("c"), "x", at_s(0)).ok());
  EXPECT_EQ(ledger.uploads_of(*target.content), (std::vector<TxnId>{TxnId("a"), TxnId("b")}));
}

TEST(UploadLedger, ARestoredTransactionGoesOnWithoutItsObjects) {
  UploadLedger ledger;
  ledger.restore(TxnState{kTxn, TxnPhase::kOpen, "", std::nullopt}, kPages, at_s(10));
  ledger.restore(TxnState{TxnId("old"), TxnPhase::kCommitted, "", 3}, kPages, at_s(1));
  EXPECT_EQ(ledger.open_count(), 1u);
  EXPECT_EQ(ledger.begin(TxnId("old"), kPages, at_s(2)).value().sequence, 3u);
  EXPECT_EQ(code_of(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(2))), Code::kNotFound);
  put_whole(ledger, kTxn, "o", at_s(3));
  EXPECT_EQ(ledger.silent(at_s(13)), std::vector<TxnId>{kTxn});
  EXPECT_TRUE(ledger.start_commit(kTxn, pages_of({stored("o")}), at_s(4)).ok());
}

TEST(UploadLedger, CountsTheBytesOfOpenTransactionsByTenant) {
  UploadLedger ledger;
  UploadTarget other = kPages;
  other.tenant = "team-b";
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  ASSERT_TRUE(ledger.begin(TxnId("second"), kPages, at_s(0)).ok());
  ASSERT_TRUE(ledger.begin(TxnId("other"), other, at_s(0)).ok());
  put_whole(ledger, kTxn, "o");
  put_whole(ledger, TxnId("second"), "o");
  ASSERT_TRUE(ledger.admit(TxnId("other"), fragment("o", "w", 1, 2), at_s(0)).ok());
  EXPECT_EQ(ledger.open_bytes("team-a"), 32u);
  EXPECT_EQ(ledger.open_bytes("team-b"), 16u) << "incomplete ones count in full";
  EXPECT_EQ(ledger.open_bytes("nobody"), 0u);
  ASSERT_TRUE(ledger.abort(kTxn, "x", at_s(0)).ok());
  EXPECT_EQ(ledger.open_bytes("team-a"), 16u);
  ASSERT_TRUE(ledger.start_commit(TxnId("second"), pages_of({stored("o")}), at_s(0)).ok());
  ledger.committed(TxnId("second"), 1, at_s(0));
  EXPECT_EQ(ledger.open_bytes("team-a"), 0u);
  EXPECT_EQ(ledger.open_bytes("team-b"), 16u);
}

// Every sequence of calls: two writers with half of an object each, one caller that begins, one that aborts, a store
// that loses the object, and the clock.
enum class Call {
  kBegin,
  kBeginOther,
  kAdmitA,
  kAdmitB,
  kTakenA,
  kTakenB,
  kFailedA,
  kFailedB,
  kStored,
  kLost,
  kStartCommit,
  kCommitted,
  kCommitFailed,
  kAbort,
  kTimePasses,
  kForget,
  kEnd
};
constexpr std::array<const char*, 16> kCallNames = {
    "begin",  "begin other", "admit a",      "admit b",   "taken a",       "taken b", "failed a",    "failed b",
    "stored", "lost",        "start commit", "committed", "commit failed", "abort",   "time passes", "forget"};

enum class Fragment { kNone, kUnderWay, kStoring, kTaken };

struct Model {
  TxnPhase phase = TxnPhase::kOpen;
  bool known = false;
  bool committing = false;
  bool has_object = false;
  bool has_stored = false;
  bool lost = false;
  std::array<Fragment, 2> fragments = {};  // as the ledger has to see them
  int64_t lease_end = 0;
  int64_t closed = 0;
  int64_t now = 0;

  bool is_open() const { return known && phase == TxnPhase::kOpen; }
  bool under_way(size_t i) const { return fragments[i] == Fragment::kUnderWay || fragments[i] == Fragment::kStoring; }
  bool any_under_way() const { return under_way(0) || under_way(1); }
  void forget_object() { has_object = has_stored = lost = false, fragments = {}; }
  void close(TxnPhase how) { phase = how, committing = false, closed = now, forget_object(); }

  Code begin(bool other) {
    if (!known) known = true, phase = TxnPhase::kOpen, lease_end = now + 10, begun_for_other = other;
    if (phase == TxnPhase::kAborted) return Code::kOk;
    if (begun_for_other != other) return Code::kConflict;
    if (phase == TxnPhase::kOpen) lease_end = now + 10;
    return Code::kOk;
  }
  Code admit(size_t i) {
    if (!is_open() || committing) return Code::kConflict;
    lease_end = now + 10;
    has_object = true;
    if (lost || under_way(i)) return Code::kUnavailable;
    if (fragments[i] == Fragment::kNone) fragments[i] = Fragment::kUnderWay;
    return Code::kOk;
  }
  // Whether the end of the fragment counts.
  Code end(size_t i) {
    if (!is_open() || !under_way(i)) return Code::kConflict;
    if (!lost) return Code::kOk;
    fragments[i] = Fragment::kNone;
    if (!any_under_way()) forget_object();
    return Code::kUnavailable;
  }
  Code start_commit() {
    if (!known) return Code::kConflict;
    if (phase != TxnPhase::kOpen) return Code::kOk;
    if (committing) return Code::kUnavailable;
    lease_end = now + 10;
    if (!has_object) return Code::kNotFound;
    if (any_under_way()) return Code::kUnavailable;
    if (!has_stored) return Code::kNotFound;
    committing = true;
    return Code::kOk;
  }

  bool begun_for_other = false;
};

class Explorer {
 public:
  uint64_t explore(const UploadLedger& ledger, const Model& model, int depth) {
    if (depth == 0) return 1;
    uint64_t count = 0;
    for (int i = 0; i < static_cast<int>(Call::kEnd); ++i) {
      const Call call = static_cast<Call>(i);
      if (!is_possible(call)) continue;
      const std::array<bool, 4> kept = outstanding_;
      trail_.push_back(call);
      UploadLedger next = ledger;
      Model expected = model;
      take(call, next, expected);
      if (!::testing::Test::HasFailure()) count += explore(next, expected, depth - 1);
      trail_.pop_back();
      outstanding_ = kept;
      if (::testing::Test::HasFailure()) return count;
    }
    return count;
  }

 private:
  static constexpr size_t kCommitting = 2;
  static constexpr size_t kStoring = 3;

  // What a store does only after the ledger told it to.
  bool is_possible(Call call) const {
    switch (call) {
      case Call::kTakenA:
      case Call::kFailedA: return outstanding_[0];
      case Call::kTakenB:
      case Call::kFailedB: return outstanding_[1];
      case Call::kStored: return outstanding_[kStoring];
      case Call::kCommitted:
      case Call::kCommitFailed: return outstanding_[kCommitting];
      case Call::kForget: return outstanding_ == std::array<bool, 4>();  // no call lasts that long
      default: return true;
    }
  }

  std::string text() const {
    std::string text;
    for (const Call call : trail_) text += fmt::format("{}; ", kCallNames[static_cast<size_t>(call)]);
    return text;
  }

  static PutStep step_of(size_t i) {
    static const std::array<PutStep, 2> kSteps = {fragment("o", "a", 8, 16), fragment("o", "b", 8, 16, 8)};
    return kSteps[i];
  }

  void take(Call call, UploadLedger& ledger, Model& model) {
    const TimePoint now = at_s(model.now);
    Code expected = Code::kOk;
    Code actual = Code::kOk;
    switch (call) {
      case Call::kBegin:
      case Call::kBeginOther: {
        UploadTarget target = kPages;
        if (call == Call::kBeginOther) target.tenant = "team-b";
        expected = model.begin(call == Call::kBeginOther);
        const Result<TxnState> state = ledger.begin(kTxn, target, now);
        actual = code_of(state);
        EXPECT_TRUE(!state.ok() || state.value().phase == model.phase) << text();
        break;
      }
      case Call::kAdmitA:
      case Call::kAdmitB: {
        const size_t i = call == Call::kAdmitB;
        const bool is_taken = model.fragments[i] == Fragment::kTaken;
        expected = model.admit(i);
        const auto receipt = ledger.admit(kTxn, step_of(i), now);
        actual = code_of(receipt);
        EXPECT_TRUE(!receipt.ok() || receipt.value().has_value() == is_taken) << text();
        if (receipt.ok() && !is_taken) outstanding_[i] = true;
        break;
      }
      case Call::kTakenA:
      case Call::kTakenB: {
        const size_t i = call == Call::kTakenB;
        outstanding_[i] = false;
        expected = model.end(i);
        const Result<bool> complete = ledger.fragment_taken(kTxn, step_of(i));
        actual = code_of(complete);
        if (expected != Code::kOk || !complete.ok()) break;
        model.fragments[i] = Fragment::kTaken;
        const bool is_last = model.fragments[1 - i] == Fragment::kTaken;
        EXPECT_EQ(complete.value(), is_last) << text();
        if (is_last) model.fragments[i] = Fragment::kStoring, outstanding_[kStoring] = true, storing_ = i;
        break;
      }
      case Call::kFailedA:
      case Call::kFailedB: {
        const size_t i = call == Call::kFailedB;
        outstanding_[i] = false;
        if (model.end(i) == Code::kOk) model.fragments[i] = Fragment::kNone;
        ledger.fragment_failed(kTxn, step_of(i));
        break;
      }
      case Call::kStored: {
        outstanding_[kStoring] = false;
        expected = model.end(storing_);
        actual = code_of(ledger.object_stored(kTxn, step_of(storing_), stored("o")));
        if (expected == Code::kOk) model.fragments[storing_] = Fragment::kTaken, model.has_stored = true;
        break;
      }
      case Call::kLost:
        ledger.object_lost(kTxn, RegionId("o"));
        if (model.is_open() && model.has_object) {
          model.lost = true;
          if (!model.any_under_way()) model.forget_object();
        }
        break;
      case Call::kStartCommit: {
        expected = model.start_commit();
        const Result<TxnState> state = ledger.start_commit(kTxn, pages_of({stored("o")}), now);
        actual = code_of(state);
        EXPECT_TRUE(!state.ok() || state.value().phase == model.phase) << text();
        outstanding_[kCommitting] = model.committing;
        break;
      }
      case Call::kCommitted:
        outstanding_[kCommitting] = false;
        EXPECT_EQ(ledger.committed(kTxn, 1, now).phase, TxnPhase::kCommitted) << text();
        model.close(TxnPhase::kCommitted);
        break;
      case Call::kCommitFailed:
        outstanding_[kCommitting] = false;
        ledger.commit_failed(kTxn);
        model.committing = false;
        break;
      case Call::kAbort: {
        expected = model.is_open() && model.committing ? Code::kUnavailable : Code::kOk;
        if (!model.known) model.known = true, model.close(TxnPhase::kAborted);
        if (model.is_open() && !model.committing) model.close(TxnPhase::kAborted);
        const Result<TxnState> state = ledger.abort(kTxn, "x", now);
        actual = code_of(state);
        EXPECT_TRUE(!state.ok() || state.value().phase == model.phase) << text();
        break;
      }
      case Call::kTimePasses: {  // to the end of a lease, whose silent transactions a store aborts
        model.now += 10;
        const bool is_over = model.is_open() && !model.committing && model.lease_end <= model.now;
        const bool is_silent = is_over && !model.any_under_way();
        if (is_over && !is_silent) model.lease_end = model.now + 10;
        const std::vector<TxnId> silent = ledger.silent(at_s(model.now));
        EXPECT_EQ(silent.size(), is_silent ? 1u : 0u) << text();
        for (const TxnId& txn : silent) EXPECT_TRUE(ledger.abort(txn, "silent", at_s(model.now)).ok());
        if (is_silent) model.close(TxnPhase::kAborted);
        break;
      }
      case Call::kForget: {
        model.now += 3600;
        const bool is_old = model.known && !model.is_open();
        EXPECT_EQ(ledger.forget(at_s(model.now)).size(), is_old ? 1u : 0u) << text();
        if (is_old) model = Model{.now = model.now};
        break;
      }
      case Call::kEnd: break;
    }
    EXPECT_EQ(actual, expected) << text();
    EXPECT_EQ(ledger.open_count(), model.is_open() ? 1u : 0u) << text();
    EXPECT_EQ(ledger.is_open(kTxn), model.is_open()) << text();
    const uint64_t bytes = model.is_open() && model.has_object ? 16 : 0;
    EXPECT_EQ(ledger.open_bytes(model.begun_for_other ? "team-b" : "team-a"), bytes) << text();
    EXPECT_EQ(ledger.open_bytes(model.begun_for_other ? "team-a" : "team-b"), 0u) << text();
  }

  std::array<bool, 4> outstanding_ = {};  // of the writers, of a commit, of an object that is complete
  size_t storing_ = 0;
  std::vector<Call> trail_;
};

TEST(UploadLedger, AnswersEveryShortSequenceOfCallsByItsRules) {
  EXPECT_GT(Explorer().explore(UploadLedger(), Model(), 6), 300'000u);
  // From the middle of an upload on: both writers are under way.
  UploadLedger ledger;
  ASSERT_TRUE(ledger.begin(kTxn, kPages, at_s(0)).ok());
  Model model;
  ASSERT_EQ(model.begin(false), Code::kOk);
  EXPECT_GT(Explorer().explore(ledger, model, 7), 1'000'000u);
}

}  // namespace
}  // namespace crossdock::testing
