// Transfer plan: who sends which elements to whom, exactly and without addresses. Its size follows the number of
// distinct ownership regions, not layers x heads x tokens: an edge holds a set of layers, an interval of heads and a
// set of tokens. Wire form: docs/formats/plan.md.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/ids.h"
#include "model/kv/cache_schema.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/token_set.h"

namespace crossdock {

enum class PlanKind {
  kLive,     // placement -> placement
  kUpload,   // placement -> store layout
  kRestore,  // store layout or store manifest -> placement
};

struct PlanKindName {
  std::string_view name;
  PlanKind kind;
};

inline constexpr std::array<PlanKindName, 3> kPlanKinds = {
    {{"live", PlanKind::kLive}, {"restore", PlanKind::kRestore}, {"upload", PlanKind::kUpload}}};

// As in the wire form: "live", "restore" or "upload".
std::string_view plan_kind_name(PlanKind kind);

// The layers of one group of the cache schema, and one of its components: tensors of equal geometry.
struct PlanTensor {
  Component component;
  IntervalSet layers;
  LiveTokens live;
  Range tokens;  // required of the targets: live tokens of the snapshot within the plan's tokens; [0,1) for a state

  friend bool operator==(const PlanTensor&, const PlanTensor&) = default;
};

// Numbers are indices into the plan's lists.
// Elements(e) = layer_sets[layer_set] x heads x token_sets[token_set] of one tensor. A token set within one edge may be
// cyclic, so an edge needs no list of tokens.
struct Edge {
  uint32_t target = 0;
  uint32_t source = 0;
  uint32_t tensor = 0;
  uint32_t layer_set = 0;
  Range heads;
  uint32_t token_set = 0;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

// A Valid<TransferPlan> keeps the plan's own rules (validate()); it is not proved yet.
struct TransferPlan {
  PlanKind kind = PlanKind::kLive;
  Sha256Digest source_digest;  // identities of the two documents
  Sha256Digest target_digest;
  std::optional<Range> snapshot_tokens;  // the snapshot's interval, which decides what lives in a window
  Range tokens = Range::all();           // what is asked for
  uint64_t live_page_tokens = 1;         // live tokens begin at a multiple of this, at least 1
  std::vector<PlanEnd> sources;          // sorted; those with an edge
  std::vector<PlanEnd> targets;          // sorted; all that the plan is for, also those that need nothing
  std::vector<PlanTensor> tensors;       // in the order of layers, then of component names
  std::vector<IntervalSet> layer_sets;   // sorted, different, each in use
  std::vector<TokenSet> token_sets;      // sorted, different, each in use
  std::vector<Edge> edges;               // sorted by (target, source, tensor, layers, heads, tokens)

  friend bool operator==(const TransferPlan&, const TransferPlan&) = default;
};

// See model/valid.h: order, and the rules that need no other document (indices, empty edges, dims, layers within the
// tensor). planner/kv/verify_plan.h has the proof against the two documents.
void canonicalize(TransferPlan& plan);
void validate(const TransferPlan& plan, Diagnostics& diagnostics);

// Bytes of layers x heads x tokens of one component. Saturates at 2^64 - 1, as for tokens without end.
uint64_t block_bytes(const Component& component, uint64_t layer_count, uint64_t head_count, const TokenSet& tokens);
// The edge is one of the plan's.
uint64_t edge_bytes(const TransferPlan& plan, const Edge& edge);

// Past any of them make_plan() adds plan-limit and makes no plan.
struct PlanLimits {
  uint64_t edge_count_max = 1'000'000;       // as many as a reader with default limits takes
  uint64_t work_max = uint64_t{1} << 30;     // pairs of regions that are looked at
  uint64_t token_range_count_max = 1 << 16;  // blocks of the common period of two cycles
};

}  // namespace crossdock
