// Synthetic content against its definition, written out one element and one byte at a time.
#include "backends/memory/synthetic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/kv/pool_binding.h"
#include "tests/support/example_documents.h"
#include "tests/support/random_documents.h"
#include "tests/support/synthetic_world.h"

namespace crossdock::testing {
namespace {

// ---- every byte of small ones

SyntheticBindings as_bindings(const Valid<RuntimeBinding>& binding) { return SyntheticBindings{binding}; }

void check_every_byte(const SyntheticWorld& world) {
  for (const auto& [key, mapping] : world.memory.regions())
    for (uint64_t byte = 0; byte < world.memory.find(key).size(); ++byte)
      for (const std::byte bits : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}})
        ASSERT_EQ(words_about(world, key, byte, bits), words_expected(world, key, byte, bits));
}

TEST(Synthetic, EveryWrongByteOfAPackedPoolIsFound) {
  check_every_byte(SyntheticWorld(as_bindings(example_binding()), example_cache_schema(), 1));
}

TEST(Synthetic, EveryWrongByteOfAWindowAndAStateIsFound) {
  check_every_byte(SyntheticWorld(as_bindings(example_binding_without_pages()), example_cache_schema(), 2));
}

// One layer of rows of `row_tokens` tokens, head_count heads of head_dim items, tokens [3, 14).
struct OneComponent {
  OneComponent(uint64_t item_bytes, uint64_t head_count, uint64_t head_dim, std::optional<uint64_t> row_tokens)
      : schema(valid_or_die(CacheSchema{{LayerGroup{
            IntervalSet{Range(0, 1)},
            LiveTokens::all(),
            {Component{ComponentName("c"), "packed", "plain", item_bytes, head_count, head_dim, row_tokens}}}}})),
        placement(placed(schema, {})),
        snapshot(snapshot_of(schema, Range(3, 14))) {
    binding = *example_binding();
    binding.resource = placement->resource;
    binding.revision = placement->revision;
    binding.participant = placement->topology.participants.front().id;
    binding.placement_digest = digest(placement);
    binding.snapshot_digest = digest(snapshot);
    binding.tokens = snapshot->tokens;
    binding.devices = {Device{DeviceId("d"), "host", uint64_t{1} << 20}};
    binding.regions = {Region{RegionId("m"), 1, 0, DeviceId("d"), {}, {}}};
    binding.page_tables = {};
    binding.views = {};
    view.component = ComponentName("c");
    view.layers = Range(0, 1);
    view.tokens = row_tokens ? snapshot->tokens : Range(0, 1);
    view.heads = Range(0, head_count);
    view.dims = Range(0, head_dim);
    view.region = RegionId("m");
  }

  SyntheticWorld world(uint64_t region_bytes) {
    binding.regions[0].bytes = region_bytes;
    const Valid<RuntimeBinding> valid = valid_or_die(binding);
    Diagnostics diagnostics;
    check_binding(valid, placement, snapshot, diagnostics);
    EXPECT_EQ(diagnostic_lines(diagnostics), "");
    return SyntheticWorld({valid}, schema, 3);
  }

  Valid<CacheSchema> schema;
  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  RuntimeBinding binding;
  View view;  // of everything, without strides
};

TEST(Synthetic, EveryWrongByteIsFoundWhateverTheBytesOfARow) {
  // Row by row, each a few bytes apart: pieces of all lengths, at all places within words of the stream and of memory.
  for (uint64_t cut = 0; cut < 19; ++cut) {
    OneComponent one(1, 2, 19, 1);
    for (const Range dims : {Range(0, cut), Range(cut, 19)}) {
      if (dims.empty()) continue;
      one.view.dims = dims;
      one.view.offset_bytes = dims.begin() + (dims.begin() > 0 ? 2 : 1);
      one.view.strides = {.layer = 0, .row = 45, .head = 22, .dim = 1};
      one.binding.views.push_back(one.view);
    }
    const SyntheticWorld world = one.world(11 * 45);
    check_every_byte(world);
    if (HasFatalFailure()) return;
  }
}

TEST(Synthetic, EveryWrongByteIsFoundWhateverTheSizeOfAnItem) {
  // Items apart from each other, the heads inside; one of 17 bytes is told in pieces, so it is looked at below.
  for (uint64_t item_bytes = 1; item_bytes <= 16; ++item_bytes) {
    OneComponent one(item_bytes, 2, 3, 4);
    one.view.offset_bytes = item_bytes;
    one.view.strides = {.layer = 0, .row = 7 * item_bytes, .head = item_bytes, .dim = 2 * item_bytes};
    one.binding.views = {one.view};
    check_every_byte(one.world(30 * item_bytes));  // tokens [3, 14) lie in the four rows from [0, 4) on
    if (HasFatalFailure()) return;
  }
}

