#include "planner/kv/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "model/text.h"
#include "planner/kv/balance.h"
#include "planner/kv/claims.h"
#include "planner/kv/source_index.h"
#include "planner/kv/tensors.h"
#include "planner/kv/token_joiner.h"
#include "planner/kv/verify_plan.h"

// What is computed, with the sets of docs/architecture.md, "Definitions": for each target q a set of edges such that
//
//   the union of Elements(e) over the edges e of q is Required(q)
//   the sets Elements(e) of one q are disjoint, and Elements(e) is a subset of Owned(source of e)
//
// In one data-parallel rank each element has one owner or exactly the declared replicas 0 to n-1 (proved when the
// placement was read: rules coverage-gap, coverage-overlap, replica-set). So taking one replica by its ordinal for each
// element gives exactly this, and there is nothing left to search for. Neither elements nor layers x heads x tokens are
// enumerated. A claim is a box (layer set, head interval, token ownership), and an edge is the intersection of two
// claims. Layer sets and ownerships are interned, so intersecting them is done once for each pair of different ones and
// not once for each pair of participants. The planner does not prove its result: verify_plan() does, by another way
// (planner/kv/prepare.h).
namespace crossdock {
namespace {

// A manifest as a target has no kind: it describes objects that are published and no longer written.
std::optional<PlanKind> kind_of(const PlanSide& source, const PlanSide& target) {
  if (target.kind() == SideKind::kStoreLayout && source.kind() == SideKind::kRuntime) return PlanKind::kUpload;
  if (target.kind() != SideKind::kRuntime) return std::nullopt;
  return source.kind() == SideKind::kRuntime ? PlanKind::kLive : PlanKind::kRestore;
}

// Joins edges that differ in nothing but their layers, then those whose heads touch.
// Both joins leave the union of Elements(e) as it is, since edges of one target are disjoint (I1). Layers first, since
// pipeline stages and alternating windows cut there most often. The order of edges is that of a sort over all their
// fields, so it does not depend on how they were found (I7). O(E log E).
void merge_edges(TransferPlan& plan, Interner<IntervalSet>& layer_sets) {
  const auto all_but_layers = [](const Edge& e) {
    return std::tie(e.target, e.source, e.tensor, e.heads, e.token_set);
  };
  std::sort(plan.edges.begin(), plan.edges.end(),
            [&](const Edge& a, const Edge& b) { return all_but_layers(a) < all_but_layers(b); });
  std::vector<Edge> merged;
  for (size_t begin = 0; begin < plan.edges.size();) {
    size_t end = begin + 1;
    while (end < plan.edges.size() && all_but_layers(plan.edges[end]) == all_but_layers(plan.edges[begin])) ++end;
    merged.push_back(plan.edges[begin]);
    if (end > begin + 1) {
      std::vector<Range> ranges;
      for (size_t i = begin; i < end; ++i) {
        const std::vector<Range>& own = layer_sets[plan.edges[i].layer_set].ranges();
        ranges.insert(ranges.end(), own.begin(), own.end());
      }
      merged.back().layer_set = layer_sets.intern(IntervalSet::from_ranges(std::move(ranges)));
    }
    begin = end;
  }
  const auto all_but_heads = [](const Edge& e) {
    return std::tie(e.target, e.source, e.tensor, e.layer_set, e.token_set);
  };
  std::sort(merged.begin(), merged.end(), [&](const Edge& a, const Edge& b) {
    return std::pair(all_but_heads(a), a.heads) < std::pair(all_but_heads(b), b.heads);
  });
  plan.edges.clear();
  for (const Edge& edge : merged) {
    if (!plan.edges.empty() && all_but_heads(plan.edges.back()) == all_but_heads(edge) &&
        plan.edges.back().heads.end() == edge.heads.begin())
      plan.edges.back().heads = Range(plan.edges.back().heads.begin(), edge.heads.end());
    else
      plan.edges.push_back(edge);
  }
}

class Planner {
 public:
  Planner(const PlanSide& source, const PlanSide& target, const PlanOptions& options, const PlanLimits& limits,
          Diagnostics& diagnostics, BalanceReport* report)
      : source_(source),
        target_(target),
        options_(options),
        limits_(limits),
        diagnostics_(diagnostics),
        report_(report) {}

