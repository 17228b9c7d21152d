#include "sim/scenario/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr std::string_view kClusterSchema = "crossdock.cluster";
constexpr JsonLimits kClusterJsonLimits = {.bytes_max = uint64_t{1} << 20, .depth_max = 8, .values_max = 1 << 14};

// What bounds the links that a cluster can have, about a million.
constexpr uint64_t kMachineCountMax = 8192;
constexpr uint64_t kGpuCountMax = 16;
constexpr uint64_t kNicCountMax = 16;
constexpr uint64_t kQueueDepthMax = uint64_t{1} << 20;
constexpr double kNumberMax = 1e9;
constexpr double kOversubscriptionMax = 1000;

// The least and the most of a number.
struct NumberRange {
  double least = 0;
  bool is_above_least = false;
  double most = kNumberMax;
};
constexpr NumberRange kPositive = {0, true, kNumberMax};
constexpr NumberRange kNotNegative = {0, false, kNumberMax};

double parse_number(const JsonValue& value) {
  if (value.kind() == JsonKind::kUnsigned) return static_cast<double>(value.as_unsigned());
  double number = 0;
  const std::string_view text = value.text();  // a JSON number, so the whole text is read
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  // Out of range is too close to zero here: the JSON reader refuses what is too large.
  return end.ec == std::errc() ? number : 0;
}

double read_number(const JsonCursor& cursor, const NumberRange& range) {
  if (cursor.value.kind() != JsonKind::kOtherNumber && cursor.value.kind() != JsonKind::kUnsigned) {
    cursor.refuse(Rule::kFieldType, fmt::format("must be a number, not {}", json_kind_name(cursor.value.kind())));
    return range.most;
  }
  const double number = parse_number(cursor.value);
  if (range.is_above_least && number <= range.least) {
    cursor.refuse(Rule::kFieldMinimum, fmt::format("{} is not above {}", number, range.least));
    return range.most;
  }
  if (number < range.least) {
    cursor.refuse(Rule::kFieldMinimum, fmt::format("{} is below {}", number, range.least));
    return range.least;
  }
  if (number > range.most) cursor.refuse(Rule::kFieldType, fmt::format("{} is above {}", number, range.most));
  return std::min(number, range.most);
}

double number_field(ObjectReader& in, std::string_view name, const NumberRange& range) {
  double number = range.most;
  in.required(name, [&](const JsonCursor& cursor) { number = read_number(cursor, range); });
  return number;
}

// `most`, and a fault, when it is anything else: faults of what depends on it would only repeat this one.
uint32_t read_count(const JsonCursor& cursor, uint64_t least, uint64_t most) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  const uint64_t count = cursor.unsigned_integer();
  if (cursor.diagnostics.total() == diagnostics_before && (count < least || count > most))
    cursor.refuse(Rule::kFieldInteger, fmt::format("{} is not an integer from {} to {}", count, least, most));
  return static_cast<uint32_t>(cursor.diagnostics.total() == diagnostics_before ? count : most);
}

uint32_t count_field(ObjectReader& in, std::string_view name, uint64_t most) {
  uint32_t count = 1;
  in.required(name, [&](const JsonCursor& cursor) { count = read_count(cursor, 1, most); });
  return count;
}

NicSpec read_nic(const JsonCursor& cursor, uint32_t gpu_count) {
  ObjectReader in(cursor);
  NicSpec nic;
  nic.gbit_per_s = number_field(in, "gbit_per_s", kPositive);
  in.required("gpus", [&](const JsonCursor& list) {
    nic.gpus = decode_list(list, [&](const JsonCursor& gpu) { return read_count(gpu, 0, gpu_count - 1); });
  });
  in.finish();
  return nic;
}

// Each GPU behind one NIC.
void check_nics(const JsonCursor& cursor, const MachineSpec& machine) {
  std::vector<std::optional<size_t>> nic_of_gpu(machine.gpu_count);
  for (size_t nic = 0; nic < machine.nics.size(); ++nic) {
    for (const uint32_t gpu : machine.nics[nic].gpus) {
      if (nic_of_gpu[gpu])
        cursor.refuse(Rule::kDeviceRepeated,
                      fmt::format("gpu {} is behind nic {} and nic {}", gpu, *nic_of_gpu[gpu], nic));
      nic_of_gpu[gpu] = nic;
    }
  }
  for (size_t gpu = 0; gpu < nic_of_gpu.size(); ++gpu)
    if (!nic_of_gpu[gpu]) cursor.refuse(Rule::kFieldMissing, fmt::format("gpu {} is behind no nic", gpu));
}

