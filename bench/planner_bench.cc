// What plans, proofs and lowerings cost, and how each grows when its size doubles. The names say the work:
//   Plan, PlanAndProve    all targets of two placements, parsed and with their digests known
//   Upload, Restore       the same against a store layout
//   Lower, Steps, Flatten edges and bindings -> lowering -> strided steps -> contiguous byte ranges
//   Rebind                the same geometry with other pages
// Counters: edges, steps, ranges and pages of one iteration.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/kv/partition.h"
#include "model/kv/pool_binding.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/store_geometry.h"
#include "planner/kv/verify_plan.h"

namespace crossdock {
namespace {

// The same counters for all, as the CSV that bench/run reads wants them.
void report(benchmark::State& state, uint64_t edges, const StepCounts& counts = {}, uint64_t pages = 0) {
  for (const auto& [name, value] : {std::pair("edges", edges), std::pair("head_rows", counts.row_pieces),
                                    std::pair("steps_planned", counts.steps_planned), std::pair("steps", counts.steps),
                                    std::pair("ranges", counts.ranges), std::pair("pages", pages)})
    state.counters[name] = static_cast<double>(value);
}

struct Shape {
  uint64_t layers, heads, tp, pp, dp = 1, cp = 1;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

Valid<PlacementManifest> placement_of(const Shape& shape) {
  CacheSchema schema{{LayerGroup{IntervalSet{Range(0, shape.layers)}, LiveTokens::all(), {}}}};
  for (const char* name : {"key", "value"})
    schema.groups[0].components.push_back(Component{ComponentName(name), "bfloat16", "plain", 2, shape.heads, 128, 1});
  PartitionRequest request;
  request.name = "bench";
  request.resource = ResourceId("kv:bench");
  request.revision = RevisionId("1");
  request.tp = shape.tp;
  request.pp = shape.pp;
  request.dp = shape.dp;
  request.cp = shape.cp;
  request.layer_count = shape.layers;
  Diagnostics diagnostics;
  return *partition(*Valid<CacheSchema>::make(schema, diagnostics), request, diagnostics);
}

struct Pair {
  explicit Pair(const Shape& from, const Shape& to)
      : source(placement_of(from)),
        target(placement_of(to)),
        source_side(source, digest(source)),
        target_side(target, digest(target)) {}
  Valid<PlacementManifest> source, target;
  PlanSide source_side, target_side;

  Valid<TransferPlan> plan(const PlanOptions& options = {}) const {
    Diagnostics diagnostics;
    auto plan = make_plan(source_side, target_side, options, PlanLimits{}, diagnostics);
    CHECK(plan.has_value());
    return std::move(*plan);
  }
};

const Pair& pair_of(const Shape& from, const Shape& to) {
  static std::map<std::pair<Shape, Shape>, std::unique_ptr<Pair>> pairs;
  std::unique_ptr<Pair>& pair = pairs[{from, to}];
  if (!pair) pair = std::make_unique<Pair>(from, to);
  return *pair;
}

void run_plan(benchmark::State& state, const Pair& pair, const PlanOptions& options, bool prove) {
  size_t edges = 0;
  for (auto _ : state) {
    const Valid<TransferPlan> plan = pair.plan(options);
    edges = plan->edges.size();
    if (!prove) continue;
    Diagnostics diagnostics;
    const PlanProof proof = verify_plan(plan, pair.source_side, pair.target_side, VerifyLimits{}, diagnostics);
    CHECK(proof.complete && diagnostics.empty());
  }
  report(state, edges);
}

// 61 layers, 8 heads, TP8 -> TP4.
void BM_PlanSmall(benchmark::State& state) { run_plan(state, pair_of({61, 8, 8, 1}, {61, 8, 4, 1}), {}, false); }
void BM_PlanAndProveSmall(benchmark::State& state) { run_plan(state, pair_of({61, 8, 8, 1}, {61, 8, 4, 1}), {}, true); }
BENCHMARK(BM_PlanSmall)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_PlanAndProveSmall)->Unit(benchmark::kMicrosecond);

// 128 layers, 128 heads, TP64 PP8 -> TP32 PP16 at 64; the argument is the source's TP.
const Pair& large(int64_t tp) {
  const uint64_t n = static_cast<uint64_t>(tp);
  return pair_of({128, 128, n, 8}, {128, 128, n / 2, 16});
}
void BM_PlanLarge(benchmark::State& state) { run_plan(state, large(state.range(0)), {}, false); }
void BM_PlanAndProveLarge(benchmark::State& state) { run_plan(state, large(state.range(0)), {}, true); }
BENCHMARK(BM_PlanLarge)->Arg(32)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlanAndProveLarge)->Arg(32)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);

