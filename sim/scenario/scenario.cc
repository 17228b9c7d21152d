#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "model/kv/schema_rules.h"
#include "model/wire/codec.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {
namespace {

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

// One description of each struct serves both directions: Reader takes fields from an object, Writer collects them.
// A field that has the value of a default-constructed struct is not written, and need not be there.
class Reader {
 public:
  explicit Reader(ObjectReader& in) : in_(in) {}

  template <class Number>
  void number(std::string_view name, Number& value, Number, uint64_t minimum = 0) {
    in_.optional(name, [&](const JsonCursor& cursor) {
      const uint64_t read = cursor.unsigned_integer();
      if (read < minimum)
        cursor.refuse(Rule::kFieldMinimum, fmt::format("{} is below {}", read, minimum));
      else if (read > std::numeric_limits<Number>::max())
        cursor.refuse(Rule::kFieldMinimum,
                      fmt::format("{} is above {}", read, uint64_t{std::numeric_limits<Number>::max()}));
      else
        value = static_cast<Number>(read);
    });
  }
  void us(std::string_view name, Duration& value, Duration) {
    in_.optional(name, [&](const JsonCursor& cursor) {
      const uint64_t read = cursor.unsigned_integer();
      if (read > uint64_t{1} << 52)
        cursor.refuse(Rule::kFieldMinimum, fmt::format("{} us are more than {}", read, uint64_t{1} << 52));
      else
        value = Duration::from_ns(static_cast<int64_t>(read) * 1000);
    });
  }
  void optional_us(std::string_view name, std::optional<Duration>& value) {
    Duration read = Duration::from_ns(-1);
    us(name, read, Duration());
    if (read >= Duration()) value = read;
  }
  void text(std::string_view name, std::string& value, bool is_required = false) {
    const auto read = [&](const JsonCursor& cursor) { value = cursor.string(); };
    is_required ? in_.required(name, read) : in_.optional(name, read);
  }
  void flag(std::string_view name, bool& value, bool) {
    in_.optional(name, [&](const JsonCursor& cursor) { value = cursor.boolean(); });
  }
  template <class Names, class Value, class Member>
  void choice(std::string_view name, Value& value, const Names& names, Member member, bool is_required = false) {
    const auto read = [&](const JsonCursor& cursor) {
      if (!cursor.require(JsonKind::kString)) return;
      std::vector<std::string_view> all;
      for (const auto& each : names) {
        if (each.name == cursor.value.text()) value = each.*member;
        all.push_back(each.name);
      }
      if (std::find(all.begin(), all.end(), cursor.value.text()) == all.end())
        cursor.refuse(Rule::kFieldChoice,
                      fmt::format("'{}' is not one of {}", cursor.value.text(), fmt::join(all, ", ")));
    };
    is_required ? in_.required(name, read) : in_.optional(name, read);
  }
  void texts(std::string_view name, std::set<std::string>& values) {
    in_.optional(name, [&](const JsonCursor& cursor) {
      cursor.for_each([&](const JsonCursor& each) { values.insert(each.string()); });
    });
  }
  template <class Value, class Describe>
  void object(std::string_view name, std::optional<Value>& value, Describe describe) {
    in_.optional(name, [&](const JsonCursor& cursor) { value = read_object<Value>(cursor, describe); });
  }
  template <class Value, class Describe>
  static Value read_object(const JsonCursor& cursor, Describe describe) {
    Value value;
    ObjectReader in(cursor);
    Reader reader(in);
    describe(reader, value);
    in.finish();
    return value;
  }
  template <class Value, class Describe>
  void list(std::string_view name, std::vector<Value>& values, Describe describe) {
    in_.optional(name, [&](const JsonCursor& cursor) {
      cursor.for_each([&](const JsonCursor& each) {
        if (values.size() < kListMax)
          values.push_back(read_object<Value>(each, describe));
        else if (values.size() == kListMax)
          cursor.refuse(Rule::kWorkLimit, fmt::format("more than {} entries", kListMax));
      });
    });
  }
  // Fields whose form is their own.
  template <class Read, class Write>
  void other(std::string_view name, bool, Read read, Write) {
    in_.optional(name, read);
  }

