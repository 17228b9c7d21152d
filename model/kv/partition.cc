#include "model/kv/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/checked.h"

// A placement from sizes. Layers are cut by pipeline stage, heads by tensor-parallel rank, tokens by context-parallel
// rank; a participant owns the product. So coverage holds by construction, and Valid<PlacementManifest> proves it once
// more.
namespace crossdock {
namespace {

// Bounds the memory before anything is made: sizes come from the command line.
constexpr uint64_t kOwnershipsMax = uint64_t{1} << 23;

struct HeadShare {
  Range heads;
  ReplicaOrdinal replica;
};

class Partitioner {
 public:
  Partitioner(const Valid<CacheSchema>& schema, const PartitionRequest& request, Diagnostics& diagnostics)
      : schema_(schema), request_(request), diagnostics_(diagnostics) {}

  std::optional<Valid<PlacementManifest>> run() {
    const uint64_t diagnostics_before = diagnostics_.total();
    check_sizes();
    // The loops below divide by sizes and run over them.
    if (diagnostics_.total() != diagnostics_before) return std::nullopt;
    find_stages();
    find_head_shares();
    if (diagnostics_.total() != diagnostics_before) return std::nullopt;

    PlacementManifest placement;
    placement.name = request_.name;
    placement.resource = request_.resource;
    placement.revision = request_.revision;
    placement.cache_schema = *schema_;
    placement.paging = request_.paging;
    placement.topology.sizes = {.dp = request_.dp, .pp = request_.pp, .tp = request_.tp, .cp = request_.cp, .ep = 1};
    std::map<std::tuple<uint64_t, uint64_t, uint64_t>, std::vector<Ownership>> owns_of;  // equal for all dp ranks
    for (uint64_t dp = 0; dp < request_.dp; ++dp)
      for (uint64_t pp = 0; pp < request_.pp; ++pp)
        for (uint64_t tp = 0; tp < request_.tp; ++tp)
          for (uint64_t cp = 0; cp < request_.cp; ++cp) {
            const ParallelAxes rank{.dp = dp, .pp = pp, .tp = tp, .cp = cp, .ep = 0};
            std::vector<Ownership>& owns = owns_of[{pp, tp, cp}];
            if (dp == 0) owns = ownerships_of(rank);
            placement.topology.participants.push_back(Participant{name_of(rank), rank});
            placement.parts.push_back(Part{name_of(rank), owns});
          }
    return Valid<PlacementManifest>::make(std::move(placement), diagnostics_);
  }

 private:
  void refuse(std::string message) { diagnostics_.add(Rule::kPartition, "", std::move(message)); }

  void check_sizes() {
    const std::pair<std::string_view, uint64_t> sizes[] = {
        {"dp", request_.dp}, {"pp", request_.pp}, {"tp", request_.tp}, {"cp", request_.cp}};
    for (const auto& [name, size] : sizes)
      if (size == 0) refuse(fmt::format("{} 0 is below 1", name));
    if (request_.cp_block_tokens == 0) refuse("a context-parallel block of 0 tokens is below 1");
    const auto count = (Checked(request_.dp) * request_.pp * request_.tp * request_.cp).value();
    if (!count || *count > kParticipantsMax)
      refuse(fmt::format("dp {} x pp {} x tp {} x cp {} are more than {} participants", request_.dp, request_.pp,
                         request_.tp, request_.cp, kParticipantsMax));
    check_heads_per_rank();
    uint64_t component_count = 0;  // an ownership each, at most, for each participant
    for (const LayerGroup& group : schema_->groups) component_count += group.components.size();
    const auto ownership_count = count ? checked_mul(*count, component_count) : std::nullopt;
    if (!ownership_count || *ownership_count > kOwnershipsMax)
      refuse(fmt::format("{} components on each of the participants are more than {} ownerships", component_count,
                         kOwnershipsMax));
    const std::vector<uint64_t>& stages = request_.layers_per_stage;
    if (stages.empty()) return;
    if (stages.size() != request_.pp)
      refuse(fmt::format("{} stages are given layers, but pp is {}", stages.size(), request_.pp));
    if (sum_of(stages) != request_.layer_count)
      refuse(fmt::format("the stages have {} layers together, the model has {}", fmt::join(stages, "+"),
                         request_.layer_count));
  }

