// The links of a cluster, and the ways between its places.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/cluster.h"

namespace crossdock {

// One direction of something that bytes pass through; full duplex is two of them.
struct LinkSpec {
  std::string name;  // "h3/nic0/out"
  double bytes_per_s = 0;
  double latency_s = 0;
};

enum class PlaceKind { kGpu, kDram, kSsd };

// Where bytes lie: "h3/gpu5", "h3/dram", "h3/ssd".
struct Place {
  uint32_t machine = 0;
  PlaceKind kind = PlaceKind::kGpu;
  uint32_t index = 0;  // of the GPU; 0 for the others

  std::string to_text() const;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class ClusterLinks {
 public:
  explicit ClusterLinks(const Cluster& cluster);

  const std::vector<LinkSpec>& links() const { return links_; }
  // How far apart two places are decides which links lie between them; the way from A to B is the way out of A and the
  // way into B at that scope. kMachine: two GPUs of a machine; kHost: two other places of a machine, over its memory.
  enum class Scope { kPlace, kMachine, kHost, kLeaf, kSpine };
  Scope scope(const Place& from, const Place& to) const;
  std::vector<uint32_t> way_out(const Place& from, Scope scope) const;  // numbers in links()
  std::vector<uint32_t> way_in(const Place& to, Scope scope) const;
  std::vector<uint32_t> path(const Place& from, const Place& to) const;
  double latency_s(const Place& from, const Place& to) const;
  // Without other traffic.
  double bytes_per_s(const Place& from, const Place& to) const;

  // What a fault names: links of "h3" (all of a machine), "h3/nic0", "h3/gpu5/nvlink", "leaf2", or one link by its
  // name. Empty when there is none.
  std::vector<uint32_t> named(std::string_view name) const;
  // Of "h3"; empty when it is none of the cluster.
  std::optional<uint32_t> machine(std::string_view name) const;
  std::vector<uint32_t> of_machine(uint32_t machine) const;
  bool has(const Place& place) const;

 private:
  Cluster cluster_;
  std::vector<LinkSpec> links_;
};

}  // namespace crossdock
