// The shadow of a transfer against real bytes: each byte carries a tag that says what it is and of which content, steps
// are copied byte by byte, and the shadow has to know of each byte what the tags say.
#include "sim/shadow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "executor/transfer_job.h"
#include "model/pool_binding.h"
#include "model/wire/documents.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

using SchemaPointer = std::shared_ptr<const Valid<CacheSchema>>;
using Bindings = std::vector<BindingPointer>;

// ---- the naive side

struct CellName {
  std::string component;
  uint64_t layer = 0;
  uint64_t head = 0;
  uint64_t row = 0;
  uint64_t byte = 0;  // of the head
  friend bool operator==(const CellName&, const CellName&) = default;
};

struct ByteTag {
  std::optional<CellName> name;  // empty: no view of this participant holds the byte
  uint64_t token = 0;            // the first of its row that the view holds
  bool is_state = false;
  ContentId content = 0;
  uint64_t count = 0;
};

// The regions of one binding, byte by byte.
struct NaiveMemory {
  std::map<RegionId, std::vector<ByteTag>> regions;
  InstanceId instance;

  NaiveMemory(const RuntimeBinding& binding, const CacheSchema& schema, ContentId initial)
      : instance(binding.instance) {
    for (const Region& region : binding.regions) regions[region.id].resize(region.bytes);
    for (const View& view : binding.views) add(binding, schema, view, initial);
  }

  std::vector<ByteTag>* find(const RegionKey& key) {
    const auto found = regions.find(key.id);
    return key.owner == instance && found != regions.end() ? &found->second : nullptr;
  }

  template <class Visit>
  void for_each_held(Visit visit) const {
    for (const auto& [id, bytes] : regions)
      for (uint64_t i = 0; i < bytes.size(); ++i)
        if (bytes[i].name) visit(id, i, bytes[i]);
  }

  void overwrite_all(ContentId content) {
    for (auto& [id, bytes] : regions)
      for (ByteTag& tag : bytes) tag.content = content;
  }

 private:
  void add(const RuntimeBinding& binding, const CacheSchema& schema, const View& view, ContentId initial) {
    for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
      const Component& component = *schema.find_group(layer)->find(view.component);
      for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token)
        for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head)
          for (uint64_t dim = view.dims.begin(); dim < view.dims.end(); ++dim) {
            const auto address = naive_address(view, binding.page_tables, component, layer, token, head, dim);
            for (uint64_t i = 0; address && i < component.item_bytes; ++i) {
              ByteTag& tag = regions.at(view.region).at(*address + i);
              if (tag.name) continue;  // another token of the same row
              const uint64_t row = token / component.tokens_per_row.value_or(1);
              tag = ByteTag{CellName{view.component.text(), layer, head, row, dim * component.item_bytes + i}, token,
                            component.is_state(), initial, 0};
            }
          }
    }
  }
};

struct NaiveBytes {
  ByteTag* source;  // null: outside the region
  ByteTag* target;
};

// The bytes of a step in its order.
std::vector<NaiveBytes> bytes_of(const CopyWork& work, const CopyStep& step, NaiveMemory& source, NaiveMemory& target) {
  std::vector<NaiveBytes> all;
  std::vector<ByteTag>* from = source.find(work.source_regions.at(step.source_region));
  std::vector<ByteTag>* to = target.find(work.target_regions.at(step.target_region));
  ByteRanges ranges(step);
  for (ByteCopy range; ranges.next(range);)
    for (uint64_t i = 0; i < range.bytes; ++i)
      all.push_back(
          {from != nullptr && range.source_offset + i < from->size() ? &(*from)[range.source_offset + i] : nullptr,
           to != nullptr && range.target_offset + i < to->size() ? &(*to)[range.target_offset + i] : nullptr});
  return all;
}

bool is_right(const std::vector<NaiveBytes>& bytes) {
  return std::ranges::all_of(bytes, [](const NaiveBytes& each) {
    return each.source != nullptr && each.target != nullptr && each.source->name &&
           each.source->name == each.target->name;
  });
}

// As the shadow names a cell, with or without the byte.
std::string text_of(const ByteTag& tag, uint64_t byte) {
  std::string text = fmt::format("component {} layer {} head {}", tag.name->component, tag.name->layer, tag.name->head);
  if (!tag.is_state) text += fmt::format(" token {}", tag.token);
  if (byte != 0) text += fmt::format(" byte {}", byte);
  return text;
}

// What is wrong with a byte, as the shadow says it; empty when nothing is.
std::string fault_of(const ByteTag& tag, ContentId content, bool exactly_once) {
  if (tag.content == content && (!exactly_once || tag.count == 1)) return "";
  const std::string place = text_of(tag, tag.name->byte);
  if (tag.count == 0) return place + ": was never written";
  if (tag.content == 0) return place + ": holds nothing that anybody knows";
  if (tag.content != content) return fmt::format("{}: holds content {}, not {}", place, tag.content, content);
  return fmt::format("{}: was written {} times", place, tag.count);
}

// ---- what is compared