  std::optional<Valid<TransferPlan>> run() {
    // Cheap checks first, so that a wrong pair of documents is refused before anything is expanded.
    diagnostics_.set_document("plan");
    const uint64_t diagnostics_before = diagnostics_.total();
    if (!check_sides() || !choose_sources() || !choose_targets()) return std::nullopt;
    std::optional<CommonTensors> common = match_tensors(source_, target_, options_, diagnostics_);
    if (!common || !check_tokens(*common) || !check_pages(*common)) return std::nullopt;

    plan_.source_digest = source_.digest();
    plan_.target_digest = target_.digest();
    plan_.snapshot_tokens = options_.snapshot_tokens;
    plan_.tokens = options_.tokens;
    plan_.live_page_tokens = options_.live_page_tokens;
    std::vector<Claim> source_claims = collect_claims(source_, ClaimSide::kSource, source_owners_, *common, numbers_);
    for (Claim& claim : source_claims) claim.dp = dp_number_[claim.owner];
    const std::vector<Claim> target_claims =
        collect_claims(target_, ClaimSide::kTarget, target_owners_, *common, numbers_);
    // Only after collect_claims(), which looks tensors up by name in `common`.
    plan_.tensors = std::move(common->tensors);

    SourceIndex index(std::move(source_claims), numbers_);
    TokenJoiner joiner(numbers_, plan_.tensors, index.claims(), limits_.token_range_count_max);
    std::vector<ChosenEdge> edges = join(index, target_claims, joiner);
    if (diagnostics_.total() != diagnostics_before) return std::nullopt;
    return finish(std::move(edges), target_claims, joiner);
  }

 private:
  bool check_sides() {
    const std::optional<PlanKind> kind = kind_of(source_, target_);
    if (!kind) {
      diagnostics_.add(Rule::kPlanIdentity, "",
                       fmt::format("cannot plan from {} to {}", source_.label(), target_.label()));
      return false;
    }
    plan_.kind = *kind;
    if (source_.resource() != nullptr && target_.resource() != nullptr && *source_.resource() != *target_.resource())
      diagnostics_.add(Rule::kPlanIdentity, source_.label(),
                       fmt::format("is about resource '{}', {} about '{}'", source_.resource()->text(), target_.label(),
                                   target_.resource()->text()));
    else if (source_.revision() != nullptr && target_.revision() != nullptr &&
             *source_.revision() != *target_.revision())
      diagnostics_.add(Rule::kPlanIdentity, source_.label(),
                       fmt::format("is about revision '{}', {} about '{}'", source_.revision()->text(), target_.label(),
                                   target_.revision()->text()));
    else if (source_.kind() == SideKind::kStoreManifest && options_.snapshot_tokens != source_.tokens())
      // What a manifest holds of a window follows from its own snapshot; with another interval Live would be another
      // set.
      diagnostics_.add(Rule::kPlanIdentity, source_.label(),
                       fmt::format("holds tokens {}, and the plan is about {}", range_text(source_.tokens()),
                                   options_.snapshot_tokens ? range_text(*options_.snapshot_tokens) : "no snapshot"));
    else
      return true;
    return false;
  }

  // The owners to take from, and the numbers of the data-parallel ranks that they have.
  // Ranks are numbered among those that may serve, so that `rank mod count` means the same with gaps in the ranks.
  bool choose_sources() {
    std::set<uint64_t> ranks;
    if (!choose_owners(source_, options_.sources, source_owners_) ||
        !choose_rank(source_, options_.source_dp, source_owners_, ranks))
      return false;
    const std::vector<uint64_t> sorted(ranks.begin(), ranks.end());
    dp_count_ = static_cast<uint32_t>(sorted.size());
    dp_number_.resize(source_.owners().size());
    for (const uint32_t owner : source_owners_)
      dp_number_[owner] = static_cast<uint32_t>(
          std::lower_bound(sorted.begin(), sorted.end(), source_.owners()[owner].dp) - sorted.begin());
    return true;
  }

