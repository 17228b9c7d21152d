#include "tests/support/naive_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tests/support/builders.h"

namespace crossdock::testing {

Valid<PlacementManifest> placed(const CacheSchema& schema, const PartitionSizes& sizes) {
  return placed(valid_or_die(schema), sizes);
}

bool naive_in(const TokenSet& set, uint64_t token) {
  return naive_in(set.intervals, token) &&
         (!set.cycle || naive_in(set.cycle->blocks, token / set.cycle->block_tokens % set.cycle->cycle_blocks));
}

bool naive_owns(const PlanSide& side, size_t owner, const Component& component, uint64_t layer, uint64_t head,
                uint64_t token) {
  for (const Ownership& ownership : side.owners()[owner].owns) {
    if (!naive_in(ownership.layers, layer) || !naive_in(ownership.heads, head)) continue;
    if (std::count(ownership.components.begin(), ownership.components.end(), component.name) == 0) continue;
    if (component.is_state() ? token == 0
                             : naive_in({side.tokens()}, token) && naive_owns_token(ownership.tokens, token))
      return true;
  }
  return false;
}

size_t naive_group_of(const CacheSchema& schema, uint64_t layer) {
  for (size_t i = 0; i < schema.groups.size(); ++i)
    if (naive_in(schema.groups[i].layers, layer)) return i;
  return SIZE_MAX;
}

Range naive_live_tokens(const LayerGroup& of, const Component& component, Range snapshot) {
  uint64_t begin = snapshot.begin();
  const std::optional<uint64_t> window = window_of(of);
  while (window && snapshot.end() - begin > *window) ++begin;
  while (begin > snapshot.begin() && begin % *component.tokens_per_row != 0) --begin;
  return Range(begin, snapshot.end());
}

std::vector<PlanTensor> naive_tensors(const CacheSchema& source, const PlanSide& target, const AskedTokens& asked) {
  const CacheSchema& schema = target.cache_schema();
  std::map<std::pair<size_t, size_t>, std::vector<Range>> layers_of;  // of target group and source group
  for (const LayerGroup& of : schema.groups)
    for (const Range range : of.layers.ranges())
      for (uint64_t layer = range.begin(); layer < range.end(); ++layer)
        layers_of[{naive_group_of(schema, layer), naive_group_of(source, layer)}].push_back(Range(layer, layer + 1));
  std::vector<PlanTensor> tensors;
  for (const auto& [groups, layers] : layers_of) {
    const LayerGroup& of = schema.groups[groups.first];
    for (const Component& component : of.components) {
      Range tokens(0, 1);
      if (!component.is_state())
        tokens = (asked.snapshot_tokens ? naive_live_tokens(of, component, *asked.snapshot_tokens) : target.tokens())
                     .intersect(asked.tokens);
      tensors.push_back(PlanTensor{component, IntervalSet::from_ranges(layers), of.live, tokens});
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const PlanTensor& a, const PlanTensor& b) {
    return std::tie(a.layers, a.component.name) < std::tie(b.layers, b.component.name);
  });
  return tensors;
}

Range tokens_looked_at(const PlanTensor& tensor) { return tensor.tokens.intersect(Range(0, kTokensLookedAt)); }

std::vector<PlanEnd> all_ends(const PlanSide& side) {
  std::vector<PlanEnd> ends;
  for (const PlanOwner& owner : side.owners()) ends.push_back(PlanEnd(std::string(owner.end)));
  return ends;
}

uint32_t add_layer_set(TransferPlan& plan, IntervalSet layers) {
  plan.layer_sets.push_back(std::move(layers));
  return static_cast<uint32_t>(plan.layer_sets.size() - 1);
}

uint32_t add_token_set(TransferPlan& plan, TokenSet tokens) {
  plan.token_sets.push_back(std::move(tokens));
  return static_cast<uint32_t>(plan.token_sets.size() - 1);
}

void drop_idle_sources(TransferPlan& plan) {
  std::vector<bool> is_used(plan.sources.size());
  for (const Edge& edge : plan.edges) is_used[edge.source] = true;
  std::vector<PlanEnd> used;
  std::vector<uint32_t> new_index(plan.sources.size());
  for (size_t i = 0; i < plan.sources.size(); ++i) {
    new_index[i] = static_cast<uint32_t>(used.size());
    if (is_used[i]) used.push_back(plan.sources[i]);
  }
  plan.sources = std::move(used);
  for (Edge& edge : plan.edges) edge.source = new_index[edge.source];
}

TokenSet drawn_set_of(const std::vector<bool>& chosen, const PlanTensor& tensor, Rng& rng) {
  const bool has_end = tensor.tokens.end() <= kTokensLookedAt;
  std::vector<Range> ranges;
  const uint64_t end = has_end ? chosen.size() : kTokenPeriod;
  for (uint64_t token = 0; token < end; ++token)
    if (chosen[token]) ranges.push_back(Range(token, token + 1));
  IntervalSet tokens = IntervalSet::from_ranges(std::move(ranges));
  const bool fits_a_cycle = tensor.component.tokens_per_row == uint64_t{1} && end <= kTokenPeriod;
  if (fits_a_cycle && (!has_end || rng.chance(1, 2)))
    return TokenSet{{tensor.tokens}, CyclicTokens{1, kTokenPeriod, std::move(tokens)}};
  return TokenSet{std::move(tokens), std::nullopt};
}

TransferPlan naive_plan(const PlanSide& source, const PlanSide& target, const AskedTokens& asked, Rng& rng) {
  TransferPlan plan;
  plan.kind = source.kind() != SideKind::kRuntime   ? PlanKind::kRestore
              : target.kind() != SideKind::kRuntime ? PlanKind::kUpload
                                                    : PlanKind::kLive;
  plan.source_digest = source.digest();
  plan.target_digest = target.digest();
  plan.snapshot_tokens = asked.snapshot_tokens;
  plan.tokens = asked.tokens;
  plan.sources = all_ends(source);
  plan.targets = all_ends(target);
  plan.tensors = naive_tensors(source.cache_schema(), target, asked);
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, TokenSet, uint64_t>, std::vector<std::vector<Range>>> layers_of;
  for (uint32_t t = 0; t < plan.targets.size(); ++t)
    for (uint32_t i = 0; i < plan.tensors.size(); ++i)
      for_each_row(plan.tensors[i], [&](uint64_t layer, uint64_t head) {
        const PlanTensor& tensor = plan.tensors[i];
        std::map<size_t, std::vector<bool>> chosen;  // of each source
        const uint64_t taste = rng.chance(1, 2) ? 0 : rng.next();
        const Range tokens = tokens_looked_at(tensor);
        for (uint64_t token = tokens.begin(); token < tokens.end(); ++token) {
          if (!naive_owns(target, t, tensor.component, layer, head, token)) continue;
          std::vector<size_t> owners;
          for (size_t s = 0; s < plan.sources.size(); ++s)
            if (naive_owns(source, s, tensor.component, layer, head, token)) owners.push_back(s);
          if (owners.empty()) continue;
          const uint64_t row = token % kTokenPeriod / tensor.component.tokens_per_row.value_or(1);
          std::vector<bool>& of_source = chosen[owners[(taste >> row) % owners.size()]];
          of_source.resize(tokens.end());
          of_source[token] = true;
        }
        for (const auto& [s, tokens_chosen] : chosen) {
          auto& lists = layers_of[{t, static_cast<uint32_t>(s), i, drawn_set_of(tokens_chosen, tensor, rng), head}];
          if (lists.empty() || rng.chance(1, 4)) lists.emplace_back();
          lists.back().push_back(Range(layer, layer + 1));
        }
      });
  for (const auto& [key, lists] : layers_of)
    for (const std::vector<Range>& list : lists) {
      const auto& [t, s, tensor, tokens, head] = key;
      const IntervalSet layers = IntervalSet::from_ranges(list);
      if (!plan.edges.empty() && rng.chance(1, 2)) {
        Edge& last = plan.edges.back();
        if (std::tie(last.target, last.source, last.tensor) == std::tie(t, s, tensor) && last.heads.end() == head &&
            plan.layer_sets[last.layer_set] == layers && plan.token_sets[last.token_set] == tokens) {
          last.heads = Range(last.heads.begin(), head + 1);
          continue;
        }
      }
      plan.edges.push_back(
          Edge{t, s, tensor, add_layer_set(plan, layers), Range(head, head + 1), add_token_set(plan, tokens)});
    }
  drop_idle_sources(plan);
  return plan;
}

}  // namespace crossdock::testing