 private:
  ObjectReader& in_;
};

class Writer {
 public:
  template <class Number>
  void number(std::string_view name, Number value, Number usual, uint64_t = 0) {
    if (value != usual) put(name, [&](JsonWriter& out) { out.number(uint64_t{value}); });
  }
  void us(std::string_view name, Duration value, Duration usual) {
    if (value != usual) put(name, [&](JsonWriter& out) { out.number(static_cast<uint64_t>(value.ns() / 1000)); });
  }
  void optional_us(std::string_view name, const std::optional<Duration>& value) {
    if (value) us(name, *value, Duration::from_ns(-1));
  }
  void text(std::string_view name, const std::string& value, bool is_required = false) {
    if (is_required || !value.empty()) put(name, [&](JsonWriter& out) { out.string(value); });
  }
  void flag(std::string_view name, bool value, bool usual) {
    if (value != usual) put(name, [&](JsonWriter& out) { out.boolean(value); });
  }
  template <class Names, class Value, class Member>
  void choice(std::string_view name, const Value& value, const Names& names, Member member, bool is_required = false) {
    for (const auto& each : names)
      if (each.*member == value && (is_required || !(value == Value())))
        put(name, [&](JsonWriter& out) { out.string(each.name); });
  }
  void texts(std::string_view name, const std::set<std::string>& values) {
    if (values.empty()) return;
    put(name, [&](JsonWriter& out) {
      out.begin_array();
      for (const std::string& each : values) out.string(each);
      out.end_array();
    });
  }
  template <class Value, class Describe>
  void object(std::string_view name, std::optional<Value>& value, Describe describe) {
    if (value) put(name, [&](JsonWriter& out) { write_object(out, *value, describe); });
  }
  template <class Value, class Describe>
  static void write_object(JsonWriter& out, Value& value, Describe describe) {
    Writer inside;
    describe(inside, value);
    inside.write(out);
  }
  template <class Value, class Describe>
  void list(std::string_view name, std::vector<Value>& values, Describe describe) {
    if (values.empty()) return;
    put(name, [&](JsonWriter& out) {
      out.begin_array();
      for (Value& each : values) write_object(out, each, describe);
      out.end_array();
    });
  }
  template <class Read, class Write>
  void other(std::string_view name, bool is_there, Read, Write write) {
    if (is_there) put(name, write);
  }
  void write(JsonWriter& out) const {
    out.begin_object();
    for (const auto& [name, json] : fields_) out.key(name).raw(json);
    out.end_object();
  }