  bool choose_targets() {
    std::set<uint64_t> ranks;
    return choose_owners(target_, options_.targets, target_owners_) &&
           choose_rank(target_, options_.target_dp, target_owners_, ranks);
  }

  // Keeps the owners of the wanted data-parallel rank only; `ranks` gets those that are left.
  bool choose_rank(const PlanSide& side, std::optional<uint64_t> wanted, std::vector<uint32_t>& owners,
                   std::set<uint64_t>& ranks) {
    for (const uint32_t owner : owners) ranks.insert(side.owners()[owner].dp);
    if (!wanted) return true;
    if (!ranks.contains(*wanted)) {
      refuse_dp(side, *wanted, ranks);
      return false;
    }
    ranks = {*wanted};
    std::erase_if(owners, [&](uint32_t owner) { return side.owners()[owner].dp != *wanted; });
    return true;
  }

  bool choose_owners(const PlanSide& side, const std::vector<PlanEnd>& only, std::vector<uint32_t>& owners) {
    if (only.empty()) {
      owners.resize(side.owners().size());
      for (uint32_t i = 0; i < owners.size(); ++i) owners[i] = i;
      return true;
    }
    for (const PlanEnd& end : only) {
      const PlanOwner* owner = side.find(end.text());
      if (owner == nullptr) {
        diagnostics_.add(Rule::kPlanParticipant, side.label(), fmt::format("has no '{}'", end.text()));
        return false;
      }
      owners.push_back(static_cast<uint32_t>(owner - side.owners().data()));
    }
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    return true;
  }

  void refuse_dp(const PlanSide& side, uint64_t wanted, const std::set<uint64_t>& ranks) {
    std::vector<Range> there;
    for (const uint64_t rank : ranks) there.emplace_back(rank, rank + 1);
    diagnostics_.add(Rule::kPlanParticipant, side.label(),
                     fmt::format("has no participant of data-parallel rank {}; its ranks: {}", wanted,
                                 set_text(IntervalSet::from_ranges(std::move(there)))));
  }

  // A request for tokens that are not there, and sides that are about fewer than are to be moved.
  bool check_tokens(const CommonTensors& common) {
    // Compared without windows: a request outside the interval is a mistake of the caller, and not a plan without
    // edges.
    const Range there = options_.snapshot_tokens.value_or(target_.tokens());
    if (options_.tokens != Range::all() && there.intersect(options_.tokens).empty()) {
      diagnostics_.add(Rule::kPlanEmpty, "",
                       fmt::format("tokens {} lie outside {}", range_text(options_.tokens), range_text(there)));
      return false;
    }
    for (const PlanTensor& tensor : common.tensors) {
      if (tensor.component.is_state()) continue;
      for (const PlanSide* side : {&source_, &target_}) {
        if (side->tokens().contains(tensor.tokens)) continue;
        diagnostics_.add(side == &source_ ? Rule::kPlanGap : Rule::kTokenBounds, side->label(),
                         fmt::format("is about tokens {}, and {} are to be moved (component {}, layers {})",
                                     range_text(side->tokens()), range_text(tensor.tokens),
                                     tensor.component.name.text(), set_text(tensor.layers)));
        return false;
      }
    }
    return true;
  }

  // Pages that replicas are chosen by hold whole rows, and each replica is there to write its own.
  bool check_pages(const CommonTensors& common) {
    if (options_.selection != SourceSelection::kByPage) return true;
    CHECK(options_.selection_page_tokens > 0);
    if (!options_.sources.empty()) {
      diagnostics_.add(Rule::kPlanParticipant, source_.label(),
                       "each page has its own replica to write it: leave out the choice of participants");
      return false;
    }
    for (const PlanTensor& tensor : common.tensors) {
      if (options_.selection_page_tokens % tensor.component.tokens_per_row.value_or(1) == 0) continue;
      diagnostics_.add(Rule::kTokenAlignment, "",
                       fmt::format("pages of {} tokens cut rows of {} (component {})", options_.selection_page_tokens,
                                   *tensor.component.tokens_per_row, tensor.component.name.text()));
      return false;
    }
    return true;
  }