// Each byte that a view holds, as a step of its own.
std::shared_ptr<const CopyWork> single_bytes(const RuntimeBinding& binding, const NaiveMemory& memory) {
  auto work = std::make_shared<CopyWork>();
  work->target_regions = region_keys(binding);
  for (uint32_t i = 0; i < binding.regions.size(); ++i) {
    const std::vector<ByteTag>& bytes = memory.regions.at(binding.regions[i].id);
    for (uint64_t k = 0; k < bytes.size(); ++k) {
      if (!bytes[k].name) continue;
      CopyStep step;
      step.target_region = i;
      step.target_offset = k;
      step.bytes = 1;
      work->steps.push_back(step);
    }
  }
  return work;
}

// The first disagreement between a shadow and what the tags say; empty when there is none.
std::string difference(const Shadow& shadow, const SchemaPointer& schema, const NaiveMemory& memory,
                       const std::set<ContentId>& contents) {
  std::map<ContentId, uint64_t> bytes = {{0, 0}};
  uint64_t total = 0;
  memory.for_each_held([&](const RegionId&, uint64_t, const ByteTag& tag) {
    ++bytes[tag.content];
    ++total;
  });
  if (shadow.total_bytes() != total) return fmt::format("{} bytes in all, not {}", shadow.total_bytes(), total);
  for (const auto& [content, count] : bytes)
    if (shadow.bytes_holding(content) != count)
      return fmt::format("{} bytes hold {}, not {}", shadow.bytes_holding(content), content, count);

  const auto work = single_bytes(shadow.binding(), memory);
  if (work->steps.empty()) return "";
  const auto binding = std::make_shared<const Valid<RuntimeBinding>>(valid_or_die(RuntimeBinding(shadow.binding())));
  std::map<uint32_t, ContentId> content_of;
  for (const ContentId content : contents)
    content_of[Shadow(binding, schema, content).checksum(StepSpan(work, 0, 1), StepEnd::kTarget)] = content;
  for (size_t i = 0; i < work->steps.size(); ++i) {
    const CopyStep& step = work->steps[i];
    const RegionId& region = work->target_regions[step.target_region].id;
    const ByteTag& tag = memory.regions.at(region)[step.target_offset];
    const auto found = content_of.find(shadow.checksum(StepSpan(work, i, i + 1), StepEnd::kTarget));
    const ContentId held = found == content_of.end() ? 0 : found->second;
    if (held != tag.content)
      return fmt::format("{} ({} byte {}) holds {}, not {}", text_of(tag, tag.name->byte), region.text(),
                         step.target_offset, held, tag.content);
  }

  for (const ContentId content : contents)
    for (const bool exactly_once : {false, true}) {
      std::set<std::string> faults;
      memory.for_each_held(
          [&](const RegionId&, uint64_t, const ByteTag& tag) { faults.insert(fault_of(tag, content, exactly_once)); });
      faults.erase("");
      const std::string named = shadow.check(content, exactly_once);
      if (faults.empty() ? !named.empty() : !faults.contains(named))
        return fmt::format("check({}, {}) says '{}'; {} bytes are wrong", content, exactly_once, named, faults.size());
    }
  return "";
}

// The bytes of some steps at one end, by content.
std::vector<ContentId> contents_of(const StepSpan& span, StepEnd end, NaiveMemory& source, NaiveMemory& target) {
  std::vector<ContentId> contents;
  for (const CopyStep& step : span.steps())
    for (const NaiveBytes& bytes : bytes_of(span.work(), step, source, target))
      contents.push_back((end == StepEnd::kSource ? bytes.source : bytes.target)->content);
  return contents;
}

// ---- random transfers

struct Pair {
  std::shared_ptr<const CopyWork> work;
  size_t source;
  size_t target;
};

// Both sides in shadow and in tags.
struct World {
  SchemaPointer schema;
  Bindings source_bindings;
  Bindings target_bindings;
  std::vector<Shadow> sources;
  std::vector<Shadow> targets;
  std::vector<NaiveMemory> naive_sources;
  std::vector<NaiveMemory> naive_targets;
  std::vector<Pair> pairs;
  std::set<ContentId> contents;

  World(const TransferJob& job, SchemaPointer of_schema, const std::vector<ContentId>& source_contents,
        const StepSplit& split)
      : schema(std::move(of_schema)), source_bindings(job.source_bindings), target_bindings(job.target_bindings) {
    for (size_t i = 0; i < source_bindings.size(); ++i) {
      const ContentId content = source_contents[i % source_contents.size()];
      contents.insert(content);
      sources.emplace_back(source_bindings[i], schema, content);
      naive_sources.emplace_back(**source_bindings[i], **schema, content);
    }
    for (const BindingPointer& binding : target_bindings) {
      targets.emplace_back(binding, schema, 0);
      naive_targets.emplace_back(**binding, **schema, 0);
    }
    for (const LoweredPair& pair : job.lowered->pairs()) {
      Faults faults;
      const auto work = pair_work(*job.lowered, pair, split, BatchLimits(), faults);
      CHECK(work.has_value());
      pairs.push_back(Pair{work->work, number_of(source_bindings, (*job.plan)->sources[pair.source]),
                           number_of(target_bindings, (*job.plan)->targets[pair.target])});
    }
  }

  static size_t number_of(const Bindings& bindings, const PlanEnd& end) {
    for (size_t i = 0; i < bindings.size(); ++i)
      if ((*bindings[i])->participant.text() == end.text()) return i;
    CHECK(false);
  }

  std::vector<NaiveBytes> bytes(const Pair& pair, size_t step) {
    return bytes_of(*pair.work, pair.work->steps[step], naive_sources[pair.source], naive_targets[pair.target]);
  }

