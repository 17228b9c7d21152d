#include "tests/sim/shadow/shadow_world.h"

#include <fmt/format.h>

#include <utility>

#include "model/wire/documents.h"

namespace crossdock::testing {
namespace {

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
                       const std::set<ContentTag>& contents) {
  std::map<ContentTag, uint64_t> bytes = {{0, 0}};
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
  std::map<uint32_t, ContentTag> content_of;
  for (const ContentTag content : contents)
    content_of[Shadow(binding, schema, content).checksum(StepSpan(work, 0, 1), StepEnd::kTarget)] = content;
  for (size_t i = 0; i < work->steps.size(); ++i) {
    const CopyStep& step = work->steps[i];
    const RegionId& region = work->target_regions[step.target_region].id;
    const ByteTag& tag = memory.regions.at(region)[step.target_offset];
    const auto found = content_of.find(shadow.checksum(StepSpan(work, i, i + 1), StepEnd::kTarget));
    const ContentTag held = found == content_of.end() ? 0 : found->second;
    if (held != tag.content)
      return fmt::format("{} ({} byte {}) holds {}, not {}", text_of(tag, tag.name->byte), region.text(),
                         step.target_offset, held, tag.content);
  }

  for (const ContentTag content : contents)
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

Bindings kv_of(const std::vector<AnyBinding>& bindings) {
  Diagnostics diagnostics;
  return kv_bindings(bindings, diagnostics).value();
}

}  // namespace

World::World(const TransferJob& job, SchemaPointer of_schema, const std::vector<ContentTag>& source_contents,
             const StepSplit& split)
    : schema(std::move(of_schema)),
      source_bindings(kv_of(job.source_bindings)),
      target_bindings(kv_of(job.target_bindings)) {
  for (size_t i = 0; i < source_bindings.size(); ++i) {
    const ContentTag content = source_contents[i % source_contents.size()];
    contents.insert(content);
    sources.emplace_back(source_bindings[i], schema, content);
    naive_sources.emplace_back(**source_bindings[i], **schema, content);
  }
  for (const BindingPointer& binding : target_bindings) {
    targets.emplace_back(binding, schema, 0);
    naive_targets.emplace_back(**binding, **schema, 0);
  }
  for (const CopyPair& pair : job.copies->pairs()) {
    Diagnostics diagnostics;
    const auto work = pair_work(*job.copies, pair, split, BatchLimits(), diagnostics);
    CHECK(work.has_value());
    pairs.push_back(Pair{work->work, number_of(source_bindings, job.copies->sources()[pair.source]),
                         number_of(target_bindings, job.copies->targets()[pair.target])});
  }
}

size_t World::number_of(const Bindings& bindings, const PlanEnd& end) {
  for (size_t i = 0; i < bindings.size(); ++i)
    if ((*bindings[i])->participant.text() == end.text()) return i;
  CHECK(false);
}

std::vector<NaiveBytes> World::bytes(const Pair& pair, size_t step) {
  return bytes_of(*pair.work, pair.work->steps[step], naive_sources[pair.source], naive_targets[pair.target]);
}

std::string World::land(const Pair& pair, size_t step) {
  const std::vector<NaiveBytes> all = bytes(pair, step);
  if (is_right(all))
    for (const NaiveBytes& each : all) {
      each.target->content = each.source->content;
      ++each.target->count;
    }
  return ShadowCopier::land(*pair.work, step, step + 1, sources[pair.source], targets[pair.target]);
}

std::string World::tear(const Pair& pair, size_t step) {
  for (const NaiveBytes& each : bytes(pair, step)) {
    each.target->content = 0;
    ++each.target->count;
  }
  return ShadowCopier::tear(*pair.work, step, sources[pair.source], targets[pair.target]);
}

void World::overwrite(size_t source, ContentTag content) {
  contents.insert(content);
  contents.erase(0);
  naive_sources[source].overwrite_all(content);
  sources[source].overwrite_all(content);
}

void World::overwrite_target(size_t target, ContentTag content) {
  contents.insert(content);
  contents.erase(0);
  naive_targets[target].overwrite_all(content);
  targets[target].overwrite_all(content);
}

std::string World::difference() const {
  for (size_t i = 0; i < targets.size(); ++i)
    if (std::string text = testing::difference(targets[i], schema, naive_targets[i], contents); !text.empty())
      return "target " + (*target_bindings[i])->participant.text() + ": " + text;
  return "";
}

std::vector<ContentTag> contents_of(const StepSpan& span, StepEnd end, NaiveMemory& source, NaiveMemory& target) {
  std::vector<ContentTag> contents;
  for (const CopyStep& step : span.steps())
    for (const NaiveBytes& bytes : bytes_of(span.work(), step, source, target))
      contents.push_back((end == StepEnd::kSource ? bytes.source : bytes.target)->content);
  return contents;
}

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
    Diagnostics diagnostics;
    auto binding = pool_binding(placement, digest(placement), part.participant, snapshot->tokens, digest(snapshot),
                                request, diagnostics);
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
  auto job = KvTransferPlanner(KvTransfer{documents, PlanOptions(), LowerLimits()})
                 .make_job("job", any_bindings(pools_of(*documents.source, *documents.snapshot, source, 1)),
                           any_bindings(pools_of(*documents.target, *documents.snapshot, target, 2)));
  CHECK(job.ok());
  return std::move(job).value();
}

}  // namespace crossdock::testing