  std::vector<ChosenEdge> join(SourceIndex& index, const std::vector<Claim>& target_claims, TokenJoiner& joiner) {
    std::vector<ChosenEdge> edges;
    // With chosen sources some replicas may be missing, so ordinals are no longer 0 to n-1 and the sets of candidates
    // differ from cell to cell. Only then the costlier cutting into cells (planner/kv/balance.h) is needed.
    const bool balanced = options_.selection == SourceSelection::kBalanced;
    if (options_.sources.empty() && !balanced)
      join_by_ordinal(index, target_claims, joiner, edges);
    else
      join_by_demand(index, target_claims, joiner, edges);
    if (joiner.too_many())
      diagnostics_.add(
          Rule::kPlanLimit, "",
          fmt::format("the token cycles of source and target{} have a common period of more than {} blocks",
                      options_.selection == SourceSelection::kByPage
                          ? fmt::format(", and pages of {} tokens by replica,", options_.selection_page_tokens)
                          : "",
                      limits_.token_range_count_max));
    if (edges.size() > limits_.edge_count_max) refuse_edges();
    return edges;
  }

  void refuse_edges() {
    diagnostics_.add(Rule::kPlanLimit, "", fmt::format("more than {} edges", limits_.edge_count_max));
  }
  void refuse_work() {
    diagnostics_.add(Rule::kPlanLimit, "", fmt::format("more than {} pairs of regions to look at", limits_.work_max));
  }

  uint32_t source_dp_of(const Claim& target) const {
    return static_cast<uint32_t>(target_.owners()[target.owner].dp % dp_count_);
  }

  // For one element x of a target's claim exactly one source claim that holds x makes an edge with x: all claims that
  // hold x have one replica count n, and one of them has each ordinal below n (rule replica-set). Taken is the one with
  // ordinal (r mod n), where r is the target's ordinal; or, by page, each of them for the pages whose number is its
  // ordinal mod n, which x lies in one of. So edges of one target are disjoint (I1).
  // Limits are looked at once for each pair of layer sets; in between, the list grows by the claims of one class at
  // most.
  void join_by_ordinal(SourceIndex& index, const std::vector<Claim>& target_claims, TokenJoiner& joiner,
                       std::vector<ChosenEdge>& edges) {
    uint64_t work = 0;
    for (const Claim& target : target_claims) {
      const bool by_page =
          options_.selection == SourceSelection::kByPage && !plan_.tensors[target.tensor].component.is_state();
      for (SourceIndex::LayerOverlap& overlap :
           index.overlaps(target.tensor, source_dp_of(target), target.layer_set, work)) {
        ++work;
        // All classes of an overlap have the same replica count.
        const std::span<const SourceIndex::Class> classes = index.classes(overlap);
        const uint32_t count = classes.front().replica_count;
        if (by_page) {
          for (const SourceIndex::Class& members : classes)
            join_class(index, overlap, members, target, ReplicaOrdinal{members.replica_ordinal, count}, joiner, edges,
                       work);
        } else if (const SourceIndex::Class* members = index.find(overlap, target.replica_ordinal % count)) {
          join_class(index, overlap, *members, target, ReplicaOrdinal(), joiner, edges, work);
        }
        if (edges.size() > limits_.edge_count_max) return;
        if (work + joiner.work() > limits_.work_max) return refuse_work();
      }
    }
  }

