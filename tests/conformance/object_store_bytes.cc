// Bytes: what was put is what is got, whatever its size and shape.
#include <algorithm>
#include <set>

#include "tests/conformance/object_store_conformance.h"

namespace crossdock::testing {
namespace {

TEST_P(ObjectStoreConformance, ObjectsOfAllSizesAroundAChunkComeBack) {
  Rng rng(1);
  std::map<std::string, Bytes> objects;
  const uint64_t chunk = chunk_bytes_;
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, chunk - 1, chunk, chunk + 1, 2 * chunk - 1, 2 * chunk,
                               2 * chunk + 1, 40 * chunk + 17})
    objects[std::to_string(100000 + bytes)] = random_bytes(rng, bytes);
  EXPECT_EQ(publish("txn", objects).phase, TxnPhase::kCommitted);
  std::vector<std::string> names;
  std::vector<Bytes> expected;
  for (const auto& [name, bytes] : objects) {
    names.push_back(name);
    expected.push_back(bytes);
  }
  const auto found = result_of<Found>(user().run(look_up_pages(names)));
  expect_bytes(found, expected);
  for (size_t i = 0; i < found.objects.size(); ++i) EXPECT_EQ(found.objects[i].object, stored(names[i], expected[i]));
}

// Case U48: sizes above 4 GiB wrapped in 32 bits and overwrote another object. Sizes around 2^32; nothing but a few
// bytes of payload is ever held in memory.
TEST_P(ObjectStoreConformance, ASparseObjectAround4GiBHasItsExactSize) {
  constexpr uint64_t kSize4G = uint64_t{1} << 32;
  open_store({.chunk_bytes = 1 << 20});
  Rng rng(2);
  const Bytes payload = random_bytes(rng, 48);
  Region& source = region("source", 48);
  std::ranges::copy(payload, source.bytes().begin());
  const uint32_t zero_sum = naive_crc32c(Bytes(chunk_bytes_));
  for (const uint64_t size : {kSize4G - 1, kSize4G, kSize4G + 1}) {
    const std::string name = "bytes" + std::to_string(size);
    begin(name);
    PutStep step{RegionId(name), size, 48, "writer", {}};
    // At the begin, across a chunk, and at the very end.
    const std::vector<uint64_t> places = {0, 3 * uint64_t{chunk_bytes_} - 8, size - 16};
    std::vector<CopyStep> steps;
    for (size_t i = 0; i < 3; ++i) steps.push_back(plain_step(16 * i, places[i], 16));
    step.steps = steps_between({source.key}, {}, steps);
    const auto receipt = result_of<PutReceipt>(user().run(PutPost{TxnId(name), step}));
    ASSERT_TRUE(receipt.stored.has_value());
    EXPECT_EQ(receipt.bytes, 48u);
    EXPECT_EQ(receipt.stored->bytes, size);
    // The checksum of each chunk, from its bytes written out.
    std::map<uint64_t, Bytes> chunks;
    for (size_t i = 0; i < 48; ++i) {
      const uint64_t at = places[i / 16] + i % 16;
      const uint64_t begin = at / chunk_bytes_ * chunk_bytes_;
      Bytes& chunk = chunks[at / chunk_bytes_];
      chunk.resize(std::min<uint64_t>(chunk_bytes_, size - begin));
      chunk[at - begin] = payload[i];
    }
    ASSERT_EQ(receipt.stored->chunk_crc32c.size(), (size + chunk_bytes_ - 1) / chunk_bytes_);
    for (uint64_t chunk = 0; chunk < receipt.stored->chunk_crc32c.size(); ++chunk) {
      const auto written = chunks.find(chunk);
      ASSERT_EQ(receipt.stored->chunk_crc32c[chunk], written == chunks.end() ? zero_sum : naive_crc32c(written->second))
          << "chunk " << chunk << " of " << size << " bytes";
    }
    EXPECT_EQ(result_of<TxnState>(user().run(CommitPost{TxnId(name), pages_of({*receipt.stored})})).phase,
              TxnPhase::kCommitted);
    const auto found = result_of<Found>(user().run(look_up_pages({name})));
    ASSERT_EQ(found.objects.size(), 1u);
    Region& target = region("target" + name, 64 + 48);
    steps.clear();
    for (size_t i = 0; i < 3; ++i) steps.push_back(plain_step(places[i], 16 * i, 16));
    steps.push_back(plain_step(kSize4G / 2 - 32, 48, 64));
    const GetStep get{found.lease, std::make_shared<const FoundObject>(found.objects[0]), Range::all(),
                      steps_between({}, {target.key}, steps), grant({target.key})->id};
    const auto report = result_of<GetReport>(user().run(GetPost{get}));
    EXPECT_EQ(report.bytes, 112u);
    EXPECT_LE(report.chunks_read, 7u);
    Bytes expected = payload;
    expected.resize(112);
    EXPECT_EQ(target.copy(), expected);
    expect_guards();
    GetStep outside = get;
    outside.steps = steps_between({}, {target.key}, {plain_step(size - 15, 0, 16)});
    EXPECT_EQ(user().run(GetPost{outside}).status.code(), Code::kInvalidArgument);
  }
}

