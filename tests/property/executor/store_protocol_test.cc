// Uploads and restores through a real store, without threads: the plain order, every single deviation from it at every
// point, many pairs, and random orders. After each run I1 to I6 hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/wire/documents.h"
#include "tests/support/store_stage.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kTokens = 6;
constexpr uint64_t kPageTokens = 4;

const Valid<CacheSchema>& schema() {
  static const Valid<CacheSchema> made = small_schema();
  return made;
}
const Valid<StoreLayout>& layout() {
  static const Valid<StoreLayout> made = small_layout(schema(), kPageTokens);
  return made;
}

constexpr DeviationKinds kKinds = {3, false};

// Whether one of these may end an operation; other failures are tried again.
bool may_end(const std::vector<ScheduledDeviation>& deviations) {
  for (const ScheduledDeviation& each : deviations)
    if (each.what == Deviation::kTimePasses || each.what == Deviation::kNever) return true;
  return deviations.size() > 1;
}

// I4: once leases are over and were collected.
void expect_nothing_leaks(StoreStage& stage, size_t segments) {
  stage.pass(Duration::from_s(100'000));
  ASSERT_TRUE(stage.core().gc().ok());
  const StoreStats stats = stage.core().stats().value();
  EXPECT_EQ(stats.open_transactions, 0u) << "I4";
  EXPECT_EQ(stats.leases, 0u) << "I4";
  EXPECT_EQ(stats.removed, 0u) << "I4";
  EXPECT_EQ(stage.tables.all_chunks().segments().value().size(), segments) << "I4";
}

// I4: pages that are held are quarantined by name, and nothing is quarantined without a doubt.
void check_pages(const std::vector<Remains>& quarantined, bool released, const std::vector<OpId>& lost,
                 const RuntimeState& runtime) {
  const auto found = std::find_if(quarantined.begin(), quarantined.end(), [&](const Remains& each) {
    return each.hold.participant == runtime.binding->participant;
  });
  EXPECT_TRUE(runtime.held.empty() || found != quarantined.end()) << "I4";
  EXPECT_EQ(released, quarantined.empty());
  if (found != quarantined.end() && runtime.held.empty()) {
    EXPECT_TRUE(!lost.empty() || found->may_be_active);
  }
}

struct RestoreRan {
  RestoreOutcome outcome;
  size_t step_count = 0;
};

RestoreRan run_restore(StoreStage& stage, SmallRestore& restore, RestoreOptions options,
                       const std::vector<ScheduledDeviation>& deviations = {}, uint64_t chaos = 0, uint64_t seed = 1,
                       const std::function<void(Restore&, size_t)>& before_step = nullptr) {
  options.seed = seed;
  Restore protocol(std::move(options));
  StepWorld world(seed);
  restore.join(world, protocol);
  if (before_step) world.before_step = [&](size_t step) { before_step(protocol, step); };
  stage.run(world, deviations, chaos);
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  const RestoreOutcome& outcome = protocol.outcome();
  size_t active_count = 0;
  for (size_t i = 0; i < restore.target.bindings.size(); ++i) {
    const RuntimeState& runtime = world.runtime(Role::kTarget, (*restore.target.bindings[i])->participant);
    EXPECT_LE(runtime.activations, 1);
    active_count += runtime.activations > 0;
    if (runtime.activations > 0) {
      EXPECT_EQ(wrong_items(restore.target, i), "") << "I1, I5";
      EXPECT_EQ(runtime.releases, 0) << "what is active is not given back";
    } else if (runtime.reserves > 0) {
      check_pages(outcome.quarantined, outcome.released, outcome.lost, runtime);
    }
  }
  const bool all_active = active_count == restore.target.bindings.size();
  EXPECT_TRUE(outcome.activated == all_active || (all_active && !outcome.may_be_active.empty()))
      << outcome.cause.message();
  EXPECT_TRUE(outcome.activated || !outcome.cause.ok()) << "a failure says why";
  return {outcome, world.step_count()};
}

// A lookup finds all of the snapshot, which is then restored right, or nothing (I2).
bool is_stored_right(StoreStage& stage, const Valid<SnapshotDescriptor>& snapshot, uint64_t seed = 0) {
  const Result<Found> found = stage.core().lookup(Lookup{digest(snapshot), LeaseRequest{"test"}});
  if (!found.ok()) {
    EXPECT_EQ(found.status().code(), Code::kNotFound);
    return false;
  }
  EXPECT_TRUE(stage.core().release(found.value().lease).ok());
  SmallRestore restore(schema(), snapshot, seed % 2 == 0 ? PartitionSizes{.pp = 2} : PartitionSizes{.tp = 4},
                       seed % 3 == 0 ? 2 : 8);
  const RestoreRan ran = run_restore(stage, restore, restore.options());
  EXPECT_TRUE(ran.outcome.activated) << "I2: " << ran.outcome.cause.message();
  return ran.outcome.activated;
}

struct UploadRan {
  UploadOutcome outcome;
  size_t step_count = 0;
};

UploadRan run_upload(const std::vector<ScheduledDeviation>& deviations, uint64_t chaos = 0, uint64_t seed = 1,
                     const std::function<void(StoreStage&, Upload&, size_t)>& before_step = nullptr,
                     const PartitionSizes& from = {.tp = 2}) {
  StoreStage stage;
  SmallUpload upload(schema(), kTokens, layout(), from);
  UploadOptions options = upload.options();
  options.seed = seed;
  Upload protocol(std::move(options));
  StepWorld world(seed);
  upload.join(world, protocol);
  if (before_step) world.before_step = [&](size_t step) { before_step(stage, protocol, step); };
  stage.run(world, deviations, chaos);
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  const UploadOutcome& outcome = protocol.outcome();
  for (const BindingPointer& binding : upload.source.bindings) {
    const RuntimeState& runtime = world.runtime(Role::kSource, (*binding)->participant);
    EXPECT_EQ(runtime.pins - runtime.releases, static_cast<int>(runtime.held.size()));
    check_pages(outcome.quarantined, outcome.released, outcome.lost, runtime);
  }
  EXPECT_TRUE(outcome.committed || !outcome.cause.ok()) << "a failure says why";
  EXPECT_FALSE(outcome.committed && (outcome.unknown || !outcome.cause.ok() || outcome.manifest == nullptr));
  // An operation that never came back may still have ended its transaction: nothing was aborted then.
  const bool is_decided = !outcome.unknown && outcome.lost.empty();
  const bool is_stored = is_stored_right(stage, *upload.snapshot, seed);
  EXPECT_TRUE(!outcome.committed || is_stored);
  EXPECT_TRUE(outcome.committed || outcome.unknown || !is_stored) << "I2: a failed upload is visible";
  EXPECT_TRUE(!is_decided || outcome.committed == is_stored);
  expect_nothing_leaks(stage, is_stored ? 1 : 0);
  EXPECT_EQ(is_stored_right(stage, *upload.snapshot, seed), is_stored) << "and so it stays";
  return {outcome, world.step_count()};
}

TEST(Upload, InThePlainOrderIsPublishedAndRestoredIntoAnyPlacement) {
  for (const PartitionSizes& from : {PartitionSizes{.tp = 2}, PartitionSizes{.pp = 2}, PartitionSizes{.tp = 4}}) {
    const UploadRan ran = run_upload({}, 0, 1, nullptr, from);
    ASSERT_TRUE(ran.outcome.committed) << ran.outcome.cause.message();
    EXPECT_TRUE(ran.outcome.released);
    // 2 layers x 2 components x 4 heads x 2 bytes x 6 tokens.
    EXPECT_EQ(ran.outcome.bytes, 192u);
    EXPECT_EQ(ran.outcome.object_count, 6u) << "3 parts of 2 pages";
  }
  for (const ObjectOrder order : {ObjectOrder::kPlhd, ObjectOrder::kLphd, ObjectOrder::kHpld})
    for (const uint64_t page_tokens : {uint64_t{1}, uint64_t{3}, uint64_t{16}}) {
      StoreStage stage;
      SmallUpload upload(schema(), kTokens, small_layout(schema(), page_tokens, order));
      Upload protocol(upload.options());
      StepWorld world;
      upload.join(world, protocol);
      stage.run(world, {});
      ASSERT_TRUE(protocol.outcome().committed);
      for (const PartitionSizes& to :
           {PartitionSizes{.pp = 2}, PartitionSizes{.tp = 4}, PartitionSizes{.pp = 2, .tp = 2}, PartitionSizes{}})
        for (const uint64_t target_pages : {uint64_t{1}, uint64_t{5}, uint64_t{16}}) {
          SmallRestore restore(schema(), *upload.snapshot, to, target_pages);
          const RestoreRan ran = run_restore(stage, restore, restore.options());
          EXPECT_TRUE(ran.outcome.activated) << ran.outcome.cause.message();
          EXPECT_EQ(ran.outcome.read.bytes, 192u);
        }
      expect_nothing_leaks(stage, 1);
    }
}

TEST(Upload, EachSingleDeviationAtEachPointKeepsTheInvariants) {
  const UploadRan plain = run_upload({});
  ASSERT_TRUE(plain.outcome.committed);
  size_t committed_count = 0;
  size_t run_count = 0;
  for (size_t step = 0; step <= plain.step_count; ++step)
    for (const ScheduledDeviation& deviation : deviations_at(step, kKinds)) {
      SCOPED_TRACE(deviation.to_text());
      const UploadRan ran = run_upload({deviation});
      ++run_count;
      committed_count += ran.outcome.committed;
      EXPECT_TRUE(ran.outcome.committed || may_end({deviation})) << ran.outcome.cause.message();
      if (HasFailure()) return;
    }
  EXPECT_GT(run_count, 100u);
  EXPECT_LT(committed_count, run_count);
}

TEST(Upload, PairsOfDeviationsKeepTheInvariants) {
  const size_t step_count = run_upload({}).step_count;
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<ScheduledDeviation> pair = draw_two_deviations(rng, step_count + 4, kKinds);
    SCOPED_TRACE(pair[0].to_text() + ", " + pair[1].to_text());
    run_upload(pair);
    if (HasFailure()) return;
  }
}

TEST(Upload, RandomOrdersFailuresRestartsAndCollectionsKeepTheInvariants) {
  size_t committed_count = 0;
  constexpr uint64_t kRuns = 1500;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    const auto disturb = [&](StoreStage& stage, Upload&, size_t) {
      if (seed % 3 == 1 && rng.chance(1, 20)) stage.restart();
      EXPECT_TRUE(seed % 3 != 2 || !rng.chance(1, 5) || stage.core().gc().ok());
    };
    committed_count += run_upload({}, 10 * (1 + seed % 10), seed, disturb).outcome.committed;
    if (HasFailure()) return;
  }
  EXPECT_GT(committed_count, kRuns / 10);
  EXPECT_LT(committed_count, kRuns);
}