void BM_PlanBalanced(benchmark::State& state) {
  PlanOptions options;
  options.selection = SourceSelection::kBalanced;
  run_plan(state, pair_of({80, 8, 16, 1, 4}, {80, 8, 8, 1, 1}), options, false);
}
BENCHMARK(BM_PlanBalanced)->Unit(benchmark::kMicrosecond);

// TP64 x PP8 x DP n -> TP32 x PP16 x DP n: 512 n participants on each side.
void BM_PlanFleet(benchmark::State& state) {
  const uint64_t dp = static_cast<uint64_t>(state.range(0)) / 512;
  run_plan(state, pair_of({128, 128, 64, 8, dp}, {128, 128, 32, 16, dp}), {}, false);
}
void BM_PlanAndProveFleet(benchmark::State& state) {
  const uint64_t dp = static_cast<uint64_t>(state.range(0)) / 512;
  run_plan(state, pair_of({128, 128, 64, 8, dp}, {128, 128, 32, 16, dp}), {}, true);
}
// One latent head that every rank of a TP n group holds, to as many ranks: balanced over all of them.
void BM_PlanLatent(benchmark::State& state) {
  const uint64_t tp = static_cast<uint64_t>(state.range(0));
  PlanOptions options;
  options.selection = SourceSelection::kBalanced;
  run_plan(state, pair_of({61, 1, tp, 1}, {61, 1, tp, 1}), options, false);
}
BENCHMARK(BM_PlanLatent)->Arg(2048)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlanFleet)->Arg(8192)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlanAndProveFleet)->Arg(8192)->Arg(16384)->Unit(benchmark::kMillisecond);

// n ranks of context parallelism with stated intervals of 10 tokens, to n whose intervals begin 5 tokens later: each
// target takes from two sources.
Valid<PlacementManifest> with_intervals(Valid<PlacementManifest> cyclic, uint64_t shift) {
  PlacementManifest placement = *cyclic;
  const uint64_t end = 10 * placement.parts.size();
  placement.tokens = Range(0, end);
  for (size_t i = 0; i < placement.parts.size(); ++i) {
    std::vector<Range> tokens = {Range(10 * i + shift, std::min(10 * i + shift + 10, end))};
    if (10 * i + shift + 10 > end) tokens.emplace_back(0, shift);
    for (Ownership& ownership : placement.parts[i].owns)
      ownership.tokens = TokenIntervals{IntervalSet::from_ranges(tokens)};
  }
  Diagnostics diagnostics;
  return *Valid<PlacementManifest>::make(std::move(placement), diagnostics);
}
void BM_PlanIntervals(benchmark::State& state) {
  const uint64_t cp = static_cast<uint64_t>(state.range(0));
  const Shape shape{1, 1, 1, 1, 1, cp};
  const auto source = with_intervals(placement_of(shape), 0);
  const auto target = with_intervals(placement_of(shape), 5);
  const PlanSide source_side(source, digest(source));
  const PlanSide target_side(target, digest(target));
  size_t edges = 0;
  for (auto _ : state) {
    Diagnostics diagnostics;
    const auto plan = make_plan(source_side, target_side, {}, PlanLimits{}, diagnostics);
    CHECK(plan.has_value());
    edges = (*plan)->edges.size();
  }
  report(state, edges);
}
BENCHMARK(BM_PlanIntervals)->Arg(4000)->Arg(8000)->Unit(benchmark::kMillisecond);

