#include "model/kv/placement_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/sweep.h"
#include "model/kv/schema_rules.h"
#include "model/kv/token_cover.h"
#include "model/text.h"

// What is proved: for each data-parallel rank and each element x, Owners(x) is one participant, or exactly the replicas
// 0 to n-1 of one declared set. With docs/architecture.md, "Definitions", this is what lets a planner take any replica
// of an element (planner/kv/make_plan.cc) without looking for others.
// Elements are not enumerated: a slab of layers, and in it a cell of heads, has the same claims for all its elements.
// In a cell, claims with equal tokens must be a replica set, and the different token ownerships must partition the
// tokens.
namespace crossdock {
namespace {

constexpr uint64_t kTokenRangesMax = uint64_t{1} << 20;
constexpr uint64_t kStepsPerTokenRange = 4;  // they are sorted
constexpr size_t kOwnersShownMax = 4;
constexpr size_t kNotesMax = 10'000;  // diagnostics of one component

// What one owner claims of a range of layers within one group.
struct Claim {
  uint64_t dp;
  size_t group;
  Range layers;
  const Ownership* ownership;
  const Part* part;
};

struct HeadClaim {
  Range heads;
  const Claim* claim;
};

class CoverageCheck {
 public:
  CoverageCheck(const PlacementManifest& placement, uint64_t work_max, Diagnostics& diagnostics)
      : placement_(placement), work_max_(work_max), diagnostics_(diagnostics) {}

  uint64_t run() {
    const std::vector<Claim> claims = collect_claims();
    size_t begin = 0;
    // Claims are sorted by (dp, group), so each rank takes the next run of them. A rank without claims is a gap.
    for (uint64_t dp = 0; dp < placement_.topology.sizes.dp && !stopped_; ++dp) {
      if (diagnostics_.full()) break;  // a size of 2^60 must not be walked through
      for (size_t group = 0; group < placement_.cache_schema.groups.size() && !stopped_; ++group) {
        size_t end = begin;
        while (end < claims.size() && claims[end].dp == dp && claims[end].group == group) ++end;
        check_group(dp, placement_.cache_schema.groups[group], std::span(claims).subspan(begin, end - begin));
        begin = end;
      }
    }
    return work_;
  }

 private:
  // As many as pieces of layers within groups, which the caller has bounded by kPlacementPiecesMax.
  std::vector<Claim> collect_claims() const {
    const LayerIndex index(placement_.cache_schema);
    std::vector<Claim> claims;
    for (const Part& part : placement_.parts) {
      const Participant* participant = placement_.topology.find(part.participant);
      CHECK(participant != nullptr);
      for (const Ownership& ownership : part.owns)
        index.for_each_piece(ownership.layers, [&](Range layers, size_t group) {
          claims.push_back(Claim{participant->rank.dp, group, layers, &ownership, &part});
        });
    }
    std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
      return std::tuple(a.dp, a.group, a.layers.begin()) < std::tuple(b.dp, b.group, b.layers.begin());
    });
    return claims;
  }

  void check_group(uint64_t dp, const LayerGroup& group, std::span<const Claim> claims) {
    std::vector<std::vector<const Claim*>> claims_of(group.components.size());
    for (const Claim& claim : claims)
      for (const ComponentName& name : claim.ownership->components)
        claims_of[static_cast<size_t>(group.find(name) - group.components.data())].push_back(&claim);
    for (size_t i = 0; i < group.components.size() && !stopped_; ++i) {
      component_ = &group.components[i];
      const IntervalSet claimed = check_layers(std::move(claims_of[i]));
      const IntervalSet unclaimed = group.layers.subtract(claimed);
      if (!stopped_)
        for (const Range gap : unclaimed.ranges())
          note(Rule::kCoverageGap, gap, Range(0, component_->head_count), "no owner");
      report(dp);
    }
  }