TEST(Upload, AStoreThatRestartsAtAnyPointIsGivenItsObjectsAgain) {
  const size_t step_count = run_upload({}).step_count;
  uint64_t most_operations = 0;
  for (size_t at = 0; at < step_count; ++at) {
    SCOPED_TRACE(fmt::format("restart before step {}", at));
    const UploadRan ran = run_upload({}, 0, 1, [&](StoreStage& stage, Upload&, size_t step) {
      if (step == at) stage.restart();
    });
    EXPECT_TRUE(ran.outcome.committed) << ran.outcome.cause.message();
    most_operations = std::max(most_operations, ran.outcome.operations);
    if (HasFailure()) return;
  }
  EXPECT_EQ(most_operations, 16u) << "8 fragments, all of them twice";
}

TEST(Upload, AnAbortAtAnyPointEndsAbortedOrCommittedAndIsTrue) {
  const size_t step_count = run_upload({}).step_count;
  size_t aborted_count = 0;
  for (size_t at = 0; at < step_count; ++at) {
    SCOPED_TRACE(fmt::format("abort before step {}", at));
    const UploadRan ran = run_upload({}, 0, 1, [&](StoreStage&, Upload& upload, size_t step) {
      if (step == at) upload.request_abort("the request was cancelled");
    });
    if (ran.outcome.committed) continue;
    ++aborted_count;
    EXPECT_EQ(ran.outcome.cause, Status(Code::kCancelled, "the request was cancelled"));
    EXPECT_TRUE(ran.outcome.released && !ran.outcome.unknown);
  }
  EXPECT_GT(aborted_count, 5u);
  EXPECT_LT(aborted_count, step_count) << "while it is being committed it is too late";
}

