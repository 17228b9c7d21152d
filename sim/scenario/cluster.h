// Cluster: what a simulation knows of the machines. A value; wire form: docs/formats/cluster.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/diagnostics.h"
#include "model/wire/decode.h"

namespace crossdock {

struct NicSpec {
  double gbit_per_s = 0;       // each direction
  std::vector<uint32_t> gpus;  // whose traffic goes through it; DRAM and SSD use them all in turn, by machine and index
};

struct MachineSpec {
  uint32_t gpu_count = 0;
  double hbm_gbyte_per_s = 0;                // of one GPU: copies that stay in it
  std::optional<double> nvlink_gbyte_per_s;  // of one GPU, each direction; without: GPUs reach each other over PCIe
  double pcie_gbyte_per_s = 0;               // of one GPU, each direction
  double dram_gbyte_per_s = 0;               // each direction
  double ssd_read_gbyte_per_s = 0;
  double ssd_write_gbyte_per_s = 0;
  double nvlink_latency_us = 0;
  double pcie_latency_us = 0;
  double ssd_latency_us = 0;
  std::vector<NicSpec> nics;
};

// Two levels: leaf switches over machines (or, rail-optimised, one leaf for each NIC number of a group of machines),
// and a spine over leaves whose uplinks are `oversubscription` times too small.
struct FabricSpec {
  uint32_t machines_per_leaf = 1;
  bool rail_optimized = false;
  double oversubscription = 1;
  double nic_latency_us = 0;   // from a NIC to its leaf
  double leaf_latency_us = 0;  // from a leaf to the spine
};

// What an operation costs apart from its bytes.
struct CostSpec {
  double post_us = 0;          // of each operation, before its first byte
  double descriptor_ns = 0;    // of each contiguous range
  double registration_us = 0;  // of each region that is pinned or reserved
  double registration_us_per_gbyte = 0;
  double message_us = 0;       // of each control message, beside the latency of its way
  uint32_t queue_depth = 128;  // operations of one participant under way; more are refused
};

struct Cluster {
  std::string name;
  std::string source;  // where its numbers come from
  uint32_t machine_count = 0;
  MachineSpec machine;
  FabricSpec fabric;
  CostSpec costs;
};

// Faults: the rules of the wire form and of the numbers (all positive and finite, counts within limits, each GPU behind
// one NIC); `document` is what the faults call it.
std::optional<Cluster> read_cluster(std::string_view json, const std::string& document, Diagnostics& diagnostics);
// The same of one that stands, with its header, inside the document that the faults are of.
std::optional<Cluster> decode_cluster(const JsonCursor& cursor);
// Canonical text; read_cluster() of it gives the same cluster.
std::string write_cluster(const Cluster& cluster);

}  // namespace crossdock
