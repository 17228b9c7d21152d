// What a caller may ask of a plan, and what balancing reports.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"
#include "planner/copy/plan_end.h"

namespace crossdock {

// How a source is chosen among those that own the same elements.
enum class SourceSelection {
  kDeterministic,  // the source replica at index (target's replica ordinal mod their number)
  kBalanced,       // so that the most loaded source NIC carries the least; see planner/kv/balance.h
  kByPage,         // the source replica at index (page mod their number), where page i holds the tokens from
                   // i * selection_page_tokens on; of a state, as kDeterministic
};

// Participants that share a network interface. One that is in no group has its own.
struct NicGroup {
  std::string name;
  std::vector<PlanEnd> participants;

  friend auto operator<=>(const NicGroup&, const NicGroup&) = default;
};

// Part of the key of a cached plan: options with equal fields give equal plans.
struct PlanOptions {
  std::optional<Range> snapshot_tokens;  // the snapshot's interval: windows keep their last tokens only
  Range tokens = Range::all();           // plan only these of it
  // Rows of windows and chunks are moved from the begin of the page of this many tokens on that holds the first live
  // one: for stores that keep whole pages, where the source has them.
  uint64_t live_page_tokens = 1;
  // The source's data-parallel rank. Without it the target's rank mod the number of available ranks, sorted, decides;
  // with kBalanced any rank may serve.
  std::optional<uint64_t> source_dp;
  std::optional<uint64_t> target_dp;  // only targets of this rank
  std::vector<PlanEnd> targets;       // only these; empty: all
  std::vector<PlanEnd> sources;       // take from these only ("explicit"); empty: from all. Without source_dp one of
                                      // their ranks serves a target, as above; kBalanced combines them
  SourceSelection selection = SourceSelection::kDeterministic;
  uint64_t selection_page_tokens = 0;  // with kByPage at least 1; else 0
  std::vector<NicGroup> nics;

  friend auto operator<=>(const PlanOptions&, const PlanOptions&) = default;
};

// What the most loaded source NIC sends, in bytes. Tokens without end are weighed as kWeighedTokens of them.
struct BalanceReport {
  uint64_t deterministic_bytes = 0;
  uint64_t balanced_bytes = 0;
  uint64_t bound_bytes = 0;  // no choice of sources can do with less
};

inline constexpr uint64_t kWeighedTokens = 32768;

}  // namespace crossdock