TEST_P(ObjectStoreConformance, FragmentsOfSeveralWritersMakeOneObject) {
  constexpr uint64_t kRunCount = 30;
  for (uint64_t seed = 1; seed <= kRunCount; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::string txn = "txn" + std::to_string(seed);
    const std::string object = "object" + std::to_string(seed);
    begin(txn);
    const uint64_t size = 1 + rng.below(2000);
    const uint64_t source_bytes = 64 + rng.below(1000);
    const std::vector<CopyStep> steps =
        random_steps(rng, source_bytes, size, 1 + rng.below(std::min(size, uint64_t{8})));
    const size_t writer_count = 1 + rng.below(steps.size());
    Bytes expected(size);
    std::vector<PutStep> puts(writer_count);
    uint64_t payload_bytes = 0;
    for (size_t writer = 0; writer < writer_count; ++writer) {
      Region& source = region(object + "-" + std::to_string(writer), source_bytes);
      std::ranges::copy(random_bytes(rng, source_bytes), source.bytes().begin());
      std::vector<CopyStep> own;
      for (size_t i = writer; i < steps.size(); i += writer_count) {
        own.push_back(steps[i]);
        for_each_byte(steps[i], [&](uint64_t from, uint64_t to) {
          expected[to] = source.bytes()[from];
          ++payload_bytes;
        });
      }
      puts[writer] =
          PutStep{RegionId(object), size, 0, "writer" + std::to_string(writer), steps_between({source.key}, {}, own)};
    }
    rng.shuffle(puts);
    std::vector<OpId> ops;
    for (PutStep& put : puts) {
      put.payload_bytes = payload_bytes;
      ops.push_back(user().post(PutPost{TxnId(txn), put}));  // at the same time
    }
    std::vector<StoredObject> whole;
    for (size_t i = 0; i < puts.size(); ++i) {
      const auto receipt = result_of<PutReceipt>(user().take(ops[i]));
      EXPECT_EQ(receipt.writer, puts[i].writer);
      EXPECT_EQ(receipt.bytes, puts[i].steps.total_bytes());
      if (receipt.stored) whole.push_back(*receipt.stored);
    }
    ASSERT_EQ(whole.size(), 1u) << "one receipt completes the object";
    EXPECT_EQ(whole[0], stored(object, expected));
    EXPECT_EQ(result_of<TxnState>(user().run(CommitPost{TxnId(txn), pages_of(whole)})).phase, TxnPhase::kCommitted);
    const auto found = result_of<Found>(user().run(look_up_pages({object})));
    expect_bytes(found, {expected});
    release(found);
    if (HasFailure()) return;
  }
}

TEST_P(ObjectStoreConformance, AnyPartOfAnObjectIsGotAndEachTouchedChunkReadOnce) {
  constexpr uint64_t kRunCount = 80;
  Rng content(11);
  const uint64_t chunk = chunk_bytes_;
  const Bytes bytes = random_bytes(content, 37 * chunk + 5);
  publish("txn", {{"object", bytes}});
  const auto found = result_of<Found>(user().run(look_up_pages({"object"})));
  const auto object = std::make_shared<const FoundObject>(found.objects.at(0));
  for (uint64_t seed = 1; seed <= kRunCount; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const uint64_t target_bytes = 100 + rng.below(2000);
    Region& target = region("target" + std::to_string(seed), target_bytes);
    const std::vector<CopyStep> steps = random_steps(rng, bytes.size(), target_bytes, 1 + rng.below(5));
    // In one get, or in two that meet at a chunk.
    const uint64_t cut = rng.chance(1, 3) ? bytes.size() : chunk * rng.below(bytes.size() / chunk + 1);
    for (const Range within : {Range(0, cut), Range(cut, bytes.size())}) {
      Bytes expected = target.copy();
      std::set<uint64_t> touched;
      uint64_t copied = 0;
      for (const CopyStep& step : steps)
        for_each_byte(step, [&](uint64_t from, uint64_t to) {
          if (!within.contains(from)) return;
          expected[to] = bytes[from];
          touched.insert(from / chunk);
          ++copied;
        });
      uint64_t touched_bytes = 0;
      for (const uint64_t each : touched) touched_bytes += std::min(chunk, bytes.size() - each * chunk);
      const GetStep get{found.lease, object, within, steps_between({}, {target.key}, steps), grant({target.key})->id};
      const auto report = result_of<GetReport>(user().run(GetPost{get}));
      EXPECT_EQ(report, (GetReport{copied, touched_bytes, touched.size()}));
      EXPECT_EQ(target.copy(), expected);
    }
    expect_guards();
    if (HasFailure()) return;
  }
}

