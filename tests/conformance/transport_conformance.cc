#include "tests/conformance/transport_conformance.h"

#include <algorithm>
#include <utility>

namespace crossdock::testing {
namespace {

TEST_P(TransportConformance, CopiesWhatANaiveCopyCopies) {
  constexpr uint64_t kRunCount = 60;
  for (uint64_t seed = 1; seed <= kRunCount; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    open({});
    Participant& writer = join("writer");
    Rng rng(seed);
    std::vector<RegionKey> sources, targets;
    std::vector<Region*> source_regions, target_regions;
    for (const char* name : {"a", "b"}) {
      source_regions.push_back(&region(std::string("source-") + name, 1 + rng.below(3000)));
      target_regions.push_back(&region(std::string("target-") + name, 64 + rng.below(3000)));
      sources.push_back(source_regions.back()->key);
      targets.push_back(target_regions.back()->key);
      std::ranges::copy(random_bytes(rng, source_regions.back()->bytes().size()),
                        source_regions.back()->bytes().begin());
    }
    std::vector<CopyStep> steps;
    std::vector<Bytes> expected;
    for (uint32_t target = 0; target < 2; ++target) {
      const auto source = static_cast<uint32_t>(rng.below(2));
      Bytes& bytes = expected.emplace_back(target_regions[target]->copy());
      for (CopyStep step : random_steps(rng, source_regions[source]->bytes().size(), bytes.size(), 1 + rng.below(6))) {
        step.source_region = source;
        step.target_region = target;
        steps.push_back(step);
        for_each_byte(step, [&](uint64_t from, uint64_t to) { bytes[to] = source_regions[source]->bytes()[from]; });
      }
    }
    // As two operations, so that steps before and after a span are left out.
    const auto work = std::make_shared<const CopyWork>(CopyWork{sources, targets, steps});
    const size_t cut = rng.below(steps.size() + 1);
    writer.post(copy_of(StepSpan(work, 0, cut)));
    writer.post(copy_of(StepSpan(work, cut, steps.size())));
    for (const Completion& each : writer.take_all()) EXPECT_EQ(each.status, Status());
    for (size_t target = 0; target < 2; ++target) EXPECT_EQ(target_regions[target]->copy(), expected[target]);
    expect_guards();
    if (HasFailure()) return;
  }
}

TEST_P(TransportConformance, ChecksumsAreThoseOfTheBytesInTheOrderOfTheSteps) {
  Participant& owner = join("owner");
  Region& source = region("source", 2000);
  Region& target = region("target", 2500);
  Rng rng(5);
  std::ranges::copy(random_bytes(rng, 2000), source.bytes().begin());
  std::ranges::copy(random_bytes(rng, 2500), target.bytes().begin());
  for (int i = 0; i < 20; ++i) {
    const std::vector<CopyStep> steps = random_steps(rng, 2000, 2500, 1 + rng.below(5));
    Bytes source_bytes, target_bytes;
    for (const CopyStep& step : steps)
      for_each_byte(step, [&](uint64_t from, uint64_t to) {
        source_bytes.push_back(source.bytes()[from]);
        target_bytes.push_back(target.bytes()[to]);
      });
    const StepSpan span = copy_steps(source, target, steps);
    EXPECT_EQ(result_of<StepsChecksum>(owner.run(ChecksumPost{span, StepEnd::kSource})).crc32c,
              naive_crc32c(source_bytes));
    EXPECT_EQ(result_of<StepsChecksum>(owner.run(ChecksumPost{span, StepEnd::kTarget})).crc32c,
              naive_crc32c(target_bytes));
  }
}

TEST_P(TransportConformance, NoStepsAreCopiedAtOnce) {
  Participant& writer = join("writer");
  Region& source = region("source", 8);
  Region& target = region("target", 8);
  const auto work = std::make_shared<const CopyWork>(CopyWork{{source.key}, {target.key}, {plain_step(0, 0, 8)}});
  for (const StepSpan& none : {StepSpan(), StepSpan(work, 1, 1)}) {
    EXPECT_EQ(writer.run(copy_of(none)).status, Status());
    EXPECT_EQ(result_of<StepsChecksum>(writer.run(ChecksumPost{none, StepEnd::kTarget})), StepsChecksum{});
  }
  EXPECT_EQ(target.copy(), Bytes(8, Region::kFill));
}

TEST_P(TransportConformance, R1_EveryAcceptedPostCompletesOnceAndNoRefusedOneDoes) {
  constexpr size_t kPostsMax = 5000;
  Participant& writer = join("writer");
  Region& source = region("source", 8);
  Region& target = region("target", 8 * kPostsMax);
  std::ranges::fill(source.bytes(), std::byte{1});
  static_cast<void>(grant({target.key}));  // while there are workers for it
  Blocked blocked = block_workers(writer, 2);
  for (int round = 0; round < 2; ++round) {
    std::ranges::fill(target.bytes(), Region::kFill);
    size_t accepted = 0;
    size_t refused = 0;
    while (accepted < kPostsMax && refused < 3) {
      const StepSpan steps = copy_steps(source, target, {plain_step(0, 8 * accepted, 8)});
      const Status status = writer.try_post(writer.new_op(), copy_of(steps));
      if (!status.ok()) {
        ASSERT_EQ(status.code(), Code::kResourceExhausted);
      }
      ++(status.ok() ? accepted : refused);
    }
    EXPECT_GT(accepted, 0u);
    if (!blocked.holds.empty()) {
      // Those that keep the workers busy may not have begun yet.
      EXPECT_LE(accepted, BackendOptions().waiting_max);
      EXPECT_GE(accepted + blocked.revokes.size(), BackendOptions().waiting_max);
    }
    blocked.holds.clear();
    const std::vector<Completion> all = writer.take_all();  // watches R1
    EXPECT_EQ(all.size(), accepted + (round == 0 ? blocked.revokes.size() : 0));
    for (const Completion& each : all) EXPECT_EQ(each.status, Status());
    Bytes expected(8 * accepted, std::byte{1});
    expected.resize(8 * kPostsMax, Region::kFill);
    EXPECT_EQ(target.copy(), expected);
  }
}

TEST_P(HeldAccessConformance, R1_PostsReturnWhileEveryWorkerWaits) {
  Participant& writer = join("writer");
  Region& source = region("source", 64);
  Region& target = region("target", 64);
  static_cast<void>(grant({target.key}));  // while there are workers for it
  Blocked blocked = block_workers(writer, 2);
  ASSERT_FALSE(blocked.holds.empty());
  const StepSpan steps = copy_steps(source, target, {plain_step(0, 0, 64)});
  const OpId copy = writer.post(copy_of(steps));
  const OpId checksum = writer.post(ChecksumPost{steps, StepEnd::kSource});
  const OpId revoke = writer.post(revoke_of(target.key));
  writer.poll();
  for (const OpId op : blocked.revokes) EXPECT_TRUE(writer.is_under_way(op)) << "R6: a revoke did not wait";
  blocked.holds.clear();
  for (const OpId op : blocked.revokes) EXPECT_EQ(writer.take(op).status, Status());
  writer.take(copy);  // before or after the revoke
  EXPECT_EQ(writer.take(checksum).status, Status());
  EXPECT_EQ(writer.take(revoke).status, Status());
  EXPECT_TRUE(writer.take_all().empty());
}

TEST_P(TransportConformance, R2_StepsStayUntilTheCompletionThoughThePosterDropsThem) {
  Participant& writer = join("writer");
  Region& source = region("source", 64);
  Region& target = region("target", 64);
  static_cast<void>(grant({target.key}));  // while there are workers for it
  Blocked blocked = block_workers(writer, 2);
  auto work = std::make_shared<const CopyWork>(CopyWork{{source.key}, {target.key}, {plain_step(8, 16, 32)}});
  const std::weak_ptr<const CopyWork> watched = work;
  std::ranges::fill(source.bytes(), std::byte{7});
  std::shared_ptr<const Grant> granted = grant({target.key});
  const OpId copy = writer.post(CopyPost{std::exchange(granted, nullptr), StepSpan(std::exchange(work, nullptr))});
  if (!blocked.holds.empty()) {
    EXPECT_FALSE(watched.expired());
  }
  writer.ports().transport->cancel(OpId(12345));
  blocked.holds.clear();
  EXPECT_EQ(writer.take(copy).status, Status());
  Bytes expected(64, Region::kFill);
  std::fill_n(expected.begin() + 16, 32, std::byte{7});
  EXPECT_EQ(target.copy(), expected);
}

TEST_P(TransportConformance, R3_AFailedCopyChangesNothingButItsDestination) {
  Participant& writer = join("writer");
  Region& source = region("source", 100);
  Region& target = region("target", 100);
  Region& other = region("other", 100);
  Region& revoked = region("revoked", 100);
  ASSERT_EQ(writer.run(revoke_of(revoked.key)).status, Status());
  const RegionKey unknown = region_key("unknown");
  constexpr uint64_t kHuge = UINT64_MAX - 50;
  CopyStep strided = plain_step(0, 0, 10);
  strided.push_axis(CopyAxis{3, 45, 46});
  const RegionKey foreign{InstanceId("another instance"), RegionId("source"), std::nullopt, 1};
  Region foreign_region(foreign, 100);
  ASSERT_EQ(backend_->add_memory(foreign, foreign_region.bytes()), Status());
  struct Case {
    RegionKey from;
    RegionKey to;
    CopyStep step;
    Code code;
    std::vector<RegionKey> granted = {};  // empty: the target
  };
  const std::vector<Case> cases = {
      {source.key, target.key, plain_step(0, 91, 10), Code::kInvalidArgument},
      {source.key, target.key, plain_step(91, 0, 10), Code::kInvalidArgument},
      {source.key, target.key, plain_step(kHuge, 0, 100), Code::kInvalidArgument},
      {source.key, target.key, plain_step(0, kHuge, 100), Code::kInvalidArgument},
      {source.key, target.key, strided, Code::kInvalidArgument},
      {source.key, target.key, wrapping_step(uint64_t{1} << 63, 10), Code::kInvalidArgument},
      {source.key, target.key, wrapping_step(10, uint64_t{1} << 63), Code::kInvalidArgument},
      {unknown, target.key, plain_step(0, 0, 10), Code::kNotFound},
      {source.key, unknown, plain_step(0, 0, 10), Code::kNotFound},
      {source.key, region_key("target", 2), plain_step(0, 0, 10), Code::kNotFound},
      {source.key, target.key, plain_step(0, 0, 10), Code::kConflict, {revoked.key}},
      {source.key, revoked.key, plain_step(0, 0, 10), Code::kConflict, {revoked.key}},
      {source.key, other.key, plain_step(0, 0, 10), Code::kConflict},  // not covered by the grant
      {foreign, target.key, plain_step(0, 0, 10), Code::kConflict},    // a writer that it does not name
  };
  for (const Case& each : cases) {
    // The bad step comes last, so that those before it may have been done.
    CopyStep good = plain_step(20, 20, 5);
    good.source_region = good.target_region = 1;
    const RegionKey& beside = each.from == foreign ? foreign : source.key;
    const StepSpan steps = steps_between({each.from, beside}, {each.to, target.key}, {good, each.step});
    const auto granted = grant(each.granted.empty() ? std::vector<RegionKey>{target.key} : each.granted);
    const Status status = writer.run(CopyPost{granted, steps}).status;
    EXPECT_EQ(status.code(), each.code) << status.message();
    EXPECT_EQ(source.copy(), Bytes(100, Region::kFill));
    EXPECT_EQ(other.copy(), Bytes(100, Region::kFill));
    EXPECT_EQ(revoked.copy(), Bytes(100, Region::kFill));
    expect_guards();
  }
  const StepSpan good = copy_steps(source, target, {plain_step(0, 90, 10)});
  EXPECT_EQ(writer.run(copy_of(good)).status, Status());
}

TEST_P(TransportConformance, R5_ACancelledOperationCompletesAndAnUnknownOneDoesNoHarm) {
  Participant& writer = join("writer");
  Region& source = region("source", 64);
  Region& target = region("target", 64);
  const StepSpan steps = copy_steps(source, target, {plain_step(0, 0, 32), plain_step(32, 32, 32)});
  Transport& transport = *writer.ports().transport;
  transport.cancel(OpId(999));
  static_cast<void>(grant({target.key}));  // while there are workers for it
  Blocked blocked = block_workers(writer, 2);
  const OpId copy = writer.post(copy_of(steps));
  const OpId checksum = writer.post(ChecksumPost{steps, StepEnd::kSource});
  transport.cancel(copy);
  transport.cancel(copy);
  transport.cancel(checksum);
  for (const OpId op : blocked.revokes) transport.cancel(op);
  blocked.holds.clear();
  for (const Completion& each : writer.take_all())
    EXPECT_TRUE(each.status.ok() || each.status.code() == Code::kCancelled) << each.status.message();
  transport.cancel(copy);
  EXPECT_EQ(writer.run(copy_of(steps)).status, Status());
  EXPECT_TRUE(writer.take_all().empty());
}

}  // namespace
}  // namespace crossdock::testing