TEST(Upload, OfASnapshotThatIsStoredAlreadyIsAConflict) {
  StoreStage stage;
  SmallUpload upload(schema(), kTokens, layout());
  for (const bool is_first : {true, false}) {
    UploadOptions options = upload.options();
    options.txn = TxnId(is_first ? "first" : "second");
    Upload protocol(std::move(options));
    StepWorld world;
    upload.join(world, protocol);
    stage.run(world, {});
    EXPECT_EQ(protocol.outcome().committed, is_first);
    EXPECT_EQ(protocol.outcome().cause.code(), is_first ? Code::kOk : Code::kConflict);
    EXPECT_TRUE(protocol.outcome().released);
  }
  expect_nothing_leaks(stage, 1);
}

// Restores all read the same publication.
class StoredSnapshot : public ::testing::Test {
 protected:
  void SetUp() override {
    Upload protocol(upload_.options());
    StepWorld world;
    upload_.join(world, protocol);
    stage_.run(world, {});
    ASSERT_TRUE(protocol.outcome().committed) << protocol.outcome().cause.message();
  }

  RestoreRan run(const std::vector<ScheduledDeviation>& deviations, uint64_t chaos = 0, uint64_t seed = 1,
                 const PartitionSizes& to = {.pp = 2},
                 const std::function<void(Restore&, size_t)>& before_step = nullptr) {
    SmallRestore restore(schema(), *upload_.snapshot, to);
    const RestoreRan ran = run_restore(stage_, restore, restore.options(), deviations, chaos, seed, before_step);
    expect_nothing_leaks(stage_, 1);
    return ran;
  }

