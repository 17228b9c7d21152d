#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/sorted.h"
#include "model/kv/placement.h"
#include "model/kv/placement_coverage.h"
#include "model/kv/schema_rules.h"
#include "model/text.h"

// Rules of a placement in three steps, each relying on the one before: names, schema and topology; each part alone; all
// parts together (coverage). A later step would only repeat the diagnostics of an earlier one, so it does not run after
// them.
namespace crossdock {
namespace {

class PlacementCheck {
 public:
  PlacementCheck(const PlacementManifest& placement, Diagnostics& diagnostics)
      : placement_(placement), index_(placement.cache_schema), diagnostics_(diagnostics) {}

  void run() {
    check_name(placement_.name, "", "the placement's name", diagnostics_);
    check_name(placement_.resource.text(), "", "resource", diagnostics_);
    check_name(placement_.revision.text(), "", "revision", diagnostics_);
    if (placement_.tokens.empty()) diagnostics_.add(Rule::kTokenBounds, "", "the placement's tokens are empty");
    if (placement_.paging && placement_.paging->page_tokens == 0)
      diagnostics_.add(Rule::kFieldMinimum, "paging", "page_tokens 0 is below 1");
    check_cache_schema(placement_.cache_schema, "cache schema", diagnostics_);
    check_topology(placement_.topology, "topology", diagnostics_);
    check_parts();
    if (!diagnostics_.empty()) return;  // the rules below count on these
    for (const Part& part : placement_.parts) {
      check_part(part);
      if (piece_count_ > kPlacementPiecesMax) {
        diagnostics_.add(Rule::kWorkLimit, "",
                         fmt::format("the parts own more than {} pieces of layer groups and their token intervals",
                                     kPlacementPiecesMax));
        return;
      }
    }
    if (!diagnostics_.empty()) return;
    check_placement_coverage(placement_, kPlacementWorkMax, diagnostics_);
  }

 private:
  static std::string place_of(const ParticipantId& id) { return fmt::format("part '{}'", id.text()); }

  // Parts and participants, both sorted, are the same list.
  // A merge of two sorted lists, so that each participant without a part, and each part without a participant, is
  // named.
  void check_parts() {
    const std::vector<Participant>& participants = placement_.topology.participants;
    size_t p = 0;
    for (size_t i = 0; i < placement_.parts.size(); ++i) {
      const ParticipantId& id = placement_.parts[i].participant;
      if (i > 0 && placement_.parts[i - 1].participant == id) {
        diagnostics_.add(Rule::kPartRepeated, place_of(id), "the participant has two parts");
        continue;
      }
      for (; p < participants.size() && participants[p].id < id; ++p) part_missing(participants[p].id);
      if (p < participants.size() && participants[p].id == id)
        ++p;
      else
        diagnostics_.add(Rule::kPartUnknown, place_of(id), "the topology has no such participant");
    }
    for (; p < participants.size(); ++p) part_missing(participants[p].id);
  }

  void part_missing(const ParticipantId& id) {
    diagnostics_.add(Rule::kPartMissing, "", fmt::format("participant '{}' has no part", id.text()));
  }

  void check_part(const Part& part) {
    for (const Ownership& ownership : part.owns) {
      const uint64_t diagnostics_before = diagnostics_.total();
      check_ownership_alone(ownership, part);
      if (diagnostics_.total() != diagnostics_before) continue;
      const auto* intervals = std::get_if<TokenIntervals>(&ownership.tokens);
      // What coverage may have to look at for this ownership. A document of a few megabytes can state a product of
      // layers, components and intervals that is far larger.
      const uint64_t boundaries = intervals == nullptr ? 1 : intervals->tokens.ranges().size();
      index_.for_each_piece(ownership.layers, [&](Range layers, size_t group) {
        piece_count_ += ownership.components.size() * boundaries;
        if (piece_count_ > kPlacementPiecesMax) return false;
        check_piece(ownership, part, layers, group);
        return true;
      });
    }
  }