  // Returns the layers that have a claim.
  IntervalSet check_layers(std::vector<const Claim*> claims) {
    std::vector<Range> covered;
    sweep(
        std::move(claims), [](const Claim* claim) { return claim->layers; },
        [&](Range layers, std::span<const Claim* const> active) {
          covered.push_back(layers);
          check_heads(layers, active);
          return !stopped_;
        });
    return IntervalSet::from_ranges(std::move(covered));
  }

  // No sum wraps: each call adds at most the length of a list that is in memory.
  bool spend(uint64_t steps) {
    work_ += steps;
    if (work_ > work_max_ && !stopped_) {
      stopped_ = true;
      diagnostics_.add(Rule::kWorkLimit, "", fmt::format("coverage needs more than the limit of {} steps", work_max_));
    }
    return !stopped_;
  }

  // Gaps are found between slabs of the sweep, which leaves out heads without a claim.
  void check_heads(Range layers, std::span<const Claim* const> active) {
    std::vector<HeadClaim> head_claims;
    for (const Claim* claim : active) {
      if (!spend(claim->ownership->heads.ranges().size())) return;
      for (const Range heads : claim->ownership->heads.ranges()) head_claims.push_back(HeadClaim{heads, claim});
    }
    uint64_t covered_to = 0;
    const auto check_gap = [&](uint64_t next) {
      if (covered_to < next) note(Rule::kCoverageGap, layers, Range(covered_to, next), "no owner");
    };
    sweep(
        std::move(head_claims), [](const HeadClaim& claim) { return claim.heads; },
        [&](Range heads, std::span<const HeadClaim> owners) {
          check_gap(heads.begin());
          covered_to = heads.end();
          check_cell(layers, heads, owners);
          return !stopped_;
        });
    if (!stopped_) check_gap(component_->head_count);
  }