struct StorePair {
  explicit StorePair(const Pair& pair) : layout(make_layout(pair)), side(layout, digest(layout)) {}
  static Valid<StoreLayout> make_layout(const Pair& pair) {
    Diagnostics diagnostics;
    auto layout = layout_of(pair.source, std::nullopt, ObjectOrder::kPlhd, 64, "bench", diagnostics);
    CHECK(layout.has_value());
    return std::move(*layout);
  }
  Valid<StoreLayout> layout;
  PlanSide side;
};

void run_store(benchmark::State& state, const PlanSide& source, const PlanSide& target) {
  size_t edges = 0;
  for (auto _ : state) {
    Diagnostics diagnostics;
    const auto plan = make_plan(source, target, {}, PlanLimits{}, diagnostics);
    CHECK(plan.has_value());
    edges = (*plan)->edges.size();
  }
  report(state, edges);
}
void BM_Upload(benchmark::State& state) {
  const StorePair store(large(state.range(0)));
  run_store(state, large(state.range(0)).source_side, store.side);
}
void BM_Restore(benchmark::State& state) {
  const StorePair store(large(state.range(0)));
  run_store(state, store.side, large(state.range(0)).target_side);
}
BENCHMARK(BM_Upload)->Arg(32)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Restore)->Arg(32)->Arg(64)->Unit(benchmark::kMillisecond);

// NHD pages at random slots, one region for each layer and component, as engines allocate them.
struct PoolShape {
  uint64_t tokens, page_tokens;
  friend auto operator<=>(const PoolShape&, const PoolShape&) = default;

  // No two placements have an instance in common.
  PoolRequest pool(const Sha256Digest& placement_digest, uint64_t seed) const {
    PoolRequest request;
    request.operation = OperationId("op");
    request.page_tokens = page_tokens;
    request.region_per_layer = true;
    request.shuffle_seed = seed;
    request.instance_prefix = placement_digest.hex().substr(0, 8) + "-";
    request.device_kind = "cuda";
    return request;
  }
};

struct Bound {
  Bound(const Valid<PlacementManifest>& placement, const PoolShape& shape, uint64_t seed) : context(placement) {
    Diagnostics diagnostics;
    for (const Part& part : placement->parts) {
      auto binding =
          pool_binding(placement, context.placement_digest(), part.participant, Range(0, shape.tokens), Sha256Digest(),
                       shape.pool(context.placement_digest(), seed + bindings.size()), diagnostics);
      CHECK(binding.has_value());
      bindings.push_back(std::make_unique<Valid<RuntimeBinding>>(std::move(*binding)));
      pointers.push_back(bindings.back().get());
    }
    side = BoundSide::bind(context, pointers, diagnostics);
    if (!side) fmt::print("{}\n", diagnostics.kept().front().to_line());
    CHECK(side.has_value());
  }
  BindingContext context;
  std::vector<std::unique_ptr<Valid<RuntimeBinding>>> bindings;
  std::vector<const Valid<RuntimeBinding>*> pointers;
  std::optional<BoundSide> side;
};

struct LoweringCase {
  LoweringCase(const Pair& pair_in, const PoolShape& shape)
      : pair(pair_in), plan(pair_in.plan()), source(pair_in.source, shape, 1), target(pair_in.target, shape, 1000) {}
  LoweredPlan lowered() const {
    Diagnostics diagnostics;
    auto result = lower(*plan, *source.side, *target.side, LowerOptions{}, LowerLimits{}, diagnostics);
    CHECK(result.has_value());
    return std::move(*result);
  }
  const Pair& pair;
  Valid<TransferPlan> plan;
  Bound source, target;
};

LoweringCase& case_of(const Shape& from, const Shape& to, const PoolShape& shape) {
  static std::map<std::tuple<Shape, Shape, PoolShape>, std::unique_ptr<LoweringCase>> cases;
  std::unique_ptr<LoweringCase>& entry = cases[{from, to, shape}];
  if (!entry) entry = std::make_unique<LoweringCase>(pair_of(from, to), shape);
  return *entry;
}