  void check_ownership_alone(const Ownership& ownership, const Part& part) {
    const auto refuse = [&](Rule rule, std::string message) {
      diagnostics_.add(rule, place_of(part.participant), std::move(message));
    };
    if (ownership.layers.empty()) refuse(Rule::kOwnershipEmpty, "an ownership has no layers");
    if (ownership.components.empty()) refuse(Rule::kOwnershipEmpty, "an ownership has no components");
    if (ownership.heads.empty()) refuse(Rule::kOwnershipEmpty, "an ownership has no heads");
    for (size_t i = 1; i < ownership.components.size(); ++i)
      if (ownership.components[i] == ownership.components[i - 1])
        refuse(Rule::kComponentRepeated,
               fmt::format("component '{}' stands twice in an ownership", ownership.components[i].text()));
    if (ownership.replica.ordinal >= ownership.replica.count)
      refuse(Rule::kReplicaOrdinal, fmt::format("replica ordinal {} is not below the replica count {}",
                                                ownership.replica.ordinal, ownership.replica.count));
    if (const auto* intervals = std::get_if<TokenIntervals>(&ownership.tokens)) {
      if (intervals->tokens.empty()) refuse(Rule::kOwnershipEmpty, "an ownership has no tokens");
      const Range hull = intervals->tokens.hull();
      if (!placement_.tokens.contains(hull))
        refuse(Rule::kTokenBounds, fmt::format("tokens {} lie outside the placement's tokens {}", range_text(hull),
                                               range_text(placement_.tokens)));
    }
    if (const auto* cyclic = std::get_if<CyclicTokens>(&ownership.tokens)) {
      if (cyclic->block_tokens == 0) refuse(Rule::kFieldMinimum, "block_tokens 0 is below 1");
      if (cyclic->cycle_blocks == 0) refuse(Rule::kFieldMinimum, "cycle_blocks 0 is below 1");
      if (cyclic->blocks.empty()) refuse(Rule::kOwnershipEmpty, "an ownership has no blocks of its cycle");
      if (cyclic->blocks.hull().end() > cyclic->cycle_blocks)
        refuse(Rule::kCycleBounds, fmt::format("blocks {} end past the {} blocks of the cycle",
                                               range_text(cyclic->blocks.hull()), cyclic->cycle_blocks));
    }
  }

  void check_piece(const Ownership& ownership, const Part& part, Range layers, size_t group_index) {
    const std::string layers_text = set_text({layers});
    if (group_index == LayerIndex::kNoGroup) {
      diagnostics_.add(
          Rule::kLayerUnknown, place_of(part.participant),
          fmt::format("layers {} are not in the cache schema (layers {})", layers_text, schema_layers_text_));
      return;
    }
    const LayerGroup& group = placement_.cache_schema.groups[group_index];
    for (const ComponentName& name : ownership.components) {
      const Component* component = group.find(name);
      if (component == nullptr) {
        diagnostics_.add(Rule::kComponentUnknown, place_of(part.participant),
                         fmt::format("layers {} have no component '{}'", layers_text, name.text()));
        continue;
      }
      const Range hull = ownership.heads.hull();
      if (hull.end() > component->head_count)
        diagnostics_.add(Rule::kHeadBounds, place_of(part.participant),
                         fmt::format("heads {} end past head count {} (component {}, layers {})", range_text(hull),
                                     component->head_count, name.text(), layers_text));
      check_rows(ownership.tokens, *component, part, layers_text);
    }
  }

