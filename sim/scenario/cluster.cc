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

// Reading a cluster. A field that is refused gets a value that is allowed, so that the rules that depend on it can be
// checked without repeating the same error; a cluster with any error is dropped at the end (decode_cluster).

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

double parse_number(const JsonValue& value) {
  if (value.kind() == JsonKind::kUnsigned) return static_cast<double>(value.as_unsigned());
  double number = 0;
  const std::string_view text = value.text();  // a JSON number, so the whole text is read
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  // Out of range is too close to zero here: the JSON reader refuses what is too large.
  return end.ec == std::errc() ? number : 0;
}

// A number of this range, with or without a fraction. One that is refused counts as the nearest that is allowed.
struct NumberForm {
  NumberRange range;

  void read(const JsonCursor& cursor, double& value) const { value = read_number(cursor); }
  // The shortest text that gives the number back; whole numbers without a fraction.
  void write(JsonWriter& out, double value) const { out.raw(fmt::format("{}", value)); }

 private:
  double read_number(const JsonCursor& cursor) const {
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
};
constexpr NumberForm kPositive = {{0, true, kNumberMax}};
constexpr NumberForm kNotNegative = {{0, false, kNumberMax}};

// An integer of this range. One that is refused counts as `most`: faults of what depends on it would only repeat this
// one.
struct CountForm {
  uint64_t least = 1;
  uint64_t most = 0;

  void read(const JsonCursor& cursor, uint32_t& value) const {
    const uint64_t diagnostics_before = cursor.diagnostics.total();
    const uint64_t count = cursor.unsigned_integer();
    if (cursor.diagnostics.total() == diagnostics_before && (count < least || count > most))
      cursor.refuse(Rule::kFieldInteger, fmt::format("{} is not an integer from {} to {}", count, least, most));
    value = static_cast<uint32_t>(cursor.diagnostics.total() == diagnostics_before ? count : most);
  }
  void write(JsonWriter& out, uint32_t value) const { out.number(value); }
};
constexpr CountForm count_up_to(uint64_t most) { return {1, most}; }

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

auto nics_of(uint32_t gpu_count) {
  return form::list_of(form::object([gpu_count](auto& fields, auto& nic) {
    fields.required("gbit_per_s", nic.gbit_per_s, kPositive);
    fields.required("gpus", nic.gpus, form::list_of(CountForm{0, gpu_count - 1}));
  }));
}

// The NICs of a machine whose GPUs have been counted. `diagnostics_before`: how many there were before the machine.
struct NicsForm {
  uint64_t diagnostics_before;

  void read(const JsonCursor& cursor, MachineSpec& machine) const {
    if (!cursor.require(JsonKind::kArray)) return;
    if (cursor.value.size() == 0 || cursor.value.size() > kNicCountMax)
      return cursor.refuse(Rule::kFieldInteger,
                           fmt::format("{} nics, not from 1 to {}", cursor.value.size(), kNicCountMax));
    nics_of(machine.gpu_count).read(cursor, machine.nics);
    // Only after a machine without errors: gpu numbers are then below gpu_count, and index the vector of check_nics().
    if (cursor.diagnostics.total() == diagnostics_before) check_nics(cursor, machine);
  }
  void write(JsonWriter& out, const MachineSpec& machine) const { nics_of(machine.gpu_count).write(out, machine.nics); }
};

constexpr auto kNvlink = form::object([](auto& fields, auto& machine) {
  fields.required("gbyte_per_s", some(machine.nvlink_gbyte_per_s), kPositive);
  fields.required("latency_us", machine.nvlink_latency_us, kNotNegative);
});

constexpr auto kPcie = form::object([](auto& fields, auto& machine) {
  fields.required("gbyte_per_s", machine.pcie_gbyte_per_s, kPositive);
  fields.required("latency_us", machine.pcie_latency_us, kNotNegative);
});

constexpr auto kSsd = form::object([](auto& fields, auto& machine) {
  fields.required("latency_us", machine.ssd_latency_us, kNotNegative);
  fields.required("read_gbyte_per_s", machine.ssd_read_gbyte_per_s, kPositive);
  fields.required("write_gbyte_per_s", machine.ssd_write_gbyte_per_s, kPositive);
});

auto describe_machine(uint64_t diagnostics_before) {
  return [diagnostics_before](auto& fields, auto& machine) {
    fields.required("dram_gbyte_per_s", machine.dram_gbyte_per_s, kPositive);
    fields.required("gpu_count", machine.gpu_count, count_up_to(kGpuCountMax));
    fields.required("hbm_gbyte_per_s", machine.hbm_gbyte_per_s, kPositive);
    fields.required("nics", machine, NicsForm{diagnostics_before});
    fields.given("nvlink", machine.nvlink_gbyte_per_s.has_value(), machine, kNvlink);
    fields.required("pcie", machine, kPcie);
    fields.required("ssd", machine, kSsd);
  };
}

struct MachineForm {
  void read(const JsonCursor& cursor, MachineSpec& machine) const {
    machine.gpu_count = 1;  // what its NICs are checked against where the field is missing
    read_fields(cursor, machine, describe_machine(cursor.diagnostics.total()));
  }
  void write(JsonWriter& out, const MachineSpec& machine) const { write_fields(out, machine, describe_machine(0)); }
};

constexpr auto kFabric = form::object([](auto& fields, auto& fabric) {
  fields.required("leaf_latency_us", fabric.leaf_latency_us, kNotNegative);
  fields.required("machines_per_leaf", fabric.machines_per_leaf, count_up_to(kMachineCountMax));
  fields.required("nic_latency_us", fabric.nic_latency_us, kNotNegative);
  fields.required("oversubscription", fabric.oversubscription, NumberForm{{1, false, kOversubscriptionMax}});
  fields.required("rail_optimized", fabric.rail_optimized, form::kBoolean);
});

constexpr auto kCosts = form::object([](auto& fields, auto& costs) {
  fields.required("descriptor_ns", costs.descriptor_ns, kNotNegative);
  fields.required("message_us", costs.message_us, kNotNegative);
  fields.required("post_us", costs.post_us, kNotNegative);
  fields.required("queue_depth", costs.queue_depth, count_up_to(kQueueDepthMax));
  fields.required("registration_us", costs.registration_us, kNotNegative);
  fields.required("registration_us_per_gbyte", costs.registration_us_per_gbyte, kNotNegative);
});

constexpr auto kCluster = form::object([](auto& fields, auto& cluster) {
  fields.header(kClusterSchema);
  fields.required("costs", cluster.costs, kCosts);
  fields.required("fabric", cluster.fabric, kFabric);
  fields.required("machine", cluster.machine, MachineForm());
  fields.required("machine_count", cluster.machine_count, count_up_to(kMachineCountMax));
  fields.required("name", cluster.name, form::kName);
  fields.required("source", cluster.source, form::kString);
});

}  // namespace

std::optional<Cluster> decode_cluster(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  Cluster cluster;
  if (check_header(cursor, kClusterSchema)) kCluster.read(cursor, cluster);
  if (cursor.diagnostics.total() != diagnostics_before) return std::nullopt;
  return cluster;
}

std::optional<Cluster> read_cluster(std::string_view json, const std::string& document, Diagnostics& diagnostics) {
  const std::string outer = diagnostics.document();
  // Findings name this document, and those that follow name the outer one again.
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
  kCluster.write(out, cluster);
  return out.take();
}

}  // namespace crossdock