  // `pages`: the replica whose pages are taken; the only one of one: all tokens.
  void join_class(SourceIndex& index, SourceIndex::LayerOverlap& overlap, const SourceIndex::Class& members,
                  const Claim& target, ReplicaOrdinal pages, TokenJoiner& joiner, std::vector<ChosenEdge>& edges,
                  uint64_t& work) {
    index.for_each_overlapping(members, target.heads, work, [&](std::span<const Claim> run) {
      const std::optional<uint32_t> layers = index.common_layers(overlap, target.layer_set, work);
      if (!layers) return;
      for_each_partner(
          run, joiner.partners(target.ownership), [](const Claim& source) { return source.ownership; }, work,
          [&](const Claim& source) {
            if (const std::optional<uint32_t> tokens = joiner.join_pages(
                    target.tensor, source.ownership, target.ownership, options_.selection_page_tokens, pages))
              edges.push_back(ChosenEdge{target.tensor, *layers, source.heads.intersect(target.heads), *tokens,
                                         source.owner, target.owner});
          });
    });
  }

  void join_by_demand(SourceIndex& index, const std::vector<Claim>& target_claims, TokenJoiner& joiner,
                      std::vector<ChosenEdge>& edges) {
    DemandCollector collector(index, numbers_, joiner, limits_.work_max);
    std::vector<uint32_t> all_dps(dp_count_);
    for (uint32_t i = 0; i < dp_count_; ++i) all_dps[i] = i;
    const bool balanced = options_.selection == SourceSelection::kBalanced;
    for (const Claim& target : target_claims) {
      const uint32_t default_dp = source_dp_of(target);
      const std::span<const uint32_t> dps = balanced ? std::span<const uint32_t>(all_dps) : std::span(&default_dp, 1);
      if (!collector.add(target, dps, default_dp)) return refuse_work();
      if (collector.demands().size() > limits_.edge_count_max) return refuse_edges();
    }
    if (!balanced) {
      edges = choose_by_ordinal(collector);
      return;
    }
    const std::optional<uint64_t> blocks = collector.block_count();
    if (!blocks || *blocks > kBalancedBlocksMax) {
      diagnostics_.add(Rule::kPlanLimit, "", fmt::format("more than {} layers x heads to balance", kBalancedBlocksMax));
      return;
    }
    uint32_t nic_count = 0;
    std::optional<std::vector<uint32_t>> nics = number_nics(nic_count);
    if (!nics) return;
    // A caller without interest in the loads still gets the balanced choice.
    BalanceReport ignored;
    edges = choose_balanced(
        BalanceInput{collector, plan_.tensors, numbers_, joiner.token_sets(), std::move(*nics), nic_count},
        report_ != nullptr ? *report_ : ignored);
  }

  // A group's number for those in it, then one for each other owner.
  std::optional<std::vector<uint32_t>> number_nics(uint32_t& nic_count) {
    std::vector<uint32_t> nic_of(source_.owners().size(), UINT32_MAX);
    std::set<std::string> names;
    for (const NicGroup& group : options_.nics) {
      if (!names.insert(group.name).second) {
        diagnostics_.add(Rule::kPlanParticipant, fmt::format("network interface '{}'", group.name), "is named twice");
        return std::nullopt;
      }
      for (const PlanEnd& end : group.participants) {
        const PlanOwner* owner = source_.find(end.text());
        const size_t number = owner == nullptr ? 0 : static_cast<size_t>(owner - source_.owners().data());
        if (owner == nullptr || nic_of[number] != UINT32_MAX) {
          diagnostics_.add(Rule::kPlanParticipant, fmt::format("network interface '{}'", group.name),
                           owner == nullptr ? fmt::format("{} has no '{}'", source_.label(), end.text())
                                            : fmt::format("'{}' has one already", end.text()));
          return std::nullopt;
        }
        nic_of[number] = nic_count;
      }
      ++nic_count;
    }
    for (uint32_t& nic : nic_of)
      if (nic == UINT32_MAX) nic = nic_count++;
    return nic_of;
  }