  // Token boundaries against the rows of a component.
  // A row belongs to one owner: two participants that each own half of it could not both be sent it (rule
  // token-alignment). The end of the placement's tokens may cut one.
  void check_rows(const TokenOwnership& tokens, const Component& component, const Part& part,
                  const std::string& layers_text) {
    if (component.is_state()) {
      if (!std::holds_alternative<AllTokens>(tokens))
        diagnostics_.add(Rule::kStateTokens, place_of(part.participant),
                         fmt::format("component {} (layers {}) is a state and has no tokens to share out",
                                     component.name.text(), layers_text));
      return;
    }
    const uint64_t unit = *component.tokens_per_row;
    if (unit == 1) return;
    const auto check_boundary = [&](uint64_t boundary) {
      if (boundary % unit != 0 && boundary != placement_.tokens.end())
        diagnostics_.add(Rule::kTokenAlignment, place_of(part.participant),
                         fmt::format("token {} cuts a row of {} tokens (component {}, layers {})", boundary, unit,
                                     component.name.text(), layers_text));
    };
    check_boundary(placement_.tokens.begin());
    if (const auto* cyclic = std::get_if<CyclicTokens>(&tokens)) check_boundary(cyclic->block_tokens);
    if (const auto* intervals = std::get_if<TokenIntervals>(&tokens))
      for (const Range range : intervals->tokens.ranges()) {
        check_boundary(range.begin());
        check_boundary(range.end());
      }
  }

  const PlacementManifest& placement_;
  const LayerIndex index_;
  Diagnostics& diagnostics_;
  // Made once: a wrong placement may need it for every piece.
  const std::string schema_layers_text_ = set_text(placement_.cache_schema.layers());
  uint64_t piece_count_ = 0;
};

// One form for what can be said in several ways: all tokens.
// One text for one meaning: equal placements have equal digests (I7).
void normalize(TokenOwnership& tokens, Range all) {
  const auto* intervals = std::get_if<TokenIntervals>(&tokens);
  if (intervals != nullptr && intervals->tokens == IntervalSet{all}) {
    tokens = AllTokens();
    return;
  }
  const auto* cyclic = std::get_if<CyclicTokens>(&tokens);
  if (cyclic != nullptr && cyclic->block_tokens != 0 && cyclic->cycle_blocks != 0 &&
      cyclic->blocks == IntervalSet{Range(0, cyclic->cycle_blocks)})
    tokens = AllTokens();
}

// Ownerships that differ only in their layers are one; where layers are named twice they stay apart, to be refused.
void merge_layers(std::vector<Ownership>& owns) {
  std::map<Ownership, std::vector<IntervalSet>> layers_of;  // by the rest of the ownership
  for (Ownership& ownership : owns) {
    IntervalSet layers = std::exchange(ownership.layers, {});
    layers_of[std::move(ownership)].push_back(std::move(layers));
  }
  owns.clear();
  for (auto& [rest, sets] : layers_of) {
    std::vector<Range> ranges;
    Checked count = 0;
    for (const IntervalSet& set : sets) {
      ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
      count = count + set.count();
    }
    IntervalSet together = IntervalSet::from_ranges(std::move(ranges));
    // Fewer members than the sum: some layer is in two of them. Merging would hide that from the coverage proof.
    if (together.count() == count.value()) sets = {std::move(together)};
    for (IntervalSet& set : sets) {
      owns.push_back(rest);
      owns.back().layers = std::move(set);
    }
  }
  std::sort(owns.begin(), owns.end());
}

}  // namespace

const Part* PlacementManifest::find_part(const ParticipantId& participant) const {
  return find_sorted(parts, &Part::participant, participant);
}

void canonicalize(PlacementManifest& placement) {
  canonicalize(placement.cache_schema);
  canonicalize(placement.topology);
  for (Part& part : placement.parts) {
    for (Ownership& ownership : part.owns) {
      std::sort(ownership.components.begin(), ownership.components.end());
      normalize(ownership.tokens, placement.tokens);
    }
    if (part.owns.size() > 1) merge_layers(part.owns);
  }
  std::stable_sort(placement.parts.begin(), placement.parts.end(),
                   [](const Part& a, const Part& b) { return a.participant < b.participant; });
}

void validate(const PlacementManifest& placement, Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("placement '{}'", placement.name));
  // Own diagnostics, because "no diagnostics so far" decides whether later steps run, and the caller may have some of
  // other documents already.
  Diagnostics own(diagnostics.document());
  PlacementCheck(placement, own).run();
  diagnostics.take(own);
}

}  // namespace crossdock
