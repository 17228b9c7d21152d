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

// Which number each link has. Those of a machine stand together, GPUs first; those of the leaves follow all machines.
class Numbering {
 public:
  explicit Numbering(const Cluster& cluster)
      : cluster_(cluster),
        nic_count_(static_cast<uint32_t>(cluster.machine.nics.size())),
        per_gpu_(cluster.machine.nvlink_gbyte_per_s ? 5 : 3),
        per_machine_(cluster.machine.gpu_count * per_gpu_ + 4 + 2 * nic_count_) {}

  uint32_t per_machine() const { return per_machine_; }
  uint32_t machine(uint32_t machine) const { return machine * per_machine_; }
  uint32_t hbm(const Place& gpu) const { return machine(gpu.machine) + gpu.index * per_gpu_; }
  // Without NVLink, GPUs reach each other over PCIe.
  uint32_t nvlink_out(const Place& gpu) const { return hbm(gpu) + 1; }
  uint32_t nvlink_in(const Place& gpu) const { return hbm(gpu) + 2; }
  uint32_t pcie_out(const Place& gpu) const { return hbm(gpu) + per_gpu_ - 2; }
  uint32_t pcie_in(const Place& gpu) const { return hbm(gpu) + per_gpu_ - 1; }
  uint32_t dram_out(uint32_t machine_number) const {
    return machine(machine_number) + cluster_.machine.gpu_count * per_gpu_;
  }
  uint32_t nic_out(uint32_t machine_number, uint32_t nic) const { return dram_out(machine_number) + 4 + 2 * nic; }

  // Out of the place into its machine, and back.
  uint32_t host_out(const Place& place) const {
    switch (place.kind) {
      case PlaceKind::kGpu: return pcie_out(place);
      case PlaceKind::kDram: return dram_out(place.machine);
      case PlaceKind::kSsd: return dram_out(place.machine) + 2;
    }
    check_failed("a known kind of place", __FILE__, __LINE__);
  }
  uint32_t host_in(const Place& place) const { return host_out(place) + 1; }

  uint32_t nic(const Place& place) const {
    const std::vector<NicSpec>& nics = cluster_.machine.nics;
    if (place.kind != PlaceKind::kGpu) return (place.machine + (place.kind == PlaceKind::kSsd ? 1 : 0)) % nic_count_;
    for (uint32_t nic = 0; nic < nic_count_; ++nic)
      if (std::find(nics[nic].gpus.begin(), nics[nic].gpus.end(), place.index) != nics[nic].gpus.end()) return nic;
    check_failed("a GPU is behind a NIC", __FILE__, __LINE__);
  }

  uint32_t group_count() const { return (cluster_.machine_count - 1) / cluster_.fabric.machines_per_leaf + 1; }
  uint32_t leaf_count() const { return group_count() * (cluster_.fabric.rail_optimized ? nic_count_ : 1); }
  uint32_t leaf(const Place& place) const {
    const uint32_t group = place.machine / cluster_.fabric.machines_per_leaf;
    return cluster_.fabric.rail_optimized ? group * nic_count_ + nic(place) : group;
  }
  uint32_t leaf_up(uint32_t leaf_number) const { return machine(cluster_.machine_count) + 2 * leaf_number; }

 private:
  const Cluster& cluster_;
  uint32_t nic_count_;
  uint32_t per_gpu_;
  uint32_t per_machine_;
};

double us(double microseconds) { return microseconds / 1e6; }

void add_pair(std::vector<LinkSpec>& links, const std::string& name, double bytes_per_s, double latency_s) {
  links.push_back(LinkSpec{name + "/out", bytes_per_s, latency_s});
  links.push_back(LinkSpec{name + "/in", bytes_per_s, latency_s});
}