  // Heads that fit no component would otherwise be left out silently.
  void check_heads_per_rank() {
    const std::vector<uint64_t>& heads = request_.heads_per_rank;
    if (heads.empty()) return;
    std::set<uint64_t> head_counts;
    for (const LayerGroup& group : schema_->groups)
      for (const Component& component : group.components) head_counts.insert(component.head_count);
    if (request_.tp == 0 || heads.size() % request_.tp != 0)
      return refuse(fmt::format("{} ranks are given heads, but tp is {}", heads.size(), request_.tp));
    for (const std::span<const uint64_t> list : head_lists()) {
      const std::optional<uint64_t> sum = sum_of(list);
      if (!sum || !head_counts.contains(*sum))
        refuse(fmt::format("the ranks have {} heads together, the components have {}", fmt::join(list, "+"),
                           fmt::join(head_counts, " or ")));
    }
  }

  // Each of tp numbers.
  std::vector<std::span<const uint64_t>> head_lists() const {
    std::vector<std::span<const uint64_t>> lists;
    for (size_t begin = 0; begin < request_.heads_per_rank.size(); begin += request_.tp)
      lists.push_back(std::span(request_.heads_per_rank).subspan(begin, request_.tp));
    return lists;
  }

  static std::optional<uint64_t> sum_of(std::span<const uint64_t> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), Checked(0)).value();
  }

  void find_stages() {
    const std::vector<uint64_t> counts = request_.layers_per_stage.empty()
                                             ? split_layers(request_.engine, request_.layer_count, request_.pp)
                                             : request_.layers_per_stage;
    uint64_t begin = 0;
    for (const uint64_t count : counts) {
      // Fits: check_sizes() compared the sum of all stages with layer_count in checked arithmetic.
      stages_.push_back(Range(begin, begin + count));
      begin += count;
    }
    // Layers of the schema past layer_count, as those of a draft model, belong to the last stage.
    stages_.back() = Range(stages_.back().begin(), std::max(begin, schema_->layers().hull().end()));
  }

  // By head count and not by component: components of equal head count are split alike.
  void find_head_shares() {
    for (const LayerGroup& group : schema_->groups)
      for (const Component& component : group.components)
        if (!shares_.contains(component.head_count)) shares_[component.head_count] = share_heads(component);
  }

  // One share for each tensor-parallel rank.
  std::vector<HeadShare> share_heads(const Component& component) {
    const uint64_t head_count = component.head_count;
    const uint64_t tp = request_.tp;
    std::vector<HeadShare> shares;
    const std::vector<std::span<const uint64_t>> lists = head_lists();
    const auto stated = std::find_if(lists.begin(), lists.end(),
                                     [&](std::span<const uint64_t> list) { return sum_of(list) == head_count; });
    if (stated != lists.end()) {
      uint64_t begin = 0;
      for (const uint64_t count : *stated) {
        shares.push_back(HeadShare{Range(begin, begin + count), {}});
        begin += count;
      }
    } else if (head_count % tp == 0) {
      for (uint64_t rank = 0; rank < tp; ++rank)
        shares.push_back(HeadShare{Range(rank * (head_count / tp), (rank + 1) * (head_count / tp)), {}});
    } else if (tp % head_count == 0) {
      // More ranks than heads: neighbouring ranks are replicas of one head, as engines do with grouped-query attention.
      const uint64_t replicas = tp / head_count;
      for (uint64_t rank = 0; rank < tp; ++rank)
        shares.push_back(HeadShare{Range(rank / replicas, rank / replicas + 1), {rank % replicas, replicas}});
    } else {
      refuse(
          fmt::format("{} heads (component {}) cannot be shared out over tp {}: neither divides the other; state the "
                      "heads of each rank",
                      head_count, component.name.text(), tp));
    }
    return shares;
  }

