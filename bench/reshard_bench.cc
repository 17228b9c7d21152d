// What a live transfer costs, from the first pin to the last word, against a plain loop of memcpy over the same pieces
// in the same order by as many threads: reshard_bench [REPETITIONS [MIB [THREADS]]] Each line is a case of MIB (512) of
// synthetic cache; the two are measured in turn. The target is checked at the end.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "backends/local/local_transfer.h"
#include "base/check.h"
#include "bench/local_world.h"
#include "executor/kv/kv_transfer.h"

namespace crossdock {
namespace {

struct Case {
  const char* name;
  Model model;
  Parallel from, to;
  Pool source, target;
};

const Pool kPages64{AxisOrder::kNhd, 64};
const Model kLlama8B{32, 8, 128};
const Model kLlama70B{80, 8, 128};

const Case kCases[] = {
    {"8B TP8 -> TP4 PP2", kLlama8B, {8}, {4, 2}, kPages64, kPages64},
    {"70B TP8 -> TP4 PP2", kLlama70B, {8}, {4, 2}, kPages64, kPages64},
    {"8B TP4 -> TP2", kLlama8B, {4}, {2}, kPages64, kPages64},
    {"8B TP4 NHD -> HND", kLlama8B, {4}, {4}, kPages64, {AxisOrder::kHnd, 64}},
    {"8B TP4 page 64 -> 16", kLlama8B, {4}, {4}, kPages64, {AxisOrder::kNhd, 16}},
    {"rows of 64 B, TP8 -> TP4", {32, 8, 32}, {8}, {4}, kPages64, kPages64},
    {"rows of 128 B, TP8 -> TP4", {32, 8, 64}, {8}, {4}, kPages64, kPages64},
    {"rows of 256 B, TP8 -> TP4", {32, 8, 128}, {8}, {4}, kPages64, kPages64},
    {"rows of 1 KiB, TP8 -> TP4", {32, 32, 128}, {8}, {4}, kPages64, kPages64},
    {"rows of 4 KiB, TP8 -> TP4", {16, 128, 128}, {8}, {4}, kPages64, kPages64},
};

LocalTransferReport transfer(const Side& source, const Side& target, const Snapshot& snapshot, size_t threads) {
  MemoryRegistry registry;
  LocalRuntime runtime(registry);
  for (const BindingPointer& binding : source.bindings) runtime.add(Role::kSource, binding, source.memory);
  for (const BindingPointer& binding : target.bindings) runtime.add(Role::kTarget, binding, target.memory);
  LocalTransferRequest request;
  request.coordinator.operation = OperationId("bench");
  request.coordinator.attempt = AttemptId("bench");
  request.coordinator.instance = InstanceId("bench");
  KvTransfer transfer;
  transfer.documents = TransferDocuments{source.placement, target.placement, snapshot};
  request.coordinator.planner = std::make_shared<const KvTransferPlanner>(std::move(transfer));
  request.participant.window = WindowLimits{2 * threads, 256 * kMiB};
  request.participant.batch.bytes_max = 32 * kMiB;
  request.source_bindings = any_bindings(source.bindings);
  request.target_bindings = any_bindings(target.bindings);
  request.thread_count = threads;
  LocalTransferReport report = run_local_transfer(request, runtime, registry, DriveHooks());
  CHECK(report.outcome.status().ok());
  return report;
}

// The batches of a job as memory of both sides, one of each source in turn, as the pool of the transfer gets them.
class Pieces {
 public:
  Pieces(const TransferJob& job, const Side& source, const Side& target) {
    std::vector<std::vector<StepSpan>> of_source;
    for (const BindingPointer& binding : source.bindings) {
      std::vector<StepSpan>& batches = of_source.emplace_back();
      for (const JobPair& pair : pairs_of(job, Role::kSource, (*binding)->participant)) {
        Diagnostics diagnostics;
        std::optional<PairWork> work =
            pair_work(*job.copies, *pair.pair, StepSplit(), BatchLimits{1024, 32 * kMiB}, diagnostics);
        CHECK(work.has_value());
        batches.insert(batches.end(), work->batches.begin(), work->batches.end());
      }
    }
    bool any = true;
    for (size_t turn = 0; std::exchange(any, false); ++turn)
      for (const std::vector<StepSpan>& batches : of_source)
        if (turn < batches.size()) {
          batches_.push_back(resolve(batches[turn], source, target));
          any = true;
        }
  }

