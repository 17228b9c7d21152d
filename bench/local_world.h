// What the benchmarks of transfers and stores have in common: placements of a model, their memory in this process, and
// figures over repetitions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/memory/region_memory.h"
#include "executor/ports.h"
#include "model/kv/placement.h"
#include "model/kv/pool_binding.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"

namespace crossdock {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSeed = 1;  // of synthetic content

// Keys and values of two bytes an item.
struct Model {
  uint64_t layers = 32;
  uint64_t heads = 8;
  uint64_t head_dim = 128;
  uint64_t token_bytes() const { return 2 * layers * heads * head_dim * 2; }
};

struct Parallel {
  uint64_t tp = 1;
  uint64_t pp = 1;
};

using Placement = std::shared_ptr<const Valid<PlacementManifest>>;
using Snapshot = std::shared_ptr<const Valid<SnapshotDescriptor>>;

Placement place(const Model& model, const Parallel& parallel, const std::string& name);
Snapshot snapshot_of(const PlacementManifest& placement, uint64_t tokens, const std::string& name);

struct Pool {
  AxisOrder order = AxisOrder::kNhd;
  uint64_t page_tokens = 16;
};

// One side of an operation; its pages lie in random slots.
struct Side {
  Placement placement;
  std::vector<BindingPointer> bindings;
  RegionMemory memory;
};
// Of one participant only, when it is named.
Side make_side(const Placement& placement, const Snapshot& snapshot, const Pool& pool,
               const std::string& participant = "");
void fill(const Side& side);             // with synthetic content
void check_and_clear(const Side& side);  // dies when an item is wrong

// Wall clock and processor time of this process, all threads together.
struct Cost {
  double wall_s = 0;
  double cpu_s = 0;
};
class Stopwatch {
 public:
  Stopwatch() : begin_(now()) {}
  Cost cost() const {
    const Cost end = now();
    return {end.wall_s - begin_.wall_s, end.cpu_s - begin_.cpu_s};
  }

 private:
  static Cost now();
  Cost begin_;
};

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  double quantile(double part) const;
  double median() const { return quantile(0.5); }
  // The largest less the smallest over the median, in percent.
  double spread_percent() const;

 private:
  std::vector<double> values_;
};

// A positional number of the command line, or `otherwise`.
uint64_t number_argument(int argc, char** argv, int position, uint64_t otherwise);

}  // namespace crossdock