  // A state has no tokens to share out: every context-parallel rank keeps all of it.
  // Ordinals stay a complete set: (head replica, cp rank) is counted as one number.
  std::pair<TokenOwnership, ReplicaOrdinal> share_tokens(const Component& component, ReplicaOrdinal replica,
                                                         uint64_t cp) const {
    if (request_.cp == 1) return {AllTokens(), replica};
    if (component.is_state()) return {AllTokens(), {replica.ordinal * request_.cp + cp, replica.count * request_.cp}};
    return {CyclicTokens{request_.cp_block_tokens, request_.cp, IntervalSet{Range(cp, cp + 1)}}, replica};
  }

  // Ownerships that differ only in layers are one, and so are components that are shared out alike: the placement stays
  // as small as the model is regular.
  std::vector<Ownership> ownerships_of(const ParallelAxes& rank) const {
    std::map<Ownership, std::vector<Range>> layers_of;  // by the rest of the ownership
    const IntervalSet stage = stages_[rank.pp].empty() ? IntervalSet() : IntervalSet{stages_[rank.pp]};
    for (const LayerGroup& group : schema_->groups) {
      const IntervalSet layers = group.layers.intersect(stage);
      if (layers.empty()) continue;
      std::map<Ownership, std::vector<ComponentName>> components_of;  // of the group, by how they are shared out
      for (const Component& component : group.components) {
        const HeadShare& share = shares_.at(component.head_count)[rank.tp];
        if (share.heads.empty()) continue;
        auto [tokens, replica] = share_tokens(component, share.replica, rank.cp);
        components_of[Ownership{{}, {}, IntervalSet{share.heads}, std::move(tokens), replica}].push_back(
            component.name);
      }
      for (auto& [rest, components] : components_of) {
        Ownership ownership = rest;
        ownership.components = std::move(components);
        std::vector<Range>& ranges = layers_of[std::move(ownership)];
        ranges.insert(ranges.end(), layers.ranges().begin(), layers.ranges().end());
      }
    }
    std::vector<Ownership> owns;
    for (auto& [rest, ranges] : layers_of) {
      owns.push_back(rest);
      owns.back().layers = IntervalSet::from_ranges(std::move(ranges));
    }
    return owns;
  }

  // Axes of size 1 are left out, so names stay short; within one placement they are still different.
  ParticipantId name_of(const ParallelAxes& rank) const {
    std::string name = fmt::format("p{}-t{}", rank.pp, rank.tp);
    if (request_.dp > 1) name = fmt::format("d{}-{}", rank.dp, name);
    if (request_.cp > 1) name += fmt::format("-c{}", rank.cp);
    return ParticipantId(std::move(name));
  }

  const Valid<CacheSchema>& schema_;
  const PartitionRequest& request_;
  Diagnostics& diagnostics_;
  std::vector<Range> stages_;
  std::map<uint64_t, std::vector<HeadShare>> shares_;  // by head count
};

}  // namespace

std::optional<Valid<PlacementManifest>> partition(const Valid<CacheSchema>& schema, const PartitionRequest& request,
                                                  Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("placement '{}'", request.name));
  return Partitioner(schema, request, diagnostics).run();
}

std::vector<uint64_t> split_layers(Engine engine, uint64_t layer_count, uint64_t stage_count) {
  CHECK(stage_count >= 1);
  std::vector<uint64_t> counts(stage_count, layer_count / stage_count);
  const uint64_t rest = layer_count % stage_count;  // below stage_count, so each stage gets one more at most
  for (uint64_t i = 0; i < rest; ++i) {
    const uint64_t from_back = engine == Engine::kVllm ? i + 2 : i + 1;
    ++counts[stage_count - from_back];
  }
  return counts;
}

}  // namespace crossdock