  void copy(size_t threads) const {
    std::atomic<size_t> next = 0;
    const auto run = [&] {
      for (size_t i = next++; i < batches_.size(); i = next++)
        for (const Piece& piece : batches_[i]) copy_axes(*piece.step, piece.step->axes(), piece.source, piece.target);
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads; ++i) others.emplace_back(run);
    run();
    for (std::thread& other : others) other.join();
  }

 private:
  struct Piece {
    const CopyStep* step;
    const std::byte* source;
    std::byte* target;
  };

  std::vector<Piece> resolve(const StepSpan& batch, const Side& source, const Side& target) {
    spans_.push_back(batch);
    std::vector<Piece> pieces;
    for (const CopyStep& step : batch.steps())
      pieces.push_back(
          {&step, source.memory.find(batch.work().source_regions[step.source_region]).data() + step.source_offset,
           target.memory.find(batch.work().target_regions[step.target_region]).data() + step.target_offset});
    return pieces;
  }

  static void copy_axes(const CopyStep& step, std::span<const CopyAxis> axes, const std::byte* source,
                        std::byte* target) {
    if (axes.empty()) {
      std::memcpy(target, source, step.bytes);
      return;
    }
    const CopyAxis& axis = axes.front();
    if (axes.size() == 1) {
      for (uint64_t i = 0; i < axis.extent; ++i)
        std::memcpy(target + i * axis.target_stride_bytes, source + i * axis.source_stride_bytes, step.bytes);
      return;
    }
    for (uint64_t i = 0; i < axis.extent; ++i)
      copy_axes(step, axes.subspan(1), source + i * axis.source_stride_bytes, target + i * axis.target_stride_bytes);
  }

  std::vector<StepSpan> spans_;  // keep the steps
  std::vector<std::vector<Piece>> batches_;
};

double seconds(Duration duration) { return static_cast<double>(duration.ns()) / 1e9; }

void measure(const Case& each, uint64_t mib, const std::vector<size_t>& thread_counts, uint64_t repetitions) {
  const uint64_t tokens = mib * kMiB / each.model.token_bytes() / 64 * 64;
  const Placement from = place(each.model, each.from, "source");
  const Snapshot snapshot = snapshot_of(**from, tokens, "bench");
  const Side source = make_side(from, snapshot, each.source);
  const Side target = make_side(place(each.model, each.to, "target"), snapshot, each.target);
  fill(source);
  const LocalTransferReport first = transfer(source, target, snapshot, thread_counts.front());
  const Pieces pieces(*first.job, source, target);
  const auto bytes = static_cast<double>(first.copied_bytes);
  const StepCounts counts = first.job->copies->counts();
  for (const size_t threads : thread_counts) {
    Samples memcpy_rate, rate, ratio, whole_rate, whole_ratio;
    for (uint64_t i = 0; i < repetitions; ++i) {
      double memcpy_s = 0;
      LocalTransferReport report;
      const std::function<void()> halves[] = {[&] {
                                                const Stopwatch watch;
                                                pieces.copy(threads);
                                                memcpy_s = watch.cost().wall_s;
                                              },
                                              [&] { report = transfer(source, target, snapshot, threads); }};
      halves[i % 2]();
      halves[1 - i % 2]();
      memcpy_rate.add(bytes / memcpy_s / 1e9);
      rate.add(bytes / seconds(report.copying) / 1e9);
      ratio.add(memcpy_s / seconds(report.copying));
      whole_rate.add(bytes / seconds(report.total) / 1e9);
      whole_ratio.add(memcpy_s / seconds(report.total));
    }
    fmt::print("{},{},{},{:.2f},{:.2f},{:.2f},{:.0f} %,{:.2f},{:.2f},{:.0f} %\n", each.name,
               counts.bytes / counts.ranges, threads, memcpy_rate.median(), rate.median(), ratio.median(),
               ratio.spread_percent(), whole_rate.median(), whole_ratio.median(), whole_ratio.spread_percent());
    std::fflush(stdout);
  }
  check_and_clear(target);
}

int run(int argc, char** argv) {
  const uint64_t repetitions = number_argument(argc, argv, 1, 5);
  const uint64_t mib = number_argument(argc, argv, 2, 512);
  std::vector<size_t> thread_counts = {1, 2};
  if (argc > 3) thread_counts = {number_argument(argc, argv, 3, 1)};
  fmt::print("work,piece B,threads,memcpy GB/s,copying GB/s,ratio,spread,whole GB/s,ratio,spread\n");
  for (const Case& each : kCases) measure(each, mib, thread_counts, repetitions);
  return 0;
}

}  // namespace
}  // namespace crossdock

int main(int argc, char** argv) { return crossdock::run(argc, argv); }