  StoreStage stage_;
  SmallUpload upload_{schema(), kTokens, layout()};
};

TEST_F(StoredSnapshot, EachSingleDeviationOfARestoreAtEachPointKeepsTheInvariants) {
  const RestoreRan plain = run({});
  ASSERT_TRUE(plain.outcome.activated) << plain.outcome.cause.message();
  size_t activated_count = 0;
  size_t run_count = 0;
  for (size_t step = 0; step <= plain.step_count; ++step)
    for (const ScheduledDeviation& deviation : deviations_at(step, kKinds)) {
      SCOPED_TRACE(deviation.to_text());
      const RestoreRan ran = run({deviation});
      ++run_count;
      activated_count += ran.outcome.activated;
      EXPECT_TRUE(ran.outcome.activated || may_end({deviation})) << ran.outcome.cause.message();
      if (HasFailure()) return;
    }
  EXPECT_GT(run_count, 100u);
  EXPECT_LT(activated_count, run_count);
}

TEST_F(StoredSnapshot, PairsOfDeviationsOfARestoreKeepTheInvariants) {
  const size_t step_count = run({}).step_count;
  Rng rng(12);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<ScheduledDeviation> pair = draw_two_deviations(rng, step_count + 4, kKinds);
    SCOPED_TRACE(pair[0].to_text() + ", " + pair[1].to_text());
    run(pair);
    if (HasFailure()) return;
  }
}

