#include "tests/support/example_documents.h"

#include <cstdio>

#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"

namespace crossdock::testing {
namespace {

void show_and_die(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.kept()) std::fprintf(stderr, "%s\n", diagnostic.to_line().c_str());
  CHECK(diagnostics.empty());
}

Component rows(const char* name, const char* dtype, uint64_t item_bytes, uint64_t head_dim) {
  return Component{ComponentName(name), dtype, "plain", item_bytes, 2, head_dim, 1};
}

RuntimeBinding binding_of(const char* participant, const char* instance) {
  RuntimeBinding binding;
  binding.operation = OperationId("move-17");
  binding.resource = ResourceId("kv:request-17");
  binding.revision = RevisionId("1");
  binding.participant = ParticipantId(participant);
  binding.instance = InstanceId(instance);
  binding.generation = 3;
  binding.placement_digest = digest(example_placement());
  binding.snapshot_digest = digest(example_snapshot());
  binding.tokens = Range(0, 10);
  return binding;
}

View view_of(const char* component, Range layers, Range tokens, Range heads, uint64_t dim, const char* region,
             uint64_t offset, ByteStrides strides) {
  View view;
  view.component = ComponentName(component);
  view.layers = layers;
  view.tokens = tokens;
  view.heads = heads;
  view.dims = Range(0, dim);
  view.region = RegionId(region);
  view.offset_bytes = offset;
  view.strides = strides;
  return view;
}

}  // namespace

template <class Document>
Valid<Document> valid_or_die(Document document) {
  Diagnostics diagnostics;
  std::optional<Valid<Document>> valid = Valid<Document>::make(std::move(document), diagnostics);
  if (!valid) show_and_die(diagnostics);
  return *valid;
}

template Valid<CacheSchema> valid_or_die(CacheSchema);
template Valid<Topology> valid_or_die(Topology);
template Valid<PlacementManifest> valid_or_die(PlacementManifest);
template Valid<SnapshotDescriptor> valid_or_die(SnapshotDescriptor);
template Valid<RuntimeBinding> valid_or_die(RuntimeBinding);
template Valid<StoreLayout> valid_or_die(StoreLayout);
template Valid<StoreManifest> valid_or_die(StoreManifest);

Valid<CacheSchema> example_cache_schema() {
  LayerGroup full{
      IntervalSet{Range(0, 2)},
      LiveTokens::all(),
      {rows("key", "float8_e4m3fn", 1, 8), rows("value", "float8_e4m3fn", 1, 4), rows("key_scale", "float32", 4, 1)}};
  LayerGroup window{IntervalSet{Range(2, 3)},
                    LiveTokens::window(6),
                    {rows("key", "bfloat16", 2, 8), rows("value", "bfloat16", 2, 8)}};
  LayerGroup linear{IntervalSet{Range(3, 4)}, LiveTokens::all(), {rows("recurrent_state", "float32", 4, 16)}};
  linear.components[0].tokens_per_row = std::nullopt;
  return valid_or_die(CacheSchema{{full, window, linear}});
}

Valid<Topology> example_topology() { return valid_or_die(example_placement()->topology); }

Valid<PlacementManifest> example_placement() {
  PartitionRequest request;
  request.name = "decode";
  request.resource = ResourceId("kv:request-17");
  request.revision = RevisionId("1");
  request.pp = 2;
  request.tp = 2;
  request.layer_count = 4;
  request.paging = Paging{4, AxisOrder::kNhd};
  Diagnostics diagnostics;
  std::optional<Valid<PlacementManifest>> placement = partition(example_cache_schema(), request, diagnostics);
  if (!placement) show_and_die(diagnostics);
  return *placement;
}

Valid<SnapshotDescriptor> example_snapshot() {
  SnapshotDescriptor snapshot;
  snapshot.tenant = "team-a";
  snapshot.resource = ResourceId("kv:request-17");
  snapshot.model_id = "example/hybrid-4l";
  snapshot.model_revision = "main";
  snapshot.adapter = Adapter{"support-bot", "v2"};
  snapshot.semantic_fingerprint = "rope-base-10000";
  snapshot.cache_schema_digest = digest(example_cache_schema());
  snapshot.tokens = Range(0, 10);
  snapshot.token_fingerprint = "tokens-of-request-17";
  return valid_or_die(snapshot);
}

// Pages of 4 tokens in slots 5, 0 and 2 of a pool. A page holds, per layer, 4 rows of [key 8 | value 4 | scale 4]
// bytes.
Valid<RuntimeBinding> example_binding() {
  RuntimeBinding binding = binding_of("p0-t0", "decode-worker-0");
  binding.devices = {Device{DeviceId("gpu0"), "cuda", 1 << 20}};
  binding.regions = {Region{RegionId("pool"), 7, 1024, DeviceId("gpu0"), 0x7f0000000000, "10.0.0.1:4711"}};
  binding.page_tables = {PageTable{PageTableId("pages"), 4, 0, {5, 0, 2}}};
  const Range layers(0, 2);
  const Range tokens(0, 10);
  const Range head(0, 1);
  binding.views = {
      view_of("key", layers, tokens, head, 8, "pool", 0, {.layer = 64, .row = 16, .head = 0, .dim = 1}),
      view_of("value", layers, tokens, head, 4, "pool", 8, {.layer = 64, .row = 16, .head = 0, .dim = 1}),
      view_of("key_scale", layers, tokens, head, 1, "pool", 12, {.layer = 64, .row = 16, .head = 0, .dim = 4})};
  for (View& view : binding.views) view.pages = ViewPages{PageTableId("pages"), 128};
  return valid_or_die(binding);
}