  // Empty, or what the shadow says of the step; a step that is wrong changes nothing.
  std::string land(const Pair& pair, size_t step) {
    const std::vector<NaiveBytes> all = bytes(pair, step);
    if (is_right(all))
      for (const NaiveBytes& each : all) {
        each.target->content = each.source->content;
        ++each.target->count;
      }
    return ShadowCopier::land(*pair.work, step, step + 1, sources[pair.source], targets[pair.target]);
  }
  std::string tear(const Pair& pair, size_t step) {
    for (const NaiveBytes& each : bytes(pair, step)) {
      each.target->content = 0;
      ++each.target->count;
    }
    return ShadowCopier::tear(*pair.work, step, sources[pair.source], targets[pair.target]);
  }
  void overwrite(size_t source, ContentId content) {
    contents.insert(content);
    contents.erase(0);
    naive_sources[source].overwrite_all(content);
    sources[source].overwrite_all(content);
  }

  void overwrite_target(size_t target, ContentId content) {
    contents.insert(content);
    contents.erase(0);
    naive_targets[target].overwrite_all(content);
    targets[target].overwrite_all(content);
  }

  std::string difference() const {
    for (size_t i = 0; i < targets.size(); ++i)
      if (std::string text = testing::difference(targets[i], schema, naive_targets[i], contents); !text.empty())
        return "target " + (*target_bindings[i])->participant.text() + ": " + text;
    return "";
  }
};

Bindings share(const std::vector<Valid<RuntimeBinding>>& all) {
  Bindings bindings;
  for (const Valid<RuntimeBinding>& binding : all)
    bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(binding));
  return bindings;
}

// Null when the targets need nothing.
std::unique_ptr<World> random_world(const Draw& draw, Choices& choices) {
  Choices schema_choices(draw, Section::kSchema);
  Choices token_choices(draw, Section::kTokens);
  Choices source_choices(draw, Section::kSource);
  Choices target_choices(draw, Section::kTarget);
  Choices source_binding_choices(draw, Section::kSourceBinding);
  Choices target_binding_choices(draw, Section::kTargetBinding);
  const auto schema = std::make_shared<const Valid<CacheSchema>>(random_schema(schema_choices));
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(*schema, random_tokens(token_choices));
  TransferDocuments documents;
  documents.snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(snapshot);
  documents.source = std::make_shared<const Valid<PlacementManifest>>(
      random_placement(*schema, snapshot->tokens, "source", source_choices));
  documents.target = std::make_shared<const Valid<PlacementManifest>>(
      random_placement(*schema, snapshot->tokens, "target", target_choices));
  const Bindings sources =
      share(random_bindings(*documents.source, snapshot, BindingStyle::kAny, source_binding_choices));
  const Bindings targets =
      share(random_bindings(*documents.target, snapshot, BindingStyle::kAny, target_binding_choices));
  if (sources.empty() || targets.empty()) return nullptr;
  RC_LOG() << fmt::format("source.json: {}\ntarget.json: {}\nsnapshot.json: {}\n", to_json(*documents.source),
                          to_json(*documents.target), to_json(snapshot));
  for (const BindingPointer& binding : sources) RC_LOG() << "source-binding.json: " << to_json(*binding) << "\n";
  for (const BindingPointer& binding : targets) RC_LOG() << "target-binding.json: " << to_json(*binding) << "\n";
  Faults faults;
  const auto job = make_job(documents, sources, targets, PlanOptions(), LowerLimits(), faults);
  if (job == nullptr) RC_LOG() << fault_lines(faults);
  RC_ASSERT(job != nullptr || faults.has(Rule::kPlanEmpty));
  if (job == nullptr) return nullptr;
  StepSplit split;
  if (choices.chance(1, 3)) split.bytes_max = choices.between(1, 40);
  std::vector<ContentId> contents = {7};
  if (choices.chance(1, 2)) contents = {7, 8, 9};
  return std::make_unique<World>(*job, schema, contents, split);
}

struct StepOfPair {
  size_t pair;
  size_t step;
};

std::vector<StepOfPair> all_steps(const World& world) {
  std::vector<StepOfPair> steps;
  for (size_t pair = 0; pair < world.pairs.size(); ++pair)
    for (size_t step = 0; step < world.pairs[pair].work->steps.size(); ++step) steps.push_back({pair, step});
  return steps;
}

void check_checksums(World& world, Rng& rng) {
  for (const Pair& pair : world.pairs) {
    const size_t begin = rng.below(pair.work->steps.size());
    const StepSpan span(pair.work, begin, begin + 1 + rng.below(std::min<size_t>(pair.work->steps.size() - begin, 6)));
    NaiveMemory& source = world.naive_sources[pair.source];
    NaiveMemory& target = world.naive_targets[pair.target];
    const std::vector<ContentId> sent = contents_of(span, StepEnd::kSource, source, target);
    const std::vector<ContentId> arrived = contents_of(span, StepEnd::kTarget, source, target);
    const bool equal = sent == arrived && std::ranges::count(sent, ContentId{0}) == 0;
    RC_ASSERT((world.sources[pair.source].checksum(span, StepEnd::kSource) ==
               world.targets[pair.target].checksum(span, StepEnd::kTarget)) == equal);
  }
}