TEST_P(ObjectStoreConformance, R3_AFailedGetChangesNothingButItsDestination) {
  publish("txn", {{"object", Bytes(200, std::byte{1})}});
  const auto found = result_of<Found>(user().run(look_up_pages({"object"})));
  const auto object = std::make_shared<const FoundObject>(found.objects.at(0));
  Region& target = region("target", 100);
  Region& revoked = region("revoked", 100);
  Region& other = region("other", 100);
  ASSERT_EQ(status_of(revoke_of(revoked.key)), Status());
  struct Case {
    RegionKey key;
    CopyStep step;
    Code code;
    std::vector<RegionKey> granted = {};  // empty: the target
  };
  const std::vector<Case> cases = {
      {target.key, plain_step(0, 95, 6), Code::kInvalidArgument},
      {target.key, plain_step(195, 0, 6), Code::kInvalidArgument},
      {target.key, plain_step(UINT64_MAX - 2, 0, 6), Code::kInvalidArgument},
      {target.key, plain_step(0, UINT64_MAX - 2, 6), Code::kInvalidArgument},
      {target.key, wrapping_step(uint64_t{1} << 63, 6), Code::kInvalidArgument},
      {target.key, wrapping_step(6, uint64_t{1} << 63), Code::kInvalidArgument},
      {region_key("unknown"), plain_step(0, 0, 6), Code::kNotFound},
      {region_key("target", 2), plain_step(0, 0, 6), Code::kNotFound},
      {revoked.key, plain_step(0, 0, 6), Code::kConflict, {revoked.key}},
      {other.key, plain_step(0, 0, 6), Code::kConflict},  // not covered by the grant
  };
  for (const Case& each : cases) {
    const auto granted = grant(each.granted.empty() ? std::vector<RegionKey>{target.key} : each.granted);
    const GetStep get{found.lease, object, Range::all(), steps_between({}, {each.key}, {each.step}), granted->id};
    const Status status = user().run(GetPost{get}).status;
    EXPECT_EQ(status.code(), each.code) << status.message();
    EXPECT_EQ(revoked.copy(), Bytes(100, Region::kFill));
    expect_guards();
  }
  expect_bytes(found, {Bytes(200, std::byte{1})});
}

TEST_P(ObjectStoreConformance, R3_AFailedPutIsNotTakenAndCanBePutAgain) {
  begin("txn");
  const Bytes bytes(200, std::byte{9});
  const PutStep good = whole("object", bytes);
  const RegionKey source = good.steps.work().source_regions[0];
  struct Case {
    RegionKey key;
    CopyStep step;
    Code code;
  };
  const std::vector<Case> cases = {
      {source, plain_step(1, 0, 200), Code::kInvalidArgument},
      {source, plain_step(0, 1, 200), Code::kInvalidArgument},
      {source, plain_step(UINT64_MAX - 10, 0, 200), Code::kInvalidArgument},
      {source, wrapping_step(uint64_t{1} << 63, 6), Code::kInvalidArgument},
      {source, wrapping_step(6, uint64_t{1} << 63), Code::kInvalidArgument},
      {region_key("unknown"), plain_step(0, 0, 200), Code::kNotFound},
  };
  for (const Case& each : cases) {
    PutStep bad = good;
    bad.steps = steps_between({each.key}, {}, {each.step});
    const Status status = user().run(PutPost{TxnId("txn"), bad}).status;
    EXPECT_EQ(status.code(), each.code) << status.message();
  }
  EXPECT_EQ(user().run(CommitPost{TxnId("txn"), pages_of({stored("object", bytes)})}).status.code(), Code::kNotFound);
  const auto receipt = result_of<PutReceipt>(user().run(PutPost{TxnId("txn"), good}));
  EXPECT_EQ(receipt.stored, stored("object", bytes));
  EXPECT_EQ(status_of(CommitPost{TxnId("txn"), pages_of({stored("object", bytes)})}), Status());
}

TEST_P(ObjectStoreConformance, SizesThatContradictEachOtherAreRefused) {
  begin("txn");
  Region& source = region("source", 100);
  const auto put = [&](const std::string& writer, uint64_t object_bytes, uint64_t payload_bytes, uint64_t from,
                       uint64_t bytes) {
    PutStep step{RegionId("object"), object_bytes, payload_bytes, writer, {}};
    step.steps = steps_between({source.key}, {}, {plain_step(0, from, bytes)});
    return user().run(PutPost{TxnId("txn"), step}).status.code();
  };
  EXPECT_EQ(put("a", 100, 80, 0, 40), Code::kOk);
  EXPECT_EQ(put("b", 101, 80, 40, 40), Code::kInvalidArgument) << "another size";
  EXPECT_EQ(put("b", 100, 81, 40, 40), Code::kInvalidArgument) << "another payload";
  EXPECT_EQ(put("b", 100, 80, 40, 41), Code::kInvalidArgument) << "more than the payload";
  EXPECT_EQ(put("a", 100, 80, 0, 39), Code::kInvalidArgument) << "not what this writer had";
  EXPECT_EQ(put("b", 100, 80, 40, 40), Code::kOk);
  EXPECT_EQ(put("c", 100, 80, 80, 1), Code::kInvalidArgument) << "it is complete";
}

}  // namespace
}  // namespace crossdock::testing