// 32,768 tokens, 64-token pages at random slots, 32 layers, 8 heads x 128 bf16, NHD, TP4 -> TP2.
LoweringCase& request(int64_t tokens) {
  return case_of({32, 8, 4, 1}, {32, 8, 2, 1}, {static_cast<uint64_t>(tokens), 64});
}
void BM_Lower(benchmark::State& state) {
  const LoweringCase& work = request(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(work.lowered());
  report(state, work.plan->edges.size(), work.lowered().counts());
}
void BM_LowerSteps(benchmark::State& state) {
  const LoweringCase& work = request(state.range(0));
  for (auto _ : state) {
    const LoweredPlan lowered = work.lowered();
    for (const LoweredPair& pair : lowered.pairs()) benchmark::DoNotOptimize(lowered.steps(pair));
  }
  report(state, work.plan->edges.size(), work.lowered().counts());
}
void BM_Flatten(benchmark::State& state) {
  const LoweringCase& work = request(state.range(0));
  const LoweredPlan lowered = work.lowered();
  uint64_t pieces = 0;
  for (auto _ : state) {
    uint64_t sum = 0;
    for (const LoweredPair& pair : lowered.pairs())
      lowered.for_each_step(pair, [&](const CopyStep& step) {
        ByteRanges ranges(step);
        for (ByteCopy piece; ranges.next(piece); ++pieces) sum += piece.source_offset ^ piece.target_offset;
      });
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<int64_t>(pieces));
  report(state, work.plan->edges.size(), lowered.counts());
}
BENCHMARK(BM_Lower)->Arg(16384)->Arg(32768)->Arg(65536)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_LowerSteps)->Arg(16384)->Arg(32768)->Arg(65536)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Flatten)->Arg(32768)->Unit(benchmark::kMillisecond);

// 16-token scattered pages, 61 layers, TP8 -> TP4.
void BM_LowerScattered(benchmark::State& state) {
  const LoweringCase& work = case_of({61, 8, 8, 1}, {61, 8, 4, 1}, {static_cast<uint64_t>(state.range(0)), 16});
  for (auto _ : state) {
    const LoweredPlan lowered = work.lowered();
    uint64_t sum = 0;
    for (const LoweredPair& pair : lowered.pairs())
      lowered.for_each_step(pair, [&](const CopyStep& step) { sum += step.source_offset; });
    benchmark::DoNotOptimize(sum);
  }
  report(state, work.plan->edges.size(), work.lowered().counts());
}
BENCHMARK(BM_LowerScattered)->Arg(65536)->Arg(131072)->Unit(benchmark::kMillisecond);

void BM_Rebind(benchmark::State& state) {
  const PoolShape shape{static_cast<uint64_t>(state.range(0)), 16};
  LoweringCase& work = case_of({61, 8, 8, 1}, {61, 8, 4, 1}, shape);
  LoweredPlan lowered = work.lowered();
  const Bound other_source(work.pair.source, shape, 77);
  const Bound other_target(work.pair.target, shape, 7777);
  bool other = false;
  for (auto _ : state) {
    other = !other;
    CHECK(work.source.side->rebind(other ? other_source.pointers : work.source.pointers));
    CHECK(work.target.side->rebind(other ? other_target.pointers : work.target.pointers));
    lowered = lowered.rebound(*work.plan, *work.source.side, *work.target.side);
  }
  CHECK(work.source.side->rebind(work.source.pointers) && work.target.side->rebind(work.target.pointers));
  // Pages of all participants together.
  const uint64_t pages = shape.tokens / shape.page_tokens * (work.source.pointers.size() + work.target.pointers.size());
  report(state, work.plan->edges.size(), lowered.counts(), pages);
  state.SetItemsProcessed(static_cast<int64_t>(pages) * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(BM_Rebind)->Arg(32768)->Arg(131072)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace crossdock

BENCHMARK_MAIN();
