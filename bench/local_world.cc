#include "bench/local_world.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <thread>
#include <utility>

#include "backends/memory/synthetic.h"
#include "base/check.h"
#include "base/steady_clock.h"
#include "model/kv/partition.h"
#include "model/wire/documents.h"

namespace crossdock {

Placement place(const Model& model, const Parallel& parallel, const std::string& name) {
  CacheSchema schema{{LayerGroup{IntervalSet{Range(0, model.layers)}, LiveTokens::all(), {}}}};
  for (const char* component : {"key", "value"})
    schema.groups[0].components.push_back(
        Component{ComponentName(component), "bfloat16", "plain", 2, model.heads, model.head_dim, 1});
  PartitionRequest request;
  request.name = name;
  request.resource = ResourceId("kv:bench");
  request.revision = RevisionId("1");
  request.tp = parallel.tp;
  request.pp = parallel.pp;
  request.layer_count = model.layers;
  Diagnostics diagnostics;
  auto placement = partition(*Valid<CacheSchema>::make(schema, diagnostics), request, diagnostics);
  CHECK(placement.has_value());
  return std::make_shared<const Valid<PlacementManifest>>(std::move(*placement));
}

Snapshot snapshot_of(const PlacementManifest& placement, uint64_t tokens, const std::string& name) {
  SnapshotDescriptor descriptor;
  descriptor.tenant = "bench";
  descriptor.resource = placement.resource;
  descriptor.model_id = "synthetic";
  descriptor.model_revision = "1";
  descriptor.semantic_fingerprint = "synthetic";
  descriptor.cache_schema_digest = digest_of_part(placement.cache_schema);
  descriptor.tokens = Range(0, tokens);
  descriptor.token_fingerprint = name;
  Diagnostics diagnostics;
  auto snapshot = Valid<SnapshotDescriptor>::make(std::move(descriptor), diagnostics);
  CHECK(snapshot.has_value());
  return std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*snapshot));
}

Side make_side(const Placement& placement, const Snapshot& snapshot, const Pool& pool, const std::string& participant) {
  Side side{placement, {}, RegionMemory()};
  const Sha256Digest placement_digest = digest(*placement);
  const Sha256Digest snapshot_digest = digest(*snapshot);
  PoolRequest request;
  request.operation = OperationId("bench");
  request.axis_order = pool.order;
  request.page_tokens = pool.page_tokens;
  request.shuffle_seed = placement_digest.bytes()[0];
  request.instance_prefix = (*placement)->name + "/";
  for (const Part& part : (*placement)->parts) {
    if (!participant.empty() && part.participant.text() != participant) continue;
    Diagnostics diagnostics;
    auto binding = pool_binding(*placement, placement_digest, part.participant, (*snapshot)->tokens, snapshot_digest,
                                request, diagnostics);
    CHECK(binding.has_value());
    side.bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*binding)));
    CHECK(side.memory.add(**side.bindings.back()).ok());
  }
  CHECK(!side.bindings.empty());
  return side;
}

namespace {

// By two threads.
template <class Work>
void for_each_binding(const Side& side, const Work& work) {
  const size_t half = side.bindings.size() / 2;
  std::thread other([&] {
    for (size_t i = 0; i < half; ++i) work(*side.bindings[i]);
  });
  for (size_t i = half; i < side.bindings.size(); ++i) work(*side.bindings[i]);
  other.join();
}

}  // namespace

void fill(const Side& side) {
  for_each_binding(side, [&](const Valid<RuntimeBinding>& binding) {
    write_synthetic(binding, (*side.placement)->cache_schema, kSeed, side.memory);
  });
}

void check_and_clear(const Side& side) {
  for_each_binding(side, [&](const Valid<RuntimeBinding>& binding) {
    CHECK(!take_synthetic(binding, (*side.placement)->cache_schema, kSeed, side.memory));
  });
}

Cost Stopwatch::now() {
  rusage usage = {};
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {static_cast<double>(steady_now().ns()) / 1e9, seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

double Samples::quantile(double part) const {
  CHECK(!values_.empty());
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(std::lround(part * static_cast<double>(sorted.size() - 1)))];
}

double Samples::spread_percent() const { return 100 * (quantile(1) - quantile(0)) / median(); }

uint64_t number_argument(int argc, char** argv, int position, uint64_t otherwise) {
  return position < argc ? std::stoull(argv[position]) : otherwise;
}

}  // namespace crossdock