// `diagnostics_before`: how many faults there were before the machine.
void read_nics(const JsonCursor& cursor, uint64_t diagnostics_before, MachineSpec& machine) {
  if (!cursor.require(JsonKind::kArray)) return;
  if (cursor.value.size() == 0 || cursor.value.size() > kNicCountMax) {
    cursor.refuse(Rule::kFieldInteger, fmt::format("{} nics, not from 1 to {}", cursor.value.size(), kNicCountMax));
    return;
  }
  machine.nics = decode_list(cursor, [&](const JsonCursor& nic) { return read_nic(nic, machine.gpu_count); });
  if (cursor.diagnostics.total() == diagnostics_before) check_nics(cursor, machine);
}

MachineSpec read_machine(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  ObjectReader in(cursor);
  MachineSpec machine;
  machine.dram_gbyte_per_s = number_field(in, "dram_gbyte_per_s", kPositive);
  machine.gpu_count = count_field(in, "gpu_count", kGpuCountMax);
  machine.hbm_gbyte_per_s = number_field(in, "hbm_gbyte_per_s", kPositive);
  in.required("nics", [&](const JsonCursor& nics) { read_nics(nics, diagnostics_before, machine); });
  in.optional("nvlink", [&](const JsonCursor& nvlink) {
    ObjectReader fields(nvlink);
    machine.nvlink_gbyte_per_s = number_field(fields, "gbyte_per_s", kPositive);
    machine.nvlink_latency_us = number_field(fields, "latency_us", kNotNegative);
    fields.finish();
  });
  in.required("pcie", [&](const JsonCursor& pcie) {
    ObjectReader fields(pcie);
    machine.pcie_gbyte_per_s = number_field(fields, "gbyte_per_s", kPositive);
    machine.pcie_latency_us = number_field(fields, "latency_us", kNotNegative);
    fields.finish();
  });
  in.required("ssd", [&](const JsonCursor& ssd) {
    ObjectReader fields(ssd);
    machine.ssd_latency_us = number_field(fields, "latency_us", kNotNegative);
    machine.ssd_read_gbyte_per_s = number_field(fields, "read_gbyte_per_s", kPositive);
    machine.ssd_write_gbyte_per_s = number_field(fields, "write_gbyte_per_s", kPositive);
    fields.finish();
  });
  in.finish();
  return machine;
}

FabricSpec read_fabric(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  FabricSpec fabric;
  fabric.leaf_latency_us = number_field(in, "leaf_latency_us", kNotNegative);
  fabric.machines_per_leaf = count_field(in, "machines_per_leaf", kMachineCountMax);
  fabric.nic_latency_us = number_field(in, "nic_latency_us", kNotNegative);
  fabric.oversubscription = number_field(in, "oversubscription", {1, false, kOversubscriptionMax});
  in.required("rail_optimized", [&](const JsonCursor& rails) { fabric.rail_optimized = rails.boolean(); });
  in.finish();
  return fabric;
}

CostSpec read_costs(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  CostSpec costs;
  costs.descriptor_ns = number_field(in, "descriptor_ns", kNotNegative);
  costs.message_us = number_field(in, "message_us", kNotNegative);
  costs.post_us = number_field(in, "post_us", kNotNegative);
  costs.queue_depth = count_field(in, "queue_depth", kQueueDepthMax);
  costs.registration_us = number_field(in, "registration_us", kNotNegative);
  costs.registration_us_per_gbyte = number_field(in, "registration_us_per_gbyte", kNotNegative);
  in.finish();
  return costs;
}

// The shortest text that gives this number back; whole numbers without a fraction.
void write_number(JsonWriter& out, std::string_view name, double number) {
  out.key(name).raw(fmt::format("{}", number));
}

void write_nic(JsonWriter& out, const NicSpec& nic) {
  out.begin_object();
  write_number(out, "gbit_per_s", nic.gbit_per_s);
  out.key("gpus");
  encode_list(out, nic.gpus, [](JsonWriter& list, uint32_t gpu) { list.number(gpu); });
  out.end_object();
}