  // All owners of one cell of layers x heads.
  void check_cell(Range layers, Range heads, std::span<const HeadClaim> owners) {
    std::vector<const Claim*> sorted;
    uint64_t stated_ranges = 0;  // sorting and comparing may look at all of them
    for (const HeadClaim& owner : owners) {
      sorted.push_back(owner.claim);
      if (const auto* intervals = std::get_if<TokenIntervals>(&owner.claim->ownership->tokens))
        stated_ranges += intervals->tokens.ranges().size();
    }
    if (!spend(owners.size() + stated_ranges * kStepsPerTokenRange)) return;
    const auto key = [](const Claim* claim) { return std::tie(claim->ownership->tokens, claim->ownership->replica); };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const Claim* a, const Claim* b) { return key(a) < key(b); });

    std::vector<const TokenOwnership*> distinct;
    std::vector<const Claim*> first_owner;
    for (size_t begin = 0; begin < sorted.size();) {
      size_t end = begin + 1;
      while (end < sorted.size() && sorted[end]->ownership->tokens == sorted[begin]->ownership->tokens) ++end;
      check_replicas(layers, heads, std::span(sorted).subspan(begin, end - begin));
      distinct.push_back(&sorted[begin]->ownership->tokens);
      first_owner.push_back(sorted[begin]);
      begin = end;
    }
    // Replicas were compared before, so one ownership stands for each set of equal ones.
    const Range tokens = component_->is_state() ? Range(0, 1) : placement_.tokens;
    const auto [diagnostic, range_count] = check_token_cover(distinct, tokens, kTokenRangesMax);
    if (!spend(range_count * kStepsPerTokenRange) || !diagnostic) return;
    if (diagnostic->kind == TokenCoverDiagnostic::Kind::kTooMuchWork) {
      note(Rule::kWorkLimit, layers, heads,
           fmt::format("comparing token ownerships needs more than {} intervals", kTokenRangesMax));
      stopped_ = true;
    } else if (diagnostic->kind == TokenCoverDiagnostic::Kind::kGap) {
      // The first one of the cell only: a document with one mistake then has one message.
      note(Rule::kCoverageGap, layers, heads, fmt::format("tokens {}: no owner", range_text(diagnostic->tokens)));
    } else {
      note(Rule::kCoverageOverlap, layers, heads,
           fmt::format("tokens {} belong to '{}' and to '{}', who are not declared replicas",
                       range_text(diagnostic->tokens), first_owner[diagnostic->first]->part->participant.text(),
                       first_owner[diagnostic->second]->part->participant.text()));
    }
  }

  // Owners of the same tokens, sorted by replica: different participants, 0 of n, 1 of n, ..., n-1 of n.
  // Declared ordinals instead of a count of owners: two documents then agree which replica is meant, and a missing one
  // is seen.
  void check_replicas(Range layers, Range heads, std::span<const Claim* const> owners) {
    const bool single_owners = std::all_of(owners.begin(), owners.end(),
                                           [](const Claim* claim) { return claim->ownership->replica.count == 1; });
    if (single_owners && owners.size() > 1) {
      note(Rule::kCoverageOverlap, layers, heads,
           fmt::format("{} own the same, and are not declared replicas", owners_text(owners)));
      return;
    }
    bool complete = true;
    std::vector<const Part*> parts;
    for (size_t i = 0; i < owners.size(); ++i) {
      const ReplicaOrdinal replica = owners[i]->ownership->replica;
      complete = complete && replica.ordinal == i && replica.count == owners.size();
      parts.push_back(owners[i]->part);
    }
    std::sort(parts.begin(), parts.end(), std::less<const Part*>());  // of one array, so this is the parts' order
    if (!complete)
      note(Rule::kReplicaSet, layers, heads,
           fmt::format("{} do not make the set of replicas 0 to {}", owners_text(owners),
                       owners[0]->ownership->replica.count - 1));
    else if (std::adjacent_find(parts.begin(), parts.end()) != parts.end())
      note(Rule::kReplicaSet, layers, heads,
           fmt::format("{}: one participant cannot be two replicas", owners_text(owners)));
  }

  static std::string owners_text(std::span<const Claim* const> owners) {
    std::string text;
    for (size_t i = 0; i < std::min(owners.size(), kOwnersShownMax); ++i) {
      const ReplicaOrdinal replica = owners[i]->ownership->replica;
      text += fmt::format("{}'{}' ({} of {})", i == 0 ? "" : ", ", owners[i]->part->participant.text(), replica.ordinal,
                          replica.count);
    }
    if (owners.size() > kOwnersShownMax) text += fmt::format(" and {} more", owners.size() - kOwnersShownMax);
    return text;
  }

  // Collects what is wrong for a component, so that one diagnostic over many layers is one line.
  void note(Rule rule, Range layers, Range heads, std::string message) {
    if (notes_.size() >= kNotesMax) stopped_ = true;  // the placement is refused as it is
    notes_[std::tuple(heads, rule, std::move(message))].push_back(layers);
  }

  void report(uint64_t dp) {
    for (auto& [what, layers] : notes_) {
      const auto& [heads, rule, message] = what;
      diagnostics_.add(rule, fmt::format("dp {}", dp),
                       fmt::format("layers {} component {} heads {}: {}", set_text(IntervalSet::from_ranges(layers)),
                                   component_->name.text(), range_text(heads), message));
    }
    notes_.clear();
  }

  const PlacementManifest& placement_;
  const uint64_t work_max_;
  Diagnostics& diagnostics_;
  const Component* component_ = nullptr;
  std::map<std::tuple<Range, Rule, std::string>, std::vector<Range>> notes_;
  uint64_t work_ = 0;
  bool stopped_ = false;
};

}  // namespace

uint64_t check_placement_coverage(const PlacementManifest& placement, uint64_t work_max, Diagnostics& diagnostics) {
  return CoverageCheck(placement, work_max, diagnostics).run();
}

}  // namespace crossdock