RC_GTEST_PROP(Shadow, KnowsOfEachByteWhatItsTagSays, (const Draw& draw, uint64_t seed)) {
  Choices choices(draw, Section::kOptions);
  const std::unique_ptr<World> world = random_world(draw, choices);
  RC_PRE(world != nullptr);
  Rng rng(seed);
  std::vector<StepOfPair> steps = all_steps(*world);
  rng.shuffle(steps);
  const bool with_faults = choices.chance(1, 2);
  const size_t look_at = rng.below(steps.size() + 1);
  bool clean = world->contents.size() == 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Pair& pair = world->pairs[steps[i].pair];
    if (i == look_at) {
      RC_ASSERT(world->difference() == "");
      check_checksums(*world, rng);
    }
    if (with_faults && rng.chance(1, 8)) {
      clean = false;
      RC_ASSERT(world->tear(pair, steps[i].step) == "");
      if (rng.chance(1, 2)) continue;
    }
    if (with_faults && rng.chance(1, 8)) {
      clean = false;
      RC_ASSERT(world->land(pair, steps[i].step) == "");
    }
    if (with_faults && rng.chance(1, 16)) {
      clean = false;
      world->overwrite(pair.source, rng.below(12));
    }
    if (with_faults && rng.chance(1, 32)) {
      clean = false;
      world->overwrite_target(pair.target, rng.below(12));
    }
    RC_ASSERT(world->land(pair, steps[i].step) == "");
  }
  RC_ASSERT(world->difference() == "");
  check_checksums(*world, rng);
  if (clean)
    for (const Shadow& target : world->targets) RC_ASSERT(target.check(7, true) == "");
  RC_CLASSIFY(clean, "clean");
  RC_CLASSIFY(with_faults, "with faults");
}

// Something about a step that a wrong lowering could have wrong.
CopyStep spoilt(CopyStep step, const CopyWork& work, Rng& rng) {
  const auto shifted = [&](uint64_t value) {
    uint64_t by = 1 + rng.below(4);
    if (rng.chance(1, 3)) by = step.bytes;
    if (step.axis_count > 0 && rng.chance(1, 2)) {
      const CopyAxis& axis = step.axis_list[rng.below(step.axis_count)];
      by = rng.chance(1, 2) ? axis.source_stride_bytes : axis.target_stride_bytes;
    }
    return rng.chance(1, 2) || value < by ? value + by : value - by;
  };
  switch (rng.below(step.axis_count > 0 ? 7 : 4)) {
    case 0: step.source_offset = shifted(step.source_offset); break;
    case 1: step.target_offset = shifted(step.target_offset); break;
    case 2: step.bytes += 1 + rng.below(step.bytes); break;
    case 3: {
      const CopyStep& other = work.steps[rng.below(work.steps.size())];
      if (rng.chance(1, 2))
        step.source_offset = other.source_offset;
      else
        step.target_region = other.target_region, step.target_offset = other.target_offset;
      break;
    }
    case 4: {
      uint64_t& stride = step.axis_list[rng.below(step.axis_count)].source_stride_bytes;
      stride = shifted(stride);
      break;
    }
    case 5: {
      uint64_t& stride = step.axis_list[rng.below(step.axis_count)].target_stride_bytes;
      stride = shifted(stride);
      break;
    }
    default: ++step.axis_list[rng.below(step.axis_count)].extent;
  }
  return step;
}

RC_GTEST_PROP(Shadow, NamesAStepExactlyWhenAByteOfItIsWrong, (const Draw& draw, uint64_t seed)) {
  Choices choices(draw, Section::kOptions);
  const std::unique_ptr<World> world = random_world(draw, choices);
  RC_PRE(world != nullptr);
  Rng rng(seed);
  size_t wrong_count = 0;
  for (int times = 0; times < 40; ++times) {
    Pair pair = world->pairs[rng.below(world->pairs.size())];
    auto work = std::make_shared<CopyWork>(*pair.work);
    const size_t step = rng.below(work->steps.size());
    work->steps[step] = spoilt(work->steps[step], *work, rng);
    pair.work = work;
    const bool right = is_right(world->bytes(pair, step));
    const std::string named = world->land(pair, step);
    RC_LOG() << fmt::format("step {} is {}: {}\n", step, right ? "right" : "wrong", named);
    RC_ASSERT(named.empty() == right);
    RC_ASSERT(right || named.starts_with(fmt::format("step {}: ", step)));
    wrong_count += !right;
  }
  RC_ASSERT(world->difference() == "");
  RC_CLASSIFY(wrong_count > 30, "most are wrong");
}

// ---- transfers between pools

struct Pools {
  PartitionSizes sizes;
  uint64_t page_tokens;
  PoolOrder order = PoolOrder::kNhd;
  bool region_per_layer = false;
};

Valid<CacheSchema> keys_and_values(uint64_t layers, uint64_t heads, uint64_t head_dim) {
  LayerGroup group;
  group.layers = IntervalSet{Range(0, layers)};
  for (const char* name : {"key", "value"})
    group.components.push_back(Component{ComponentName(name), "bfloat16", "plain", 2, heads, head_dim, 1});
  return valid_or_die(CacheSchema{{group}});
}

