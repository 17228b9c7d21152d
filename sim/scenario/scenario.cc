#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <array>

#include "base/checked.h"
#include "model/kv/schema_rules.h"
#include "model/wire/codec.h"
#include "model/wire/describe.h"

namespace crossdock {
namespace {

// One description for reading and writing (model/wire/describe.h). A field that has its usual value is left out when it
// is written, so a scenario that a campaign prints shows what matters about it.

constexpr std::string_view kSchema = "crossdock.scenario";
constexpr size_t kListMax = 4096;  // works, faults, stores

struct WorkKindName {
  WorkKind kind;
  std::string_view name;
};
constexpr std::array kWorkKinds = {
    WorkKindName{WorkKind::kTransfer, "transfer"},
    WorkKindName{WorkKind::kUpload, "upload"},
    WorkKindName{WorkKind::kRestore, "restore"},
    WorkKindName{WorkKind::kTraffic, "traffic"},
};

// "pp2tp4", without what is 1.
struct ParallelForm {
  void read(const JsonCursor& cursor, ParallelSpec& parallel) const {
    const Result<ParallelSpec> spec = parse_parallel_spec(cursor.string());
    if (spec.ok())
      parallel = spec.value();
    else
      cursor.refuse(Rule::kFieldChoice, spec.status().message());
  }
  void write(JsonWriter& out, const ParallelSpec& spec) const {
    std::string text;
    for (const auto& [name, size] :
         {std::pair("dp", spec.dp), std::pair("pp", spec.pp), std::pair("tp", spec.tp), std::pair("cp", spec.cp)})
      if (size != 1) text += fmt::format("{}{}", name, size);
    out.string(text.empty() ? "tp1" : text);
  }
};

constexpr auto kSide = form::object([](auto& fields, auto& side) {
  const SideSpec usual;
  fields.usual("cp_block_tokens", side.cp_block_tokens, usual.cp_block_tokens, form::bounded(1));
  fields.usual("gpu", side.gpu, usual.gpu, form::bounded());
  fields.usual("machine", side.machine, usual.machine, form::bounded());
  fields.usual("order", side.order, usual.order, form::choice(kAxisOrders, &AxisOrderName::order));
  fields.usual("page_tokens", side.page_tokens, usual.page_tokens, form::bounded(1));
  fields.given("parallel", true, side.parallel, ParallelForm());
  fields.usual("region_per_layer", side.region_per_layer, usual.region_per_layer, form::kBoolean);
  fields.usual("shuffle", side.shuffle, usual.shuffle, form::bounded());
  fields.usual("spare_pages", side.spare_pages, usual.spare_pages, form::bounded());
});

constexpr auto kWork = form::object([](auto& fields, auto& work) {
  const WorkSpec usual;
  fields.usual("after", work.after, usual.after, form::kString);
  fields.usual("at_us", work.at, usual.at, form::kMicroseconds);
  fields.usual("batch_bytes", work.batch_bytes, usual.batch_bytes, form::bounded(1));
  fields.usual("batch_steps", work.batch_steps, usual.batch_steps, form::bounded(1));
  fields.usual("bytes", work.bytes, usual.bytes, form::bounded());
  fields.usual("checksum", work.checksum, usual.checksum, form::kBoolean);
  fields.usual("coordinator_machine", work.coordinator_machine, usual.coordinator_machine, form::bounded());
  fields.usual("drain_us", work.drain, usual.drain, form::kMicroseconds);
  fields.required("kind", work.kind, form::choice(kWorkKinds, &WorkKindName::kind));
  fields.usual("lease_us", work.lease, usual.lease, form::kMicroseconds);
  fields.required("name", work.name, form::kString);
  fields.usual("object_order", work.object_order, usual.object_order,
               form::choice(kObjectOrders, &ObjectOrderName::order));
  fields.usual("object_page_tokens", work.object_page_tokens, usual.object_page_tokens, form::bounded(1));
  fields.usual("only_if", work.only_if, usual.only_if, form::set_of(form::kString));
  fields.usual("rounds", work.rounds, usual.rounds, form::bounded(1));
  fields.usual("snapshot", work.snapshot, usual.snapshot, form::kString);
  fields.optional("source", work.source, kSide);
  fields.usual("store", work.store, usual.store, form::kString);
  fields.optional("target", work.target, kSide);
  fields.usual("timeout_us", work.timeout, usual.timeout, form::kMicroseconds);
  fields.usual("tokens", work.tokens, usual.tokens, form::bounded());
  fields.optional("ttl_us", work.ttl, form::kMicroseconds);
  fields.usual("wait_us", work.wait, usual.wait, form::kMicroseconds);
  fields.usual("whole_objects", work.whole_objects, usual.whole_objects, form::kBoolean);
  fields.usual("window_bytes", work.window_bytes, usual.window_bytes, form::bounded(1));
  fields.usual("window_operations", work.window_operations, usual.window_operations, form::bounded(1));
});

constexpr auto kStore = form::object([](auto& fields, auto& store) {
  const StoreSpec usual;
  fields.usual("capacity_bytes", store.capacity_bytes, usual.capacity_bytes, form::bounded());
  fields.usual("chunk_bytes", store.chunk_bytes, usual.chunk_bytes, form::bounded(1));
  fields.usual("machine", store.machine, usual.machine, form::bounded());
  fields.required("name", store.name, form::kString);
  fields.usual("quota_bytes", store.quota_bytes, usual.quota_bytes, form::bounded());
});

constexpr auto kWhen = form::object([](auto& fields, auto& when) {
  const WhenSpec usual;
  fields.required("event", when.event, form::kString);
  fields.usual("nth", when.nth, usual.nth, form::bounded(1));
  fields.usual("peer", when.peer, usual.peer, form::kString);
});

constexpr auto kFault = form::object([](auto& fields, auto& fault) {
  const FaultSpec usual;
  fields.usual("after_us", fault.after, usual.after, form::kMicroseconds);
  fields.optional("at_us", fault.at, form::kMicroseconds);
  fields.usual("count", fault.count, usual.count, form::bounded(1));
  fields.usual("delay_us", fault.delay, usual.delay, form::kMicroseconds);
  fields.required("kind", fault.kind, form::choice(kFaultKinds, &FaultKindRow::kind));
  fields.usual("lasts_us", fault.lasts, usual.lasts, form::kMicroseconds);
  fields.usual("mode", fault.mode, usual.mode, form::kString);
  fields.usual("percent", fault.percent, usual.percent, form::bounded());
  fields.usual("target", fault.target, usual.target, form::kString);
  fields.optional("when", fault.when, kWhen);
});

using LoadCluster = std::function<std::optional<std::string>(const std::string&)>;

// The field 'cluster' of a scenario: a cluster, or the name of one that `load` finds.
struct ClusterForm {
  const LoadCluster& load;