void add_machine(std::vector<LinkSpec>& links, const Cluster& cluster, uint32_t number) {
  const MachineSpec& machine = cluster.machine;
  const std::string name = fmt::format("h{}", number);
  for (uint32_t gpu = 0; gpu < machine.gpu_count; ++gpu) {
    const std::string gpu_name = fmt::format("{}/gpu{}", name, gpu);
    links.push_back(LinkSpec{gpu_name + "/hbm", machine.hbm_gbyte_per_s * 1e9, 0});
    if (machine.nvlink_gbyte_per_s)
      add_pair(links, gpu_name + "/nvlink", *machine.nvlink_gbyte_per_s * 1e9, us(machine.nvlink_latency_us));
    add_pair(links, gpu_name + "/pcie", machine.pcie_gbyte_per_s * 1e9, us(machine.pcie_latency_us));
  }
  add_pair(links, name + "/dram", machine.dram_gbyte_per_s * 1e9, 0);
  links.push_back(LinkSpec{name + "/ssd/read", machine.ssd_read_gbyte_per_s * 1e9, us(machine.ssd_latency_us)});
  links.push_back(LinkSpec{name + "/ssd/write", machine.ssd_write_gbyte_per_s * 1e9, us(machine.ssd_latency_us)});
  for (size_t nic = 0; nic < machine.nics.size(); ++nic)
    add_pair(links, fmt::format("{}/nic{}", name, nic), machine.nics[nic].gbit_per_s * 1e9 / 8,
             us(cluster.fabric.nic_latency_us));
}

// What all NICs below this leaf can send, before oversubscription.
double leaf_bytes_per_s(const Cluster& cluster, uint32_t leaf) {
  const FabricSpec& fabric = cluster.fabric;
  const auto nic_count = static_cast<uint32_t>(cluster.machine.nics.size());
  const uint32_t group = fabric.rail_optimized ? leaf / nic_count : leaf;
  const uint32_t machine_count =
      std::min(fabric.machines_per_leaf, cluster.machine_count - group * fabric.machines_per_leaf);
  double of_machine = 0;
  for (uint32_t nic = 0; nic < nic_count; ++nic)
    if (!fabric.rail_optimized || nic == leaf % nic_count) of_machine += cluster.machine.nics[nic].gbit_per_s * 1e9 / 8;
  return machine_count * of_machine;
}

}  // namespace

std::string Place::to_text() const {
  switch (kind) {
    case PlaceKind::kGpu: return fmt::format("h{}/gpu{}", machine, index);
    case PlaceKind::kDram: return fmt::format("h{}/dram", machine);
    case PlaceKind::kSsd: return fmt::format("h{}/ssd", machine);
  }
  check_failed("a known kind of place", __FILE__, __LINE__);
}

std::optional<Cluster> decode_cluster(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  Cluster cluster;
  if (check_header(cursor, kClusterSchema)) kCluster.read(cursor, cluster);
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
  kCluster.write(out, cluster);
  return out.take();
}

ClusterLinks::ClusterLinks(const Cluster& cluster) : cluster_(cluster) {
  const Numbering number(cluster_);
  CHECK(cluster_.machine_count > 0 && !cluster_.machine.nics.empty());
  for (uint32_t machine = 0; machine < cluster_.machine_count; ++machine) {
    CHECK(links_.size() == number.machine(machine));
    add_machine(links_, cluster_, machine);
  }
  if (number.leaf_count() == 1) return;  // nothing goes up
  for (uint32_t leaf = 0; leaf < number.leaf_count(); ++leaf) {
    const double bytes_per_s = leaf_bytes_per_s(cluster_, leaf) / cluster_.fabric.oversubscription;
    const double latency_s = us(cluster_.fabric.leaf_latency_us);
    links_.push_back(LinkSpec{fmt::format("leaf{}/up", leaf), bytes_per_s, latency_s});
    links_.push_back(LinkSpec{fmt::format("leaf{}/down", leaf), bytes_per_s, latency_s});
  }
}

ClusterLinks::Scope ClusterLinks::scope(const Place& from, const Place& to) const {
  if (from == to) return Scope::kPlace;
  if (from.machine == to.machine)
    return from.kind == PlaceKind::kGpu && to.kind == PlaceKind::kGpu ? Scope::kMachine : Scope::kHost;
  const Numbering number(cluster_);
  return number.leaf(from) == number.leaf(to) ? Scope::kLeaf : Scope::kSpine;
}