Bindings pools_of(const Valid<PlacementManifest>& placement, const Valid<SnapshotDescriptor>& snapshot,
                  const Pools& pools, uint64_t seed) {
  Bindings bindings;
  for (const Part& part : placement->parts) {
    PoolRequest request;
    request.operation = OperationId("op");
    request.axis_order = pools.order;
    request.page_tokens = pools.page_tokens;
    request.region_per_layer = pools.region_per_layer;
    request.shuffle_seed = seed;
    request.spare_pages = 2;
    request.instance_prefix = placement->name + "/";
    Faults faults;
    auto binding = pool_binding(placement, digest(placement), part.participant, snapshot->tokens, digest(snapshot),
                                request, faults);
    CHECK(binding.has_value());
    bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*binding)));
  }
  return bindings;
}

std::shared_ptr<TransferJob> job_between(const Valid<CacheSchema>& schema, uint64_t tokens, const Pools& source,
                                         const Pools& target) {
  TransferDocuments documents;
  documents.snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(schema, Range(0, tokens)));
  documents.source = std::make_shared<const Valid<PlacementManifest>>(placed(schema, source.sizes, "source"));
  documents.target = std::make_shared<const Valid<PlacementManifest>>(placed(schema, target.sizes, "target"));
  Faults faults;
  auto job =
      make_job(documents, pools_of(*documents.source, *documents.snapshot, source, 1),
               pools_of(*documents.target, *documents.snapshot, target, 2), PlanOptions(), LowerLimits(), faults);
  CHECK(job != nullptr);
  return job;
}

// Keys and values of two layers with 4 heads of 2 items of 2 bytes, 5 tokens: from two ranks, which share the heads,
// into one; pages of 2 tokens. So the first step of the first pair is a page of keys: in each of 2 layers 2 tokens, 8
// bytes of a source's row of 8 into a target's row of 16.
struct SmallWorld {
  SchemaPointer schema = std::make_shared<const Valid<CacheSchema>>(keys_and_values(2, 4, 2));
  std::shared_ptr<TransferJob> job = job_between(*schema, 5, {{.tp = 2}, 2}, {{}, 2});
  World world{*job, schema, {7}, StepSplit()};

  Shadow& target() { return world.targets.front(); }
  const Shadow& source(size_t pair) { return world.sources[world.pairs[pair].source]; }
  const CopyWork& work(size_t pair) { return *world.pairs[pair].work; }
  StepSpan span(size_t pair) { return StepSpan(world.pairs[pair].work); }
  std::string land(size_t pair) {
    return ShadowCopier::land(work(pair), 0, work(pair).steps.size(), source(pair), target());
  }

  // What the shadow says of the first step after a change.
  template <class Spoil>
  std::string say(Spoil spoil) {
    auto spoilt_work = std::make_shared<CopyWork>(work(0));
    spoil(spoilt_work->steps.at(0), *spoilt_work);
    return world.land(Pair{spoilt_work, world.pairs[0].source, world.pairs[0].target}, 0);
  }
};

std::string moved(uint64_t bytes, const std::string& from, const std::string& to) {
  return fmt::format("step 0: writes {} bytes from component key {} of 'p0-t0' to component key {} of 'p0-t0'", bytes,
                     from, to);
}

TEST(Shadow, NamesTheFirstCellThatAShiftedStepGetsWrong) {
  SmallWorld small;
  const std::string first = "layer 0 head 0 token 0";
  EXPECT_EQ(small.say([](CopyStep&, CopyWork&) {}), "");
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.target_offset += 2; }),
            moved(8, first, "layer 0 head 0 token 0 byte 2"));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.source_offset += 1; }),
            moved(8, "layer 0 head 0 token 0 byte 1", first));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.target_offset += 4; }),
            moved(8, first, "layer 0 head 1 token 0"));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.target_offset += 16; }),
            moved(8, first, "layer 0 head 0 token 1"));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.source_offset += 8; }),
            moved(8, "layer 0 head 0 token 1", first));
}

TEST(Shadow, NamesTheFirstCellThatAWrongStrideGetsWrong) {
  SmallWorld small;
  const auto rows = [](CopyStep& step) -> CopyAxis& { return step.axis_list[1]; };
  ASSERT_EQ(small.work(0).steps[0].axis_count, 2u);
  ASSERT_EQ(small.work(0).steps[0].axis_list[1], (CopyAxis{2, 8, 16}));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.axis_list[0].target_stride_bytes += 16; }),
            moved(8, "layer 1 head 0 token 0", "layer 1 head 0 token 1"));
  EXPECT_EQ(small.say([&](CopyStep& step, CopyWork&) { rows(step).target_stride_bytes = 8; }),
            moved(8, "layer 0 head 0 token 1", "layer 0 head 2 token 0"));
  EXPECT_EQ(small.say([&](CopyStep& step, CopyWork&) { std::swap(step.axis_list[0], step.axis_list[1]); }), "")
      << "the order of axes is free";
}

TEST(Shadow, NamesSwappedPages) {
  SmallWorld small;
  EXPECT_EQ(
      small.say([](CopyStep& step, CopyWork& work) { std::swap(step.source_offset, work.steps[1].source_offset); }),
      moved(8, "layer 0 head 0 token 2", "layer 0 head 0 token 0"));
}

