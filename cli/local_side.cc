#include "cli/local_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "backends/memory/synthetic.h"
#include "base/number_text.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"
#include "model/wire/documents.h"

namespace crossdock::cli {
namespace {

// Calls work(i) for each i below count, from several threads.
void in_parallel(size_t count, size_t thread_count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(thread_count, count); ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

bool set_paging(const PlacementManifest& placement, uint64_t page_tokens, const std::string& order_option,
                const std::string& order, PoolRequest& request) {
  const Paging paging = placement.paging.value_or(Paging{kUsualPageTokens, AxisOrder::kNhd});
  request.page_tokens = page_tokens != 0 ? page_tokens : paging.page_tokens;
  request.axis_order = parse_axis_order(order).value_or(paging.axis_order);
  if (!placement.paging || request.axis_order == paging.axis_order) return true;
  fail(kBadInput, fmt::format("{} {}: placement '{}' states the axis order {}", order_option, order, placement.name,
                              axis_order_name(paging.axis_order)));
  return false;
}

std::optional<LocalSide> make_local_side(const LocalSideRequest& request, int& exit_code) {
  // Pages of many times the tokens that there are: a pool that is nearly empty.
  constexpr uint64_t kSparsePageRatio = 64;
  const bool is_sparse = request.pool.page_tokens / kSparsePageRatio > (*request.snapshot)->tokens.size();
  LocalSide side{
      request.placement,
      {},
      RegionMemory(request.memory_bytes_max, is_sparse ? RegionMemory::Pages::kSmall : RegionMemory::Pages::kHuge)};
  const Valid<PlacementManifest>& placement = *request.placement;
  const Sha256Digest placement_digest = digest(placement);
  const Sha256Digest snapshot_digest = digest(*request.snapshot);
  PoolRequest pool = request.pool;
  pool.instance_prefix = placement->name + "/";
  for (const Part& part : placement->parts) {
    const std::vector<ParticipantId>& wanted = request.participants;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), part.participant) == wanted.end()) continue;
    Diagnostics diagnostics;
    std::optional<Valid<RuntimeBinding>> binding = pool_binding(
        placement, placement_digest, part.participant, (*request.snapshot)->tokens, snapshot_digest, pool, diagnostics);
    if (!binding) {
      exit_code = fail(diagnostics);
      return std::nullopt;
    }
    side.bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*binding)));
    if (const Status added = side.memory.add(**side.bindings.back()); !added.ok()) {
      exit_code = fail(kFailed, added.message());
      return std::nullopt;
    }
  }
  return side;
}

std::shared_ptr<const Valid<PlacementManifest>> place(const Valid<CacheSchema>& schema, uint64_t layer_count,
                                                      Engine engine, const ParallelSpec& spec,
                                                      const std::string& name) {
  PartitionRequest request;
  request.name = name;
  request.resource = ResourceId("kv:cache");
  request.revision = RevisionId("1");
  request.dp = spec.dp;
  request.pp = spec.pp;
  request.tp = spec.tp;
  request.cp = spec.cp;
  request.layer_count = layer_count;
  request.engine = engine;
  Diagnostics diagnostics(fmt::format("placement '{}'", name));
  std::optional<Valid<PlacementManifest>> placement = partition(schema, request, diagnostics);
  if (!placement) {
    fail(diagnostics);
    return nullptr;
  }
  return std::make_shared<const Valid<PlacementManifest>>(std::move(*placement));
}

std::shared_ptr<const Valid<SnapshotDescriptor>> synthetic_snapshot(const PlacementManifest& placement,
                                                                    const Sha256Digest& schema_digest, Range tokens,
                                                                    uint64_t seed) {
  SnapshotDescriptor descriptor;
  descriptor.tenant = "default";
  descriptor.resource = placement.resource;
  descriptor.model_id = "synthetic";
  descriptor.model_revision = "1";
  descriptor.semantic_fingerprint = "synthetic";
  descriptor.cache_schema_digest = schema_digest;
  descriptor.tokens = tokens;
  descriptor.token_fingerprint = fmt::format("seed-{}", seed);
  Diagnostics diagnostics;
  std::optional<Valid<SnapshotDescriptor>> snapshot =
      Valid<SnapshotDescriptor>::make(std::move(descriptor), diagnostics);
  if (!snapshot) {
    fail(diagnostics);
    return nullptr;
  }
  return std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*snapshot));
}

uint64_t fill(LocalSide& side, uint64_t seed, size_t thread_count, const std::string& label, bool quiet) {
  Progress progress(label, side.memory.total_bytes(), progress_mode(quiet));
  std::atomic<uint64_t> written = 0;
  std::mutex mutex;
  in_parallel(side.bindings.size(), thread_count, [&](size_t i) {
    // Without the lock: each binding touches its own items only (synthetic.h).
    written += write_synthetic(*side.bindings[i], (*side.placement)->cache_schema, seed, side.memory);
    const std::lock_guard lock(mutex);
    progress.update(written);
  });
  return written;
}

SparseGuards guard(const LocalSide& side) {
  return SparseGuards(side.memory, [&](const auto& visit) {
    for (const BindingPointer& binding : side.bindings)
      for_each_extent(*binding, (*side.placement)->cache_schema, side.memory, visit);
  });
}

ContentCheck check_content(const LocalSide& side, const std::vector<BindingPointer>& bindings, uint64_t seed,
                           size_t thread_count, const std::string& label, bool quiet, const SparseGuards* guards) {
  Progress progress(label, side.memory.total_bytes(), progress_mode(quiet));
  ContentCheck check;
  std::mutex mutex;
  in_parallel(bindings.size(), thread_count, [&](size_t i) {
    const std::optional<std::string> wrong =
        take_synthetic(*bindings[i], (*side.placement)->cache_schema, seed, side.memory);
    const std::lock_guard lock(mutex);
    for (const Region& region : (*bindings[i])->regions) check.bytes += region.bytes;
    progress.update(check.bytes);
    if (wrong && check.wrong.empty()) check.wrong = *wrong;
  });
  // After all bindings, since each has left guards in the place of its own items: what is no guard now belongs to no
  // item (I1).
  if (check.wrong.empty()) check.wrong = (guards != nullptr ? guards->check() : check_guards(side.memory)).value_or("");
  return check;
}

std::optional<std::pair<uint64_t, uint64_t>> number_pair(const std::string& text) {
  const size_t colon = text.find(':');
  const std::optional<uint64_t> first = decimal(text.substr(0, colon));
  const std::optional<uint64_t> second = colon == std::string::npos ? first : decimal(text.substr(colon + 1));
  if (!first || !second || *first == 0 || *second == 0) return std::nullopt;
  return std::pair(*first, *second);
}

std::optional<std::pair<AxisOrder, AxisOrder>> order_pair(const std::string& text) {
  const size_t colon = text.find(':');
  const std::optional<AxisOrder> first = parse_axis_order(text.substr(0, colon));
  const std::optional<AxisOrder> second = colon == std::string::npos ? first : parse_axis_order(text.substr(colon + 1));
  if (!first || !second) return std::nullopt;
  return std::pair(*first, *second);
}

}  // namespace crossdock::cli