std::vector<uint32_t> ClusterLinks::way_out(const Place& from, Scope scope) const {
  CHECK(has(from));
  const Numbering number(cluster_);
  const bool is_gpu = from.kind == PlaceKind::kGpu;
  if (scope == Scope::kPlace) return {is_gpu ? number.hbm(from) : number.host_out(from)};
  if (scope == Scope::kMachine && is_gpu && cluster_.machine.nvlink_gbyte_per_s) return {number.nvlink_out(from)};
  if (scope == Scope::kMachine || scope == Scope::kHost) return {number.host_out(from)};
  std::vector<uint32_t> way = {number.host_out(from), number.nic_out(from.machine, number.nic(from))};
  if (scope == Scope::kSpine && number.leaf_count() > 1) way.push_back(number.leaf_up(number.leaf(from)));
  return way;
}

std::vector<uint32_t> ClusterLinks::way_in(const Place& to, Scope scope) const {
  CHECK(has(to));
  const Numbering number(cluster_);
  const bool is_gpu = to.kind == PlaceKind::kGpu;
  if (scope == Scope::kPlace) return is_gpu ? std::vector<uint32_t>() : std::vector<uint32_t>{number.host_in(to)};
  if (scope == Scope::kMachine && is_gpu && cluster_.machine.nvlink_gbyte_per_s) return {number.nvlink_in(to)};
  if (scope == Scope::kMachine || scope == Scope::kHost) return {number.host_in(to)};
  std::vector<uint32_t> way;
  if (scope == Scope::kSpine && number.leaf_count() > 1) way.push_back(number.leaf_up(number.leaf(to)) + 1);
  way.push_back(number.nic_out(to.machine, number.nic(to)) + 1);
  way.push_back(number.host_in(to));
  return way;
}

std::vector<uint32_t> ClusterLinks::path(const Place& from, const Place& to) const {
  const Scope distance = scope(from, to);
  std::vector<uint32_t> links = way_out(from, distance);
  const std::vector<uint32_t> in = way_in(to, distance);
  links.insert(links.end(), in.begin(), in.end());
  return links;
}

double ClusterLinks::latency_s(const Place& from, const Place& to) const {
  double sum = 0;
  for (const uint32_t link : path(from, to)) sum += links_[link].latency_s;
  return sum;
}

double ClusterLinks::bytes_per_s(const Place& from, const Place& to) const {
  double least = std::numeric_limits<double>::infinity();
  for (const uint32_t link : path(from, to)) least = std::min(least, links_[link].bytes_per_s);
  return least;
}

std::vector<uint32_t> ClusterLinks::named(std::string_view name) const {
  std::vector<uint32_t> found;
  for (uint32_t link = 0; link < links_.size(); ++link) {
    const std::string_view whole = links_[link].name;
    if (whole.starts_with(name) && (whole.size() == name.size() || whole[name.size()] == '/')) found.push_back(link);
  }
  return found;
}

std::optional<uint32_t> ClusterLinks::machine(std::string_view name) const {
  if (!name.starts_with('h')) return std::nullopt;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  // Read back, so that no other spelling is taken for it.
  if (error != std::errc() || number >= cluster_.machine_count || name != fmt::format("h{}", number))
    return std::nullopt;
  return number;
}

std::vector<uint32_t> ClusterLinks::of_machine(uint32_t machine) const {
  CHECK(machine < cluster_.machine_count);
  const Numbering number(cluster_);
  std::vector<uint32_t> links(number.per_machine());
  for (uint32_t i = 0; i < links.size(); ++i) links[i] = number.machine(machine) + i;
  return links;
}

bool ClusterLinks::has(const Place& place) const {
  return place.machine < cluster_.machine_count &&
         place.index < (place.kind == PlaceKind::kGpu ? cluster_.machine.gpu_count : 1);
}

}  // namespace crossdock