TEST(Shadow, NamesBytesThatBelongToNoView) {
  SmallWorld small;
  const RuntimeBinding& binding = small.target().binding();
  const std::set<uint64_t> used(binding.page_tables.at(0).slots.begin(), binding.page_tables.at(0).slots.end());
  uint64_t spare = 0;
  while (used.contains(spare)) ++spare;
  const std::string region = binding.regions[0].id.text();
  EXPECT_EQ(
      small.say([&](CopyStep& step, CopyWork&) { step.target_offset = spare * 32; }),
      fmt::format("step 0: writes byte {} of region '{}' of 'p0-t0', which belongs to no view", spare * 32, region))
      << "a page of somebody else";
  EXPECT_EQ(small.say([&](CopyStep& step, CopyWork&) { step.target_offset += uint64_t{1} << 40; }).substr(0, 19),
            "step 0: writes byte");
  // The last page holds the one token 4; there is no cell behind it.
  const uint64_t last = binding.page_tables.at(0).slots.at(2) * 32;
  const CopyWork& work = small.work(0);
  for (size_t i = 0; i < work.steps.size(); ++i) {
    if (work.steps[i].target_offset != last || work.steps[i].target_region != 0) continue;
    auto longer = std::make_shared<CopyWork>(work);
    longer->steps[i].push_axis(CopyAxis{2, 8, 16});
    const std::string named = ShadowCopier::land(*longer, i, i + 1, small.source(0), small.target());
    EXPECT_TRUE(named.starts_with(fmt::format("step {}: reads byte", i)) && named.ends_with("belongs to no view"))
        << named;
  }
}

TEST(Shadow, NamesARegionOfAnotherGrantOrInstance) {
  SmallWorld small;
  EXPECT_EQ(small.say([](CopyStep&, CopyWork& work) { work.target_regions[0].epoch = 9; }),
            "step 0: writes region 'target/p0-t0/key-g0' epoch 9, which 'p0-t0' does not have");
  EXPECT_NE(small.say([](CopyStep&, CopyWork& work) { work.source_regions[0].owner = InstanceId("other"); }), "");
  CopyWork work = small.work(0);
  work.steps[0].source_region = 17;
  EXPECT_EQ(ShadowCopier::land(work, 0, 1, small.source(0), small.target()),
            "step 0: reads region 17, which has no name");
}

TEST(Shadow, NamesWhatWasNeverWrittenAndWhatWasWrittenTwice) {
  SmallWorld small;
  const std::string first = "component key layer 0 head 0 token 0";
  EXPECT_EQ(small.target().check(7, false), first + ": was never written");
  EXPECT_EQ(small.target().bytes_holding(7), 0u);
  EXPECT_EQ(small.target().total_bytes(), 2u * 2 * 4 * 5 * 4);
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(small.target().check(7, true), "component key layer 0 head 2 token 0: was never written");
  EXPECT_EQ(small.target().bytes_holding(7), small.target().total_bytes() / 2);
  EXPECT_EQ(small.land(1), "");
  EXPECT_EQ(small.target().check(7, true), "");
  EXPECT_EQ(small.target().check(8, false), first + ": holds content 7, not 8");
  EXPECT_EQ(ShadowCopier::land(small.work(0), 0, 1, small.source(0), small.target()), "");
  EXPECT_EQ(small.target().check(7, false), "");
  EXPECT_EQ(small.target().check(7, true), first + ": was written 2 times");
}

TEST(Shadow, OfATornStepHoldsNothingThatAnybodyKnowsUntilItLands) {
  SmallWorld small;
  EXPECT_EQ(small.land(0) + small.land(1), "");
  EXPECT_EQ(ShadowCopier::tear(small.work(0), 0, small.source(0), small.target()), "");
  EXPECT_EQ(small.target().check(7, false), "component key layer 0 head 0 token 0: holds nothing that anybody knows");
  EXPECT_EQ(small.target().bytes_holding(0), small.work(0).steps[0].total_bytes());
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(small.target().check(7, false), "");
}

TEST(Shadow, TakesWhatTheSourceHoldsWhenAStepLands) {
  SmallWorld small;
  EXPECT_EQ(small.land(0), "");
  small.world.sources[small.world.pairs[1].source].overwrite_all(8);
  EXPECT_EQ(small.land(1), "");
  EXPECT_EQ(small.target().check(7, true), "component key layer 0 head 2 token 0: holds content 8, not 7");
  EXPECT_EQ(small.target().bytes_holding(8), small.target().total_bytes() / 2);
}

TEST(Shadow, SumsAreEqualForEqualContentAndDifferOtherwise) {
  SmallWorld small;
  Shadow& source = small.world.sources[small.world.pairs[0].source];
  const auto sent = [&] { return source.checksum(small.span(0), StepEnd::kSource); };
  const auto arrived = [&] { return small.target().checksum(small.span(0), StepEnd::kTarget); };
  EXPECT_NE(sent(), arrived()) << "nothing has arrived";
  EXPECT_NE(arrived(), arrived()) << "and what lies there is anybody's guess";
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(sent(), arrived());
  EXPECT_EQ(arrived(), arrived());
  source.overwrite_all(8);
  EXPECT_NE(sent(), arrived());
  EXPECT_EQ(ShadowCopier::land(small.work(0), 0, 1, source, small.target()), "");
  const uint32_t mixed = arrived();
  EXPECT_NE(sent(), mixed);
  EXPECT_EQ(arrived(), mixed);
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(sent(), arrived());
  EXPECT_EQ(ShadowCopier::tear(small.work(0), 0, source, small.target()), "");
  EXPECT_NE(arrived(), sent());
  EXPECT_NE(arrived(), arrived());
  source.overwrite_all(0);
  EXPECT_NE(sent(), sent());
}