TEST(Synthetic, OfALongItemTheBytesAroundTheFirstWrongOneAreTold) {
  OneComponent one(40, 1, 2, std::nullopt);
  one.view.strides = {.layer = 0, .row = 0, .head = 0, .dim = 40};
  one.binding.views = {one.view};
  const SyntheticWorld world = one.world(80);
  const RegionKey key = world.memory.regions().begin()->first;
  for (const auto& [byte, begin, end] : {std::tuple(0, 0, 16), std::tuple(31, 16, 32), std::tuple(39, 32, 40),
                                         std::tuple(40, 40, 56), std::tuple(79, 72, 80)}) {
    std::vector<std::byte> expected = world.expected(key);
    std::vector<std::byte> held = expected;
    held[static_cast<size_t>(byte)] ^= std::byte{1};
    const auto part = [begin = begin, end = end](std::span<const std::byte> bytes) {
      return hex_of(bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    };
    EXPECT_EQ(words_about(world, key, static_cast<uint64_t>(byte), std::byte{1}).first,
              fmt::format("region {} byte {}: component c layer 0 head 0 token 0 dim {}: holds {} instead of {}",
                          key.to_text(), begin, byte / 40, part(held), part(expected)));
  }
}

TEST(Synthetic, RowsOfACycleLiePackedInPages) {
  OneComponent one(2, 2, 9, 2);  // blocks of 4 tokens: [0, 4) and [8, 12) here, [4, 8) and [12, 16) there
  one.view.strides = {.layer = 0, .row = 18, .head = 36, .dim = 2};
  one.binding.page_tables = {PageTable{PageTableId("here"), 4, 0, {3, 0}},
                             PageTable{PageTableId("there"), 4, 4, {1, 2}}};
  for (const uint64_t block : {0u, 1u}) {
    one.view.cycle = CyclicTokens{4, 2, IntervalSet{Range(block, block + 1)}};
    one.view.tokens = Range(block == 0 ? 3 : 4, 14);
    one.view.pages = ViewPages{PageTableId(block == 0 ? "here" : "there"), 74};
    one.binding.views.push_back(one.view);
  }
  check_every_byte(one.world(4 * 74 + 3));
}

// ---- content

// The stream of each head and row of one binding, which is packed, and whose heads have the same bytes throughout.
std::vector<std::vector<std::byte>> streams_of(const SyntheticWorld& world, uint64_t head_bytes) {
  std::vector<std::vector<std::byte>> streams;
  for (const auto& [key, mapping] : world.memory.regions()) {
    const std::span<const std::byte> region = world.memory.find(key);
    for (uint64_t at = 0; at + head_bytes <= region.size(); at += head_bytes)
      streams.emplace_back(region.begin() + static_cast<ptrdiff_t>(at),
                           region.begin() + static_cast<ptrdiff_t>(at + head_bytes));
  }
  return streams;
}

// Four layers of three components, each of four heads of 64 bytes, in 16 rows.
SyntheticWorld sample_world(uint64_t seed) {
  LayerGroup group{IntervalSet{Range(0, 4)}, LiveTokens::all(), {}};
  for (const char* name : {"key", "kez", "value"})
    group.components.push_back(Component{ComponentName(name), "float8_e4m3fn", "plain", 1, 4, 64, 1});
  const Valid<CacheSchema> schema = valid_or_die(CacheSchema{{group}});
  const Valid<PlacementManifest> placement = placed(schema, {});
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, 16));
  PoolRequest request;
  request.operation = OperationId("op");
  Diagnostics diagnostics;
  const auto binding = pool_binding(placement, digest(placement), placement->topology.participants.front().id,
                                    snapshot->tokens, digest(snapshot), request, diagnostics);
  EXPECT_EQ(diagnostic_lines(diagnostics), "");
  SyntheticWorld world({*binding}, schema, seed);
  EXPECT_EQ(world.write(), world.memory.total_bytes());
  return world;
}

TEST(Synthetic, NoEightBytesOfASampleAreAlike) {
  // Of neighbouring rows, heads, layers and components, of two seeds, from any byte on.
  std::set<std::vector<std::byte>> seen;
  uint64_t count = 0;
  for (const uint64_t seed : {0u, 1u})
    for (const std::vector<std::byte>& stream : streams_of(sample_world(seed), 64))
      for (auto at = stream.begin(); at + 8 <= stream.end(); ++at, ++count) seen.emplace(at, at + 8);
  EXPECT_EQ(count, 2u * 3 * 4 * 4 * 16 * 57);
  EXPECT_EQ(seen.size(), count);
}

TEST(Synthetic, BytesOfASampleAreEvenlySpread) {
  std::vector<uint64_t> counts(256);
  uint64_t total = 0;
  for (const std::vector<std::byte>& stream : streams_of(sample_world(7), 64))
    for (const std::byte byte : stream) ++counts[static_cast<uint8_t>(byte)], ++total;
  double chi_squared = 0;
  const double mean = static_cast<double>(total) / 256;
  for (const uint64_t count : counts)
    chi_squared += (static_cast<double>(count) - mean) * (static_cast<double>(count) - mean) / mean;
  EXPECT_GT(chi_squared, 170);  // 255 degrees of freedom: outside in fewer than one of 10,000 even spreads
  EXPECT_LT(chi_squared, 350);
}

