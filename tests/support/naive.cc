#include "tests/support/naive.h"

#include <algorithm>

namespace crossdock::testing {
namespace {

bool names(const std::vector<ComponentName>& list, const std::string& name) {
  return std::count(list.begin(), list.end(), ComponentName(name)) > 0;
}

// Replicas of those that own one element: one owner with 0 of 1, or exactly 0..n-1 of n, all different participants.
bool complete_replica_set(std::vector<ReplicaOrdinal> replicas, const std::set<ParticipantId>& owners) {
  if (owners.size() != replicas.size()) return false;
  if (replicas.empty()) return false;
  std::sort(replicas.begin(), replicas.end());
  for (size_t i = 0; i < replicas.size(); ++i)
    if (replicas[i].ordinal != i || replicas[i].count != replicas.size()) return false;
  return true;
}

}  // namespace

bool naive_in(const IntervalSet& set, uint64_t value) {
  for (const Range range : set.ranges())
    if (range.begin() <= value && value < range.end()) return true;
  return false;
}

bool naive_owns_token(const TokenOwnership& tokens, uint64_t token) {
  if (const auto* intervals = std::get_if<TokenIntervals>(&tokens)) return naive_in(intervals->tokens, token);
  if (const auto* cyclic = std::get_if<CyclicTokens>(&tokens))
    return naive_in(cyclic->blocks, (token / cyclic->block_tokens) % cyclic->cycle_blocks);
  return true;
}

std::vector<std::string> naive_owners(const PlacementManifest& placement, uint64_t dp, uint64_t layer,
                                      const std::string& component, uint64_t head, uint64_t token) {
  std::vector<std::string> owners;
  for (const Part& part : placement.parts)
    for (const Participant& participant : placement.topology.participants) {
      if (participant.id != part.participant || participant.rank.dp != dp) continue;
      for (const Ownership& own : part.owns)
        if (naive_in(own.layers, layer) && names(own.components, component) && naive_in(own.heads, head) &&
            naive_owns_token(own.tokens, token))
          owners.push_back(part.participant.text());
    }
  return owners;
}

bool naive_is_covered(const PlacementManifest& placement, Range tokens) {
  for (uint64_t dp = 0; dp < placement.topology.sizes.dp; ++dp)
    for (const LayerGroup& group : placement.cache_schema.groups)
      for (const Range layers : group.layers.ranges())
        for (uint64_t layer = layers.begin(); layer < layers.end(); ++layer)
          for (const Component& component : group.components)
            for (uint64_t head = 0; head < component.head_count; ++head)
              for (uint64_t token = tokens.begin(); token < tokens.end(); ++token) {
                std::vector<ReplicaOrdinal> replicas;
                std::set<ParticipantId> owners;
                for (const Part& part : placement.parts) {
                  if (placement.topology.find(part.participant)->rank.dp != dp) continue;
                  for (const Ownership& own : part.owns)
                    if (naive_in(own.layers, layer) && names(own.components, component.name.text()) &&
                        naive_in(own.heads, head) && naive_owns_token(own.tokens, token)) {
                      replicas.push_back(own.replica);
                      owners.insert(part.participant);
                    }
                }
                if (!complete_replica_set(replicas, owners)) return false;
              }
  return true;
}

std::optional<uint64_t> naive_address(const View& view, const std::vector<PageTable>& tables,
                                      const Component& component, uint64_t layer, uint64_t token, uint64_t head,
                                      uint64_t dim) {
  const auto selects = [&](uint64_t t) { return !view.cycle || naive_owns_token(TokenOwnership(*view.cycle), t); };
  if (!view.layers.contains(layer) || !view.tokens.contains(token) || !view.heads.contains(head) ||
      !view.dims.contains(dim) || !selects(token))
    return std::nullopt;
  const PageTable* table = nullptr;
  for (const PageTable& candidate : tables)
    if (view.pages && candidate.id == view.pages->table) table = &candidate;
  uint64_t before = 0;  // selected tokens since the base
  const uint64_t unit = component.tokens_per_row.value_or(1);
  const uint64_t first_row_begin = view.tokens.begin() - view.tokens.begin() % unit;
  for (uint64_t t = table != nullptr ? table->token_begin : first_row_begin; t < token; ++t) before += selects(t);
  const uint64_t row = before / unit;
  uint64_t address = view.offset_bytes + (layer - view.layers.begin()) * view.strides.layer +
                     (head - view.heads.begin()) * view.strides.head + (dim - view.dims.begin()) * view.strides.dim;
  if (table == nullptr) return address + row * view.strides.row;
  const uint64_t rows_per_page = table->page_tokens / component.tokens_per_row.value_or(1);
  return address + table->slots[row / rows_per_page] * view.pages->page_stride_bytes +
         row % rows_per_page * view.strides.row;
}

}  // namespace crossdock::testing