TEST(Shadow, SumsDoNotDependOnHowStepsAreCut) {
  const auto schema = std::make_shared<const Valid<CacheSchema>>(keys_and_values(2, 4, 2));
  const auto job = job_between(*schema, 5, {{.tp = 2}, 2}, {{}, 4});
  Rng rng(1);
  for (uint64_t bytes_max = 1; bytes_max <= 32; ++bytes_max) {
    World whole(*job, schema, {7}, StepSplit());
    StepSplit split;
    split.bytes_max = bytes_max;
    World parts(*job, schema, {7}, split);
    // Half of one pair's small steps bring another content.
    const Pair& pair = parts.pairs[0];
    const Pair& same = whole.pairs[0];
    Shadow other(parts.source_bindings[pair.source], schema, 8);
    for (size_t i = 0; i < pair.work->steps.size(); ++i) {
      const Shadow& from = rng.chance(1, 2) ? other : parts.sources[pair.source];
      ASSERT_EQ(ShadowCopier::land(*pair.work, i, i + 1, from, parts.targets[pair.target]), "");
    }
    const Shadow& target = parts.targets[pair.target];
    EXPECT_EQ(target.checksum(StepSpan(same.work), StepEnd::kTarget),
              target.checksum(StepSpan(pair.work), StepEnd::kTarget))
        << bytes_max;
  }
}

// A binding of one participant whose views lie as `offset(layer)` says, one for each layer, in one region.
template <class Offset>
BindingPointer with_layers_at(const BindingPointer& pool, uint64_t region_bytes, std::vector<uint64_t> slots,
                              Offset offset) {
  RuntimeBinding binding = **pool;
  View view = binding.views.at(0);
  const Range layers = view.layers;
  binding.views.clear();
  binding.regions.at(0).bytes = region_bytes;
  binding.page_tables.at(0).slots = std::move(slots);
  for (uint64_t layer = layers.begin(); layer < layers.end(); ++layer) {
    view.layers = Range(layer, layer + 1);
    view.offset_bytes = offset(layer);
    binding.views.push_back(view);
  }
  return std::make_shared<const Valid<RuntimeBinding>>(valid_or_die(std::move(binding)));
}

// Four layers of one component with one head of 2 items of 2 bytes; 4 tokens in pages of one.
struct LayersWorld {
  template <class Offset>
  LayersWorld(uint64_t region_bytes, const std::vector<uint64_t>& slots, Offset offset) {
    CacheSchema one = *keys_and_values(4, 1, 2);
    one.groups[0].components.pop_back();
    schema = std::make_shared<const Valid<CacheSchema>>(valid_or_die(one));
    TransferDocuments documents;
    documents.snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(*schema, Range(0, 4)));
    documents.source = std::make_shared<const Valid<PlacementManifest>>(placed(*schema, {}, "source"));
    documents.target = std::make_shared<const Valid<PlacementManifest>>(placed(*schema, {}, "target"));
    const Pools pools{{}, 1};
    Bindings sources = pools_of(*documents.source, *documents.snapshot, pools, 1);
    Bindings targets = pools_of(*documents.target, *documents.snapshot, pools, 2);
    targets[0] = with_layers_at(targets[0], region_bytes, slots, offset);
    Faults faults;
    job = make_job(documents, sources, targets, PlanOptions(), LowerLimits(), faults);
    EXPECT_NE(job, nullptr) << fault_lines(faults);
    world = std::make_unique<World>(*job, schema, std::vector<ContentId>{7}, StepSplit());
  }

  void land_all() {
    for (size_t i = 0; i < world->pairs[0].work->steps.size(); ++i) EXPECT_EQ(world->land(world->pairs[0], i), "");
    EXPECT_EQ(world->difference(), "");
    EXPECT_EQ(world->targets[0].check(7, true), "");
  }

  SchemaPointer schema;
  std::shared_ptr<TransferJob> job;
  std::unique_ptr<World> world;
};

TEST(Shadow, KnowsLayersThatLieInAnyOrder) {
  constexpr uint64_t kPlaces[] = {0, 2, 1, 3};
  LayersWorld layers(64, {0, 1, 2, 3}, [&](uint64_t layer) { return kPlaces[layer] * 16; });
  layers.land_all();
  // The whole pool at once, as if the layers lay in their order.
  auto work = std::make_shared<CopyWork>(*layers.world->pairs[0].work);
  CopyStep& step = work->steps[0];
  const std::vector<uint64_t>& slots = (*layers.job->source_bindings[0])->page_tables[0].slots;
  step = CopyStep{};
  step.source_offset = slots[0] * 4;
  step.bytes = 4;
  step.push_axis(CopyAxis{4, 6 * 4, 16});
  EXPECT_EQ(
      layers.world->land(Pair{work, 0, 0}, 0),
      "step 0: writes 4 bytes from component key layer 1 head 0 token 0 of 'p0-t0' to component key layer 2 head 0 "
      "token 0 of 'p0-t0'");
}

TEST(Shadow, KnowsLayersThatLieBetweenPagesOfOthers) {
  // Two pages of each layer, one layer after the other, and so once more: no layer has a stride that passes over all of
  // its pages.
  LayersWorld layers(64, {0, 1, 8, 9}, [&](uint64_t layer) { return layer * 8; });
  layers.land_all();
}