  std::optional<Valid<TransferPlan>> finish(std::vector<ChosenEdge> edges, const std::vector<Claim>& target_claims,
                                            const TokenJoiner& joiner) {
    // Sources without an edge do not appear in a plan; targets all do, so that a target with nothing to receive still
    // takes part in the protocol and in the proof.
    std::vector<uint32_t> source_number(source_.owners().size(), UINT32_MAX);
    for (const ChosenEdge& edge : edges) source_number[edge.source] = 0;
    for (size_t owner = 0; owner < source_number.size(); ++owner) {
      if (source_number[owner] == UINT32_MAX) continue;
      source_number[owner] = static_cast<uint32_t>(plan_.sources.size());
      plan_.sources.emplace_back(std::string(source_.owners()[owner].end));
    }
    std::vector<uint32_t> target_number(target_.owners().size());
    for (const uint32_t owner : target_owners_) {
      target_number[owner] = static_cast<uint32_t>(plan_.targets.size());
      plan_.targets.emplace_back(std::string(target_.owners()[owner].end));
    }
    plan_.edges.reserve(edges.size());
    for (const ChosenEdge& edge : edges)
      plan_.edges.push_back(Edge{target_number[edge.target], source_number[edge.source], edge.tensor, edge.layer_set,
                                 edge.heads, edge.token_set});
    merge_edges(plan_, numbers_.layer_sets);
    plan_.layer_sets = numbers_.layer_sets.to_vector();
    plan_.token_sets = joiner.token_sets().to_vector();
    if (plan_.edges.empty() && requires_something(target_claims)) {
      diagnostics_.add(Rule::kPlanEmpty, "",
                       fmt::format("{} brings nothing of what {} requires", source_.label(), target_.label()));
      return std::nullopt;
    }
    std::optional<Valid<TransferPlan>> plan = Valid<TransferPlan>::make(std::move(plan_), diagnostics_);
    // A caller that names the sources may leave out every owner of an element, and only the proof can tell. With all
    // sources the documents' own coverage rules exclude it, and make_proved_plan() proves the plan anyway.
    if (plan && !options_.sources.empty()) {
      const uint64_t diagnostics_before = diagnostics_.total();
      verify_plan(*plan, source_, target_, VerifyLimits{}, diagnostics_);
      if (diagnostics_.total() != diagnostics_before) return std::nullopt;
    }
    return plan;
  }

  // Required(q) may be empty although q owns much: a window, or a cycle, may have no token in Asked. A plan without
  // edges is right in that case only.
  bool requires_something(const std::vector<Claim>& target_claims) const {
    return std::any_of(target_claims.begin(), target_claims.end(), [&](const Claim& claim) {
      TokenSet tokens;
      // Only one of the two can have a cycle, so kTooMany does not come.
      return join_tokens(AllTokens(), numbers_.ownerships[claim.ownership], plan_.tensors[claim.tensor].tokens,
                         limits_.token_range_count_max, tokens) != TokenJoin::kNone;
    });
  }

  const PlanSide& source_;
  const PlanSide& target_;
  const PlanOptions& options_;
  const PlanLimits& limits_;
  Diagnostics& diagnostics_;
  BalanceReport* report_;
  std::vector<uint32_t> source_owners_;  // that may serve, ascending
  std::vector<uint32_t> target_owners_;
  std::vector<uint32_t> dp_number_;  // of each source owner, counted among the ranks that may serve
  uint32_t dp_count_ = 0;
  ClaimNumbers numbers_;
  TransferPlan plan_;
};

}  // namespace

void check_snapshot(const SnapshotDescriptor& snapshot, const PlanSide& source,
                    const Sha256Digest& source_schema_digest, const PlanSide& target, Diagnostics& diagnostics) {
  for (const PlanSide* side : {&source, &target})
    if (side->resource() != nullptr && *side->resource() != snapshot.resource)
      diagnostics.add(Rule::kPlanIdentity, side->label(),
                      fmt::format("is about resource '{}', the snapshot about '{}'", side->resource()->text(),
                                  snapshot.resource.text()));
  if (snapshot.cache_schema_digest != source_schema_digest)
    diagnostics.add(Rule::kPlanIdentity, source.label(),
                    fmt::format("has the cache schema {}, the snapshot names {}", source_schema_digest.hex(),
                                snapshot.cache_schema_digest.hex()));
}

std::optional<Valid<TransferPlan>> make_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                             const PlanLimits& limits, Diagnostics& diagnostics,
                                             BalanceReport* report) {
  return Planner(source, target, options, limits, diagnostics, report).run();
}

}  // namespace crossdock