TEST_F(StoredSnapshot, RandomOrdersAndFailuresOfARestoreKeepTheInvariants) {
  size_t activated_count = 0;
  constexpr uint64_t kRuns = 1500;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const PartitionSizes to = seed % 2 == 0 ? PartitionSizes{.tp = 4} : PartitionSizes{.pp = 2};
    activated_count += run({}, 10 * (1 + seed % 10), seed, to).outcome.activated;
    if (HasFailure()) return;
  }
  EXPECT_GT(activated_count, kRuns / 10);
  EXPECT_LT(activated_count, kRuns);
}

TEST_F(StoredSnapshot, AnAbortOfARestoreAtAnyPointGivesEverythingBack) {
  const size_t step_count = run({}).step_count;
  size_t aborted_count = 0;
  for (size_t at = 0; at < step_count; ++at) {
    SCOPED_TRACE(fmt::format("abort before step {}", at));
    const RestoreRan ran = run({}, 0, 1, {.pp = 2}, [&](Restore& restore, size_t step) {
      if (step == at) restore.request_abort("the request was cancelled");
    });
    if (ran.outcome.activated) continue;
    ++aborted_count;
    EXPECT_EQ(ran.outcome.cause, Status(Code::kCancelled, "the request was cancelled"));
    EXPECT_TRUE(ran.outcome.released);
  }
  EXPECT_GT(aborted_count, 5u);
}

// Case U60: a restore that failed was tried again without end, and wrong bytes of the right length were not noticed.
TEST_F(StoredSnapshot, ADamagedByteEndsTheRestoreByNameAndNothingIsActivated) {
  const Found found = stage_.core().lookup(Lookup{digest(*upload_.snapshot), LeaseRequest{"test"}}).value();
  for (const FoundObject& object : found.objects) {
    stage_.tables.damage(ChunkDamage{object.number, 0, ChunkDamage::What::kFlip, 3});
    const RestoreRan ran = run({});
    EXPECT_FALSE(ran.outcome.activated);
    EXPECT_EQ(ran.outcome.cause.code(), Code::kDataLoss);
    EXPECT_NE(ran.outcome.cause.message().find(object.object.id.text()), std::string::npos);
    EXPECT_TRUE(ran.outcome.released);
  }
  stage_.tables.damage(std::nullopt);
  EXPECT_TRUE(run({}).outcome.activated);
}

TEST_F(StoredSnapshot, ARestoreOfWhatIsNotStoredReservesNothing) {
  SmallRestore restore(schema(), snapshot_of(schema(), Range(0, kTokens + 1)));
  const RestoreRan ran = run_restore(stage_, restore, restore.options());
  EXPECT_EQ(ran.outcome.cause.code(), Code::kNotFound);
  EXPECT_TRUE(ran.outcome.released);
}

TEST(Restore, ReportsHowMuchMoreWasReadThanDelivered) {
  StoreStage stage(16);
  StoreLayout whole = *layout();
  whole.parts = {
      StorePart{ObjectKey("all"), IntervalSet{Range(0, 2)}, whole.parts[0].components, IntervalSet{Range(0, 4)}}};
  SmallUpload upload(schema(), 8, valid_or_die(std::move(whole)));
  Upload protocol(upload.options());
  StepWorld world;
  upload.join(world, protocol);
  stage.run(world, {});
  ASSERT_TRUE(protocol.outcome().committed);
  SmallRestore restore(schema(), *upload.snapshot, {.tp = 4});
  RestoreOptions options = restore.options();
  options.participants = {ParticipantId("p0-t0")};  // one head of four: 2 of each 8 bytes
  Restore one(options);
  StepWorld second;
  restore.join(second, one);
  stage.run(second, {});
  ASSERT_TRUE(one.outcome().activated) << one.outcome().cause.message();
  EXPECT_EQ(wrong_items(restore.target, 0), "");
  EXPECT_EQ(one.outcome().read.bytes, 64u);
  EXPECT_EQ(one.outcome().read.bytes_read, 256u);
  EXPECT_DOUBLE_EQ(one.outcome().read_amplification(), 4.0);
  EXPECT_EQ(one.outcome().read.chunks_read, 16u) << "each chunk once";
}

}  // namespace
}  // namespace crossdock::testing