// ---- at the size of a model

// Every second layer keeps a window only.
Valid<CacheSchema> with_windows(const Valid<CacheSchema>& model, uint64_t window_tokens) {
  LayerGroup full = model->groups.front();
  LayerGroup windowed = full;
  windowed.window_tokens = window_tokens;
  std::vector<Range> even;
  std::vector<Range> odd;
  for (uint64_t layer = 0; layer < full.layers.count(); ++layer)
    (layer % 2 == 0 ? even : odd).push_back(Range(layer, layer + 1));
  full.layers = IntervalSet::from_ranges(even);
  windowed.layers = IntervalSet::from_ranges(odd);
  return valid_or_die(CacheSchema{{full, windowed}});
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Cost {
  size_t steps = 0;
  double land_us = 0;  // of a step
  double sum_us = 0;
  double bytes = 0;      // that the target's shadow grew, of a step
  double bytes_max = 0;  // and the most on the way
};

// All pairs of one target, and whether it has everything once at the end.
Cost cost_of(const Pools& source, const Pools& target, const Valid<CacheSchema>& schema, uint64_t tokens,
             bool step_by_step) {
  const auto job = job_between(schema, tokens, source, target);
  const auto shared = std::make_shared<const Valid<CacheSchema>>(schema);
  const BindingPointer& binding = job->target_bindings.front();
  Shadow to(binding, shared, 0);
  Cost cost;
  double land_s = 0;
  double sum_s = 0;
  double grown = 0;
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (const LoweredPair& pair : job->lowered->pairs()) {
    if ((*job->plan)->targets[pair.target].text() != (*binding)->participant.text()) continue;
    const std::string& name = (*job->plan)->sources[pair.source].text();
    const auto of_source = std::ranges::find_if(
        job->source_bindings, [&](const BindingPointer& each) { return (*each)->participant.text() == name; });
    Shadow from(*of_source, shared, 7);
    Faults faults;
    const auto work = pair_work(*job->lowered, pair, StepSplit(), BatchLimits(), faults)->work;
    const size_t count = work->steps.size();
    const size_t heap_before = heap_bytes();
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < count; i += step_by_step ? 1 : count)
      EXPECT_EQ(ShadowCopier::land(*work, i, step_by_step ? i + 1 : count, from, to), "");
    land_s += since(begin);
    grown += static_cast<double>(heap_bytes()) - static_cast<double>(heap_before);
    cost.steps += count;
    cost.bytes_max = std::max(cost.bytes_max, grown / static_cast<double>(cost.steps));
    const Clock::time_point sum_begin = Clock::now();
    EXPECT_EQ(from.checksum(StepSpan(work), StepEnd::kSource), to.checksum(StepSpan(work), StepEnd::kTarget));
    sum_s += since(sum_begin);
  }
  EXPECT_EQ(to.check(7, true), "");
  cost.land_us = land_s * 1e6 / static_cast<double>(cost.steps);
  cost.sum_us = sum_s * 1e6 / 2 / static_cast<double>(cost.steps);
  cost.bytes = grown / static_cast<double>(cost.steps);
  return cost;
}

TEST(Shadow, IsCheapAtTheSizeOfAModel) {
  const Valid<CacheSchema> model = keys_and_values(80, 8, 128);
  const PartitionSizes tp8 = {.tp = 8};
  const PartitionSizes tp4_pp2 = {.pp = 2, .tp = 4};
  const Valid<CacheSchema> hybrid = with_windows(model, 4096);
  const struct {
    const char* name;
    Pools source;
    Pools target;
    const Valid<CacheSchema>* schema = nullptr;  // of the model
  } cases[] = {
      {"tp8 to tp4 pp2, nhd", {tp8, 64}, {tp4_pp2, 64}},
      {"tp8 to tp4 pp2, nhd to hnd", {tp8, 64}, {tp4_pp2, 64, PoolOrder::kHnd}},
      {"tp8 to tp8", {tp8, 64}, {tp8, 64}},
      {"pages of 64 to 16", {tp8, 64}, {tp4_pp2, 16}},
      {"a region for each layer", {tp8, 64, PoolOrder::kNhd, true}, {tp4_pp2, 64, PoolOrder::kNhd, true}},
      {"tp8 to cp8", {tp8, 64}, {{.cp = 8, .cp_block_tokens = 16}, 64}},
      {"cp8 to tp4 pp2", {{.cp = 8, .cp_block_tokens = 1}, 64}, {tp4_pp2, 64}},
      {"windows in every second layer", {tp8, 64}, {tp4_pp2, 64}, &hybrid},
  };
  for (const auto& each : cases)
    for (const bool step_by_step : {false, true}) {
      const Cost cost =
          cost_of(each.source, each.target, each.schema == nullptr ? model : *each.schema, 131072, step_by_step);
      std::cout << fmt::format(
          "{}{}: {} steps, {:.2f} us to land one, {:.2f} us to sum one, {:.0f} bytes each, {:.0f} at most\n", each.name,
          step_by_step ? ", step by step" : "", cost.steps, cost.land_us, cost.sum_us, cost.bytes, cost.bytes_max);
      EXPECT_LT(cost.land_us, 200);
    }
}

}  // namespace
}  // namespace crossdock::testing