 private:
  template <class Write>
  void put(std::string_view name, Write write) {
    JsonWriter out;
    write(out);
    fields_[std::string(name)] = out.take();
  }
  std::map<std::string, std::string> fields_;
};

struct PoolOrderName {
  PoolOrder order;
  std::string_view name;
};
constexpr std::array kPoolOrders = {PoolOrderName{PoolOrder::kNhd, "nhd"}, PoolOrderName{PoolOrder::kHnd, "hnd"}};

std::string parallel_text(const ParallelSpec& spec) {
  std::string text;
  for (const auto& [name, size] :
       {std::pair("dp", spec.dp), std::pair("pp", spec.pp), std::pair("tp", spec.tp), std::pair("cp", spec.cp)})
    if (size != 1) text += fmt::format("{}{}", name, size);
  return text.empty() ? "tp1" : text;
}

template <class Fields>
void describe_side(Fields& fields, SideSpec& side) {
  const SideSpec usual;
  fields.number("cp_block_tokens", side.cp_block_tokens, usual.cp_block_tokens, 1);
  fields.number("gpu", side.gpu, usual.gpu);
  fields.number("machine", side.machine, usual.machine);
  fields.choice("order", side.order, kPoolOrders, &PoolOrderName::order);
  fields.number("page_tokens", side.page_tokens, usual.page_tokens, 1);
  fields.other(
      "parallel", true,
      [&](const JsonCursor& cursor) {
        const Result<ParallelSpec> spec = parse_parallel_spec(cursor.string());
        if (spec.ok())
          side.parallel = spec.value();
        else
          cursor.refuse(Rule::kFieldChoice, spec.status().message());
      },
      [&](JsonWriter& out) { out.string(parallel_text(side.parallel)); });
  fields.flag("region_per_layer", side.region_per_layer, usual.region_per_layer);
  fields.number("shuffle", side.shuffle, usual.shuffle);
  fields.number("spare_pages", side.spare_pages, usual.spare_pages);
}

template <class Fields>
void describe_work(Fields& fields, WorkSpec& work) {
  const WorkSpec usual;
  fields.text("after", work.after);
  fields.us("at_us", work.at, usual.at);
  fields.number("batch_bytes", work.batch_bytes, usual.batch_bytes, 1);
  fields.number("batch_steps", work.batch_steps, usual.batch_steps, 1);
  fields.number("bytes", work.bytes, usual.bytes);
  fields.flag("checksum", work.checksum, usual.checksum);
  fields.number("coordinator_machine", work.coordinator_machine, usual.coordinator_machine);
  fields.us("drain_us", work.drain, usual.drain);
  fields.choice("kind", work.kind, kWorkKinds, &WorkKindName::kind, true);
  fields.us("lease_us", work.lease, usual.lease);
  fields.text("name", work.name, true);
  fields.choice("object_order", work.object_order, kObjectOrders, &ObjectOrderName::order);
  fields.number("object_page_tokens", work.object_page_tokens, usual.object_page_tokens, 1);
  fields.texts("only_if", work.only_if);
  fields.number("rounds", work.rounds, usual.rounds, 1);
  fields.text("snapshot", work.snapshot);
  fields.object("source", work.source, [](auto& inside, SideSpec& side) { describe_side(inside, side); });
  fields.text("store", work.store);
  fields.object("target", work.target, [](auto& inside, SideSpec& side) { describe_side(inside, side); });
  fields.us("timeout_us", work.timeout, usual.timeout);
  fields.number("tokens", work.tokens, usual.tokens);
  fields.optional_us("ttl_us", work.ttl);
  fields.us("wait_us", work.wait, usual.wait);
  fields.flag("whole_objects", work.whole_objects, usual.whole_objects);
  fields.number("window_bytes", work.window_bytes, usual.window_bytes, 1);
  fields.number("window_operations", work.window_operations, usual.window_operations, 1);
}

template <class Fields>
void describe_store(Fields& fields, StoreSpec& store) {
  const StoreSpec usual;
  fields.number("capacity_bytes", store.capacity_bytes, usual.capacity_bytes);
  fields.number("chunk_bytes", store.chunk_bytes, usual.chunk_bytes, 1);
  fields.number("machine", store.machine, usual.machine);
  fields.text("name", store.name, true);
  fields.number("quota_bytes", store.quota_bytes, usual.quota_bytes);
}

template <class Fields>
void describe_when(Fields& fields, WhenSpec& when) {
  const WhenSpec usual;
  fields.text("event", when.event, true);
  fields.number("nth", when.nth, usual.nth, 1);
  fields.text("peer", when.peer);
}

template <class Fields>
void describe_fault(Fields& fields, FaultSpec& fault) {
  const FaultSpec usual;
  fields.us("after_us", fault.after, usual.after);
  fields.optional_us("at_us", fault.at);
  fields.number("count", fault.count, usual.count, 1);
  fields.us("delay_us", fault.delay, usual.delay);
  fields.choice("kind", fault.kind, kFaultKinds, &FaultKindRow::kind, true);
  fields.us("lasts_us", fault.lasts, usual.lasts);
  fields.text("mode", fault.mode);
  fields.number("percent", fault.percent, usual.percent);
  fields.text("target", fault.target);
  fields.object("when", fault.when, [](auto& inside, WhenSpec& when) { describe_when(inside, when); });
}

using LoadCluster = std::function<std::optional<std::string>(const std::string&)>;

void read_cluster_field(const JsonCursor& cursor, const LoadCluster& load_cluster, Scenario& scenario) {
  std::optional<Cluster> cluster;
  if (cursor.value.kind() != JsonKind::kString) {
    cluster = decode_cluster(cursor);
  } else {
    scenario.cluster_name = cursor.value.text();
    const std::string document = fmt::format("cluster '{}'", scenario.cluster_name);
    const std::optional<std::string> loaded = load_cluster(scenario.cluster_name);
    if (!loaded) return cursor.refuse(Rule::kFieldChoice, fmt::format("there is no {}", document));
    cluster = read_cluster(*loaded, document, cursor.diagnostics);
  }
  if (cluster) scenario.cluster = std::move(*cluster);
}

void read_expected(const JsonCursor& cursor, Scenario& scenario) {
  if (!cursor.require(JsonKind::kObject)) return;
  for (std::optional<JsonValue> item = cursor.value.first(); item; item = item->next()) {
    const JsonPath path = cursor.path.field(item->key());
    const JsonCursor verdicts{*item, path, cursor.diagnostics};
    std::set<std::string>& all = scenario.expected[std::string(item->key())];
    if (item->kind() == JsonKind::kString)
      all.insert(std::string(item->text()));
    else
      verdicts.for_each([&](const JsonCursor& each) { all.insert(each.string()); });
  }
}

void write_expected(JsonWriter& out, const Scenario& scenario) {
  out.begin_object();
  for (const auto& [work, verdicts] : scenario.expected) {
    out.key(work);
    if (verdicts.size() == 1) {
      out.string(*verdicts.begin());
      continue;
    }
    out.begin_array();
    for (const std::string& each : verdicts) out.string(each);
    out.end_array();
  }
  out.end_object();
}

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

LayerGroup long_form(const ShortGroup& group, uint64_t first_layer) {
  LayerGroup made;
  made.layers = IntervalSet{Range(first_layer, saturating_add(first_layer, group.layers))};
  if (group.window_tokens != 0) made.window_tokens = group.window_tokens;
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

void read_model(const JsonCursor& cursor, CacheSchema& schema) {
  uint64_t first_layer = 0;
  cursor.for_each([&](const JsonCursor& each) {
    const auto group = Reader::read_object<ShortGroup>(each, [](Reader& fields, ShortGroup& value) {
      fields.list("components", value.components, [](Reader& inside, ShortComponent& component) {
        inside.text("name", component.name, true);
        inside.number("heads", component.heads, uint64_t{1}, 1);
        inside.number("dim", component.dim, uint64_t{1}, 1);
        inside.number("item_bytes", component.item_bytes, uint64_t{1}, 1);
        inside.number("tokens_per_row", component.tokens_per_row, uint64_t{1});
      });
      fields.number("layers", value.layers, uint64_t{1}, 1);
      fields.number("window_tokens", value.window_tokens, uint64_t{0});
    });
    schema.groups.push_back(long_form(group, first_layer));
    first_layer = saturating_add(first_layer, group.layers);
  });
}

template <class Fields>
void describe_scenario(Fields& fields, Scenario& scenario, const LoadCluster& load_cluster) {
  const Scenario usual;
  fields.number("bytes_scale", scenario.bytes_scale, usual.bytes_scale, 1);
  fields.other(
      "model", false, [&](const JsonCursor& cursor) { read_model(cursor, scenario.cache_schema); }, [](JsonWriter&) {});
  fields.other(
      "cache_schema", true,
      [&](const JsonCursor& cursor) { scenario.cache_schema = decode_embedded<CacheSchema>(cursor); },
      [&](JsonWriter& out) { DocumentCodec<CacheSchema>::encode(out, scenario.cache_schema, false); });
  fields.flag("carries_bytes", scenario.carries_bytes, usual.carries_bytes);
  fields.other(
      "cluster", true, [&](const JsonCursor& cursor) { read_cluster_field(cursor, load_cluster, scenario); },
      [&](JsonWriter& out) {
        if (scenario.cluster_name.empty())
          out.raw(write_cluster(scenario.cluster));
        else
          out.string(scenario.cluster_name);
      });
  fields.other(
      "expected", !scenario.expected.empty(), [&](const JsonCursor& cursor) { read_expected(cursor, scenario); },
      [&](JsonWriter& out) { write_expected(out, scenario); });
  fields.us("ends_within_us", scenario.ends_within, usual.ends_within);
  fields.texts("expected_violations", scenario.expected_violations);
  fields.list("faults", scenario.faults, [](auto& inside, FaultSpec& fault) { describe_fault(inside, fault); });
  fields.us("linger_us", scenario.linger, usual.linger);
  fields.text("name", scenario.name, true);
  fields.us("origin_us", scenario.origin, usual.origin);
  fields.other(
      "schema", true, [](const JsonCursor&) {}, [](JsonWriter& out) { out.string(kSchema); });
  fields.text("shows", scenario.shows, true);
  fields.list("stores", scenario.stores, [](auto& inside, StoreSpec& store) { describe_store(inside, store); });
  fields.other(
      "version", true, [](const JsonCursor&) {}, [](JsonWriter& out) { out.number(uint64_t{1}); });
  fields.list("works", scenario.works, [](auto& inside, WorkSpec& work) { describe_work(inside, work); });
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
  Scenario scenario = Reader::read_object<Scenario>(
      cursor, [&](Reader& reader, Scenario& value) { describe_scenario(reader, value, load_cluster); });
  if (diagnostics.empty()) check_scenario(scenario, diagnostics);
  if (!diagnostics.empty()) return std::nullopt;
  return scenario;
}

std::string write_scenario(const Scenario& scenario) {
  JsonWriter out;
  Scenario copy = scenario;
  Writer::write_object(out, copy, [](Writer& writer, Scenario& value) {
    describe_scenario(writer, value, [](const std::string&) { return std::nullopt; });
  });
  return out.take();
}

}  // namespace crossdock