void write_machine(JsonWriter& out, const MachineSpec& machine) {
  out.begin_object();
  write_number(out, "dram_gbyte_per_s", machine.dram_gbyte_per_s);
  out.key("gpu_count").number(machine.gpu_count);
  write_number(out, "hbm_gbyte_per_s", machine.hbm_gbyte_per_s);
  out.key("nics");
  encode_list(out, machine.nics, write_nic);
  if (machine.nvlink_gbyte_per_s) {
    out.key("nvlink").begin_object();
    write_number(out, "gbyte_per_s", *machine.nvlink_gbyte_per_s);
    write_number(out, "latency_us", machine.nvlink_latency_us);
    out.end_object();
  }
  out.key("pcie").begin_object();
  write_number(out, "gbyte_per_s", machine.pcie_gbyte_per_s);
  write_number(out, "latency_us", machine.pcie_latency_us);
  out.end_object();
  out.key("ssd").begin_object();
  write_number(out, "latency_us", machine.ssd_latency_us);
  write_number(out, "read_gbyte_per_s", machine.ssd_read_gbyte_per_s);
  write_number(out, "write_gbyte_per_s", machine.ssd_write_gbyte_per_s);
  out.end_object();
  out.end_object();
}

void write_fabric(JsonWriter& out, const FabricSpec& fabric) {
  out.begin_object();
  write_number(out, "leaf_latency_us", fabric.leaf_latency_us);
  out.key("machines_per_leaf").number(fabric.machines_per_leaf);
  write_number(out, "nic_latency_us", fabric.nic_latency_us);
  write_number(out, "oversubscription", fabric.oversubscription);
  out.key("rail_optimized").boolean(fabric.rail_optimized);
  out.end_object();
}

void write_costs(JsonWriter& out, const CostSpec& costs) {
  out.begin_object();
  write_number(out, "descriptor_ns", costs.descriptor_ns);
  write_number(out, "message_us", costs.message_us);
  write_number(out, "post_us", costs.post_us);
  out.key("queue_depth").number(costs.queue_depth);
  write_number(out, "registration_us", costs.registration_us);
  write_number(out, "registration_us_per_gbyte", costs.registration_us_per_gbyte);
  out.end_object();
}

}  // namespace

std::optional<Cluster> decode_cluster(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  Cluster cluster;
  if (check_header(cursor, kClusterSchema)) {
    ObjectReader in(cursor);
    in.required("costs", [&](const JsonCursor& costs) { cluster.costs = read_costs(costs); });
    in.required("fabric", [&](const JsonCursor& fabric) { cluster.fabric = read_fabric(fabric); });
    in.required("machine", [&](const JsonCursor& machine) { cluster.machine = read_machine(machine); });
    cluster.machine_count = count_field(in, "machine_count", kMachineCountMax);
    cluster.name = in.name("name");
    in.string("schema");
    cluster.source = in.string("source");
    in.number("version");
    in.finish();
  }
  if (cursor.diagnostics.total() != diagnostics_before) return std::nullopt;
  return cluster;
}

std::optional<Cluster> read_cluster(std::string_view json, const std::string& document, Diagnostics& diagnostics) {
  const std::string outer = diagnostics.document();
  diagnostics.set_document(document);
  std::optional<Cluster> cluster;
  if (const std::optional<JsonTree> tree = JsonTree::parse(json, kClusterJsonLimits, diagnostics)) {
    const JsonPath path;
    cluster = decode_cluster(JsonCursor{tree->root(), path, diagnostics});
  }
  diagnostics.set_document(outer);
  return cluster;
}

std::string write_cluster(const Cluster& cluster) {
  JsonWriter out;
  out.begin_object();
  out.key("costs");
  write_costs(out, cluster.costs);
  out.key("fabric");
  write_fabric(out, cluster.fabric);
  out.key("machine");
  write_machine(out, cluster.machine);
  out.key("machine_count").number(cluster.machine_count);
  out.key("name").string(cluster.name);
  encode_schema(out, kClusterSchema, true);
  out.key("source").string(cluster.source);
  encode_version(out, true);
  out.end_object();
  return out.take();
}

}  // namespace crossdock