TEST(Synthetic, ContentStaysWhatItIs) {  // another program's answer to the formula
  OneComponent one(1, 1, 16, std::nullopt);
  one.view.strides.dim = 1;
  one.binding.views = {one.view};
  const SyntheticWorld world = one.world(16);
  world.write();
  EXPECT_EQ(hex_of(world.memory.find(world.memory.regions().begin()->first)), "89e49db874c071af37827d83f010d995");
}

TEST(Synthetic, RowsThatLieAtOtherPlacesAreFound) {  // as a copy with a wrong stride or a wrong page makes them
  SyntheticWorld world = sample_world(5);
  const std::span<std::byte> region = world.memory.find(world.memory.regions().begin()->first);
  const std::vector<std::byte> whole(region.begin(), region.end());
  for (const ptrdiff_t shift : {1, 2, 7, 8, 16, 64, 256, 4096}) {
    std::rotate_copy(whole.begin(), whole.begin() + shift, whole.end(), region.begin());
    EXPECT_NE(world.take(), "all right") << shift;
    world.write();
  }
  EXPECT_EQ(world.take(), "all right");
}

TEST(Synthetic, AnotherSeedIsAllWrong) {
  SyntheticWorld world = sample_world(5);
  for (world.seed = 6; world.seed < 16; ++world.seed) EXPECT_NE(world.take(), "all right");
}

// ---- several bindings

TEST(Synthetic, BindingsOfOneRegionMayBeWrittenAndTakenAtOnce) {
  const Valid<CacheSchema> schema = sample_world(0).schema;
  const Valid<PlacementManifest> placement = placed(schema, {.tp = 2});
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, 16));
  SyntheticBindings bindings;
  for (const Participant& participant : placement->topology.participants) {
    PoolRequest request;
    request.operation = OperationId("op");
    Diagnostics diagnostics;
    RuntimeBinding binding = **pool_binding(placement, digest(placement), participant.id, snapshot->tokens,
                                            digest(snapshot), request, diagnostics);
    binding.instance = InstanceId("both");
    for (Region& region : binding.regions) region.bytes *= 2;
    for (View& view : binding.views) {  // the heads of one after the heads of the other, in each row
      view.offset_bytes = 128 * view.heads.begin() / 2;
      view.strides.row *= 2;
      view.strides.layer *= 2;
      view.pages->page_stride_bytes *= 2;
    }
    bindings.push_back(valid_or_die(binding));
  }
  const SyntheticWorld world(bindings, schema, 4);
  const auto at_once = [&](auto&& work) {
    std::vector<std::jthread> threads;
    for (const Valid<RuntimeBinding>& binding : world.bindings) threads.emplace_back([&] { work(binding); });
  };
  at_once([&](const Valid<RuntimeBinding>& binding) { write_synthetic(binding, *schema, world.seed, world.memory); });
  EXPECT_EQ(wrong_region(world), "");
  at_once([&](const Valid<RuntimeBinding>& binding) {
    EXPECT_EQ(take_synthetic(binding, *schema, world.seed, world.memory), std::nullopt);
  });
  EXPECT_EQ(world.check(), "all right");
}

TEST(Synthetic, RegionsOfOneNameAreToldApartByTheirAddress) {
  SyntheticBindings bindings;
  for (const uint64_t address : {0x1000u, 0x2000u}) {
    RuntimeBinding binding = *example_binding();
    binding.participant = ParticipantId(fmt::format("p{}", address));
    binding.regions[0].address = address;
    binding.regions[0].epoch = address;
    if (address == 0x2000)
      for (View& view : binding.views) view.offset_bytes += 3 * 4;
    bindings.push_back(valid_or_die(binding));
  }
  const SyntheticWorld world(bindings, example_cache_schema(), 8);
  EXPECT_EQ(world.memory.regions().size(), 2u);
  check_every_byte(world);
}

TEST(Synthetic, GuardsAreFoundToTheLastByteOfLongRegions) {
  RuntimeBinding binding = *example_binding();
  binding.views = {};
  for (const uint64_t bytes : {1u, 4095u, 4096u, 4097u, 12289u}) {
    binding.regions[0].bytes = bytes;
    const SyntheticWorld world({valid_or_die(binding)}, example_cache_schema(), 0);
    const auto& key = world.memory.regions().begin()->first;
    EXPECT_EQ(world.check(), "all right");
    for (const uint64_t byte : {bytes - 1, bytes / 2, uint64_t{0}}) {
      world.memory.find(key)[byte] = std::byte{0xa4};
      EXPECT_EQ(world.check(), fmt::format("region {} byte {}: holds a4, belongs to no item", key.to_text(), byte));
    }
  }
}

}  // namespace
}  // namespace crossdock::testing