Valid<RuntimeBinding> example_binding_without_pages() {
  RuntimeBinding binding = binding_of("p1-t1", "decode-worker-3");
  binding.devices = {Device{DeviceId("gpu3"), "cuda", 1 << 20}};
  binding.regions = {Region{RegionId("state"), 1, 128, DeviceId("gpu3"), {}, {}},
                     Region{RegionId("window"), 1, 256, DeviceId("gpu3"), {}, {}}};
  binding.views = {view_of("key", Range(2, 3), Range(4, 10), Range(1, 2), 8, "window", 0,
                           {.layer = 0, .row = 16, .head = 0, .dim = 2}),
                   view_of("value", Range(2, 3), Range(4, 10), Range(1, 2), 8, "window", 128,
                           {.layer = 0, .row = 16, .head = 0, .dim = 2}),
                   view_of("recurrent_state", Range(3, 4), Range(0, 1), Range(1, 2), 16, "state", 64,
                           {.layer = 0, .row = 0, .head = 0, .dim = 4})};
  return valid_or_die(binding);
}

Valid<StoreLayout> example_store_layout() {
  StoreLayout layout;
  layout.name = "by-head";
  layout.cache_schema = *example_cache_schema();
  layout.object_order = ObjectOrder::kPlhd;
  layout.page_tokens = 4;
  const std::vector<ComponentName> full = {ComponentName("key"), ComponentName("key_scale"), ComponentName("value")};
  const std::vector<ComponentName> window = {ComponentName("key"), ComponentName("value")};
  layout.parts = {
      StorePart{ObjectKey("full-h0"), IntervalSet{Range(0, 2)}, full, IntervalSet{Range(0, 1)}},
      StorePart{ObjectKey("full-h1"), IntervalSet{Range(0, 2)}, full, IntervalSet{Range(1, 2)}},
      StorePart{ObjectKey("window"), IntervalSet{Range(2, 3)}, window, IntervalSet{Range(0, 2)}},
      StorePart{
          ObjectKey("state"), IntervalSet{Range(3, 4)}, {ComponentName("recurrent_state")}, IntervalSet{Range(0, 2)}}};
  return valid_or_die(layout);
}

// Two objects: rows of 32 bytes [key 2x8 | value 2x4 | scale 2x4] for each token of layers 0-1; then the rest.
Valid<StoreManifest> example_store_manifest() {
  StoreManifest manifest;
  manifest.snapshot = *example_snapshot();
  manifest.cache_schema = *example_cache_schema();
  manifest.objects = {StoredObject{RegionId("request-17/full"), 640, 256, {101, 102, 103}},
                      StoredObject{RegionId("request-17/rest"), 512, 256, {201, 202}}};
  const Range all(0, 10);
  const Range heads(0, 2);
  manifest.views = {
      view_of("key", Range(0, 2), all, heads, 8, "request-17/full", 0, {.layer = 320, .row = 32, .head = 8, .dim = 1}),
      view_of("value", Range(0, 2), all, heads, 4, "request-17/full", 16,
              {.layer = 320, .row = 32, .head = 4, .dim = 1}),
      view_of("key_scale", Range(0, 2), all, heads, 1, "request-17/full", 24,
              {.layer = 320, .row = 32, .head = 4, .dim = 4}),
      view_of("key", Range(2, 3), Range(4, 10), heads, 8, "request-17/rest", 0,
              {.layer = 0, .row = 32, .head = 16, .dim = 2}),
      view_of("value", Range(2, 3), Range(4, 10), heads, 8, "request-17/rest", 192,
              {.layer = 0, .row = 32, .head = 16, .dim = 2}),
      view_of("recurrent_state", Range(3, 4), Range(0, 1), heads, 16, "request-17/rest", 384,
              {.layer = 0, .row = 0, .head = 64, .dim = 4})};
  return valid_or_die(manifest);
}

std::vector<ExampleDocument> example_documents() {
  return {{"Cache schema", example_cache_schema()},
          {"Snapshot descriptor", example_snapshot()},
          {"Topology", example_topology()},
          {"Placement manifest", example_placement()},
          {"Runtime binding", example_binding()},
          {"Store layout", example_store_layout()},
          {"Store manifest", example_store_manifest()}};
}

Valid<PlacementManifest> placed(const Valid<CacheSchema>& schema, const PartitionSizes& sizes, const std::string& name,
                                const std::string& resource) {
  PartitionRequest request;
  request.name = name;
  request.resource = ResourceId(resource);
  request.revision = RevisionId("1");
  request.dp = sizes.dp;
  request.pp = sizes.pp;
  request.tp = sizes.tp;
  request.cp = sizes.cp;
  request.cp_block_tokens = sizes.cp_block_tokens;
  request.layers_per_stage = sizes.layers_per_stage;
  request.layer_count = schema->layers().hull().end();
  Diagnostics diagnostics;
  const std::optional<Valid<PlacementManifest>> placement = partition(schema, request, diagnostics);
  if (!placement) show_and_die(diagnostics);
  return *placement;
}

Valid<SnapshotDescriptor> snapshot_of(const Valid<CacheSchema>& schema, Range tokens, const std::string& resource) {
  SnapshotDescriptor snapshot = *example_snapshot();
  snapshot.resource = ResourceId(resource);
  snapshot.cache_schema_digest = digest(schema);
  snapshot.tokens = tokens;
  return valid_or_die(snapshot);
}

std::string diagnostic_lines(const Diagnostics& diagnostics) {
  std::string lines;
  for (const Diagnostic& diagnostic : diagnostics.kept()) lines += diagnostic.to_line() + "\n";
  return lines;
}

}  // namespace crossdock::testing
