#include "sim/scenario/cluster_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/check.h"

namespace crossdock {
namespace {

// The model of a machine: a GPU has its memory, a pair of NVLink directions and a pair of PCIe directions; DRAM, disk
// and each NIC have a pair. Not modelled: PCIe switches that GPUs share, NUMA, and the paths inside of a leaf or of the
// spine, which count as never blocked. A leaf's way to the spine is one pair of links with the sum of its NICs divided
// by the oversubscription, so a hash that loads uplinks unevenly is not modelled either.
//
// Numbers are computed and not looked up: a cluster of thousands of machines has a million links, and each flow asks
// for its way. The counts cannot overflow 32 bits, by the limits of cluster.cc.

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
    // DRAM and disk use the NICs in turn, by machine, so that no NIC number carries all of them.
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

ClusterLinks::ClusterLinks(const Cluster& cluster) : cluster_(cluster) {
  const Numbering number(cluster_);
  CHECK(cluster_.machine_count > 0 && !cluster_.machine.nics.empty());
  for (uint32_t machine = 0; machine < cluster_.machine_count; ++machine) {
    // Numbering and the order of add_machine() are two descriptions of one thing; this keeps them together.
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
  // A copy within GPU memory reads and writes the same memory: one link, counted once.
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

// Each NIC counts once on the way out and once on the way in, and so does each leaf link.
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
    // Up to a '/', so that "h1" does not name the links of "h10".
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