  void read(const JsonCursor& cursor, Scenario& scenario) const {
    // A cluster by name keeps its name: written again, the scenario refers to it and does not contain it.
    std::optional<Cluster> cluster;
    if (cursor.value.kind() != JsonKind::kString) {
      cluster = decode_cluster(cursor);
    } else {
      scenario.cluster_name = cursor.value.text();
      const std::string document = fmt::format("cluster '{}'", scenario.cluster_name);
      const std::optional<std::string> loaded = load(scenario.cluster_name);
      if (!loaded) return cursor.refuse(Rule::kFieldChoice, fmt::format("there is no {}", document));
      cluster = read_cluster(*loaded, document, cursor.diagnostics);
    }
    if (cluster) scenario.cluster = std::move(*cluster);
  }
  void write(JsonWriter& out, const Scenario& scenario) const {
    if (scenario.cluster_name.empty())
      out.raw(write_cluster(scenario.cluster));
    else
      out.string(scenario.cluster_name);
  }
};

// A cache schema in short: groups of layers one after another, with what is usual left out.
struct ShortComponent {
  std::string name;
  uint64_t heads = 1;
  uint64_t dim = 1;
  uint64_t item_bytes = 2;
  uint64_t tokens_per_row = 1;  // 0: a state
};
struct ShortGroup {
  uint64_t layers = 1;
  uint64_t window_tokens = 0;  // 0: all live
  std::vector<ShortComponent> components;
};

// The sum saturates; a range that is too long is refused by the rules of the schema (ScenarioRun::make_works).
LayerGroup long_form(const ShortGroup& group, uint64_t first_layer) {
  LayerGroup made;
  made.layers = IntervalSet{Range(first_layer, saturating_add(first_layer, group.layers))};
  if (group.window_tokens != 0) made.live = LiveTokens::window(group.window_tokens);
  for (const ShortComponent& each : group.components) {
    Component component;
    component.name = ComponentName(each.name);
    component.dtype = each.item_bytes == 1 ? "int8" : each.item_bytes == 2 ? "bfloat16" : "packed";
    component.encoding = "plain";
    component.item_bytes = each.item_bytes;
    component.head_count = each.heads;
    component.head_dim = each.dim;
    component.tokens_per_row = each.tokens_per_row == 0 ? std::nullopt : std::optional(each.tokens_per_row);
    made.components.push_back(std::move(component));
  }
  return made;
}

constexpr auto kShortGroups = form::list_of(form::object([](auto& fields, auto& group) {
  constexpr auto kShortComponent = form::object([](auto& inside, auto& component) {
    inside.required("name", component.name, form::kString);
    inside.usual("heads", component.heads, uint64_t{1}, form::bounded(1));
    inside.usual("dim", component.dim, uint64_t{1}, form::bounded(1));
    inside.usual("item_bytes", component.item_bytes, uint64_t{1}, form::bounded(1));
    inside.usual("tokens_per_row", component.tokens_per_row, uint64_t{1}, form::bounded());
  });
  fields.given("components", true, group.components, form::list_of(kShortComponent, kListMax));
  fields.usual("layers", group.layers, uint64_t{1}, form::bounded(1));
  fields.usual("window_tokens", group.window_tokens, uint64_t{0}, form::bounded());
}));

// Read only: a schema is written in full, since a drawn one need not have a short form.
struct ShortSchemaForm {
  void read(const JsonCursor& cursor, CacheSchema& schema) const {
    std::vector<ShortGroup> groups;
    kShortGroups.read(cursor, groups);
    uint64_t first_layer = 0;
    for (const ShortGroup& group : groups) {
      schema.groups.push_back(long_form(group, first_layer));
      first_layer = saturating_add(first_layer, group.layers);
    }
  }
};

// `Value` is Scenario, const where it is written.
template <class Fields, class Value>
void describe_scenario(Fields& fields, Value& scenario, const LoadCluster& load_cluster) {
  const Scenario usual;
  fields.header(kSchema);
  fields.usual("bytes_scale", scenario.bytes_scale, usual.bytes_scale, form::bounded(1));
  fields.read_only("model", scenario.cache_schema, ShortSchemaForm());
  fields.given("cache_schema", true, scenario.cache_schema, form::kEmbedded);
  fields.usual("carries_bytes", scenario.carries_bytes, usual.carries_bytes, form::kBoolean);
  fields.given("cluster", true, scenario, ClusterForm{load_cluster});
  fields.usual("ends_within_us", scenario.ends_within, usual.ends_within, form::kMicroseconds);
  fields.usual("expected", scenario.expected, usual.expected, form::map_of(form::string_or_set_of(form::kString)));
  fields.usual("expected_violations", scenario.expected_violations, usual.expected_violations,
               form::set_of(form::kString));
  fields.given("faults", !scenario.faults.empty(), scenario.faults, form::list_of(kFault, kListMax));
  fields.usual("linger_us", scenario.linger, usual.linger, form::kMicroseconds);
  fields.required("name", scenario.name, form::kString);
  fields.usual("origin_us", scenario.origin, usual.origin, form::kMicroseconds);
  fields.required("shows", scenario.shows, form::kString);
  fields.given("stores", !scenario.stores.empty(), scenario.stores, form::list_of(kStore, kListMax));
  fields.given("works", !scenario.works.empty(), scenario.works, form::list_of(kWork, kListMax));
}

}  // namespace

std::optional<Scenario> read_scenario(std::string_view json, const LoadCluster& load_cluster,
                                      const std::string& document, Diagnostics& diagnostics) {
  diagnostics.set_document(document);
  const std::optional<JsonTree> tree = JsonTree::parse(json, JsonLimits(), diagnostics);
  if (!tree) return std::nullopt;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  if (!check_header(cursor, kSchema)) return std::nullopt;
  Scenario scenario;
  read_fields(cursor, scenario,
              [&](FieldReader& fields, Scenario& value) { describe_scenario(fields, value, load_cluster); });
  // Rules between the parts are checked only when each part is right by itself.
  if (diagnostics.empty()) check_scenario(scenario, diagnostics);
  if (!diagnostics.empty()) return std::nullopt;
  return scenario;
}

std::string write_scenario(const Scenario& scenario) {
  JsonWriter out;
  write_fields(out, scenario, [](FieldWriter& fields, const Scenario& value) { describe_scenario(fields, value, {}); });
  return out.take();
}

}  // namespace crossdock
