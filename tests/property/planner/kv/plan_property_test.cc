// Random schemas, placements, layouts and bindings through the planner and the lowering, against definitions written
// out element by element: who sends what to whom, where each byte lies, and that no other byte is touched.
//
// A failure prints the shrunk case: a `crossdock plan` command and the documents that it reads, one a line, each after
// the name of its file.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <compare>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/store_geometry.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

using Placement = Valid<PlacementManifest>;
using Bindings = std::vector<Valid<RuntimeBinding>>;

constexpr uint64_t kLayersLooked = 12;  // no random document has more layers,
constexpr uint64_t kTokensLooked = 40;  // and no bounded interval more tokens

// ---- failures

// Prints documents into the log of a case that fails, on the way out of it.
class Witness {
 public:
  template <class Document>
  void add(const std::string& name, const Valid<Document>& document) {
    texts_.emplace_back(name + ".json", [document] { return to_json(document); });
  }
  void add(const std::string& name, const Bindings& bindings) {
    for (const Valid<RuntimeBinding>& binding : bindings) add(name + "-" + binding->participant.text(), binding);
  }
  void add_text(const std::string& name, std::function<std::string()> text) {
    texts_.emplace_back(name, std::move(text));
  }
  Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() {
    if (std::uncaught_exceptions() == 0) return;
    for (const auto& [name, text] : texts_) RC_LOG() << name << ": " << text() << "\n";
  }

 private:
  std::vector<std::pair<std::string, std::function<std::string()>>> texts_;
};

void log_faults(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.kept()) RC_LOG() << diagnostic.to_line() << "\n";
}

// The command that plans the printed documents in the same way, once each is in the file of its name.
std::string command_text(const PlanOptions& options) {
  std::string text = "crossdock plan --source source.json --target target.json";
  if (options.snapshot_tokens) text += " --snapshot snapshot.json";
  if (options.tokens != Range::all())
    text += fmt::format(" --tokens {}:{}", options.tokens.begin(), options.tokens.end());
  if (options.source_dp) text += fmt::format(" --source-dp {}", *options.source_dp);
  if (options.target_dp) text += fmt::format(" --target-dp {}", *options.target_dp);
  for (const PlanEnd& end : options.targets) text += " --participant " + end.text();
  for (const PlanEnd& end : options.sources) text += " --from " + end.text();
  if (options.selection == SourceSelection::kBalanced) text += " --selection balanced";
  for (const NicGroup& nic : options.nics) {
    if (!nic.participants.empty()) text += fmt::format(" --nic {}", nic.name);
    for (const PlanEnd& end : nic.participants) text += (&end == &nic.participants.front() ? "=" : ",") + end.text();
  }
  return text;
}

// ---- what has to move

// One element's way, in numbers: parts of the placements, and components in the order of their names.
struct Move {
  uint32_t target;
  uint32_t component;
  uint64_t layer;
  uint64_t head;
  uint64_t token;
  uint32_t source;

  friend auto operator<=>(const Move&, const Move&) = default;
};

std::vector<std::string> component_names(const CacheSchema& schema) {
  std::set<std::string> names;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components) names.insert(component.name.text());
  return {names.begin(), names.end()};
}

// Whether a snapshot of these tokens keeps the token in the group: a row lives as long as one of its tokens does.
bool is_live(const LayerGroup& group, const Component& component, Range snapshot, uint64_t token) {
  if (component.is_state()) return token == 0;
  const uint64_t row_end = token / *component.tokens_per_row * *component.tokens_per_row + *component.tokens_per_row;
  return snapshot.contains(token) && (!group.window_tokens || row_end + *group.window_tokens > snapshot.end());
}

struct PlanCase {
  Placement source;
  Placement target;
  PlanOptions options;
};

// A planner that looks at each element.
class NaivePlanner {
 public:
  explicit NaivePlanner(const PlanCase& drawn) : drawn_(drawn), names_(component_names(drawn.target->cache_schema)) {
    std::set<uint64_t> ranks;
    for (const Part& part : drawn.source->parts)
      if (may_send(part.participant)) ranks.insert(dp_of(*drawn.source, part.participant));
    if (drawn.options.source_dp) ranks = {*drawn.options.source_dp};
    source_dps_.assign(ranks.begin(), ranks.end());
  }

  const std::vector<std::string>& names() const { return names_; }

  // Calls visit(target, target's ordinal, group, component, move without source) for each element that is asked for.
  template <class Visit>
  void for_each_required(Visit visit) const {
    for (uint32_t target = 0; target < drawn_.target->parts.size(); ++target) {
      if (!is_asked(drawn_.target->parts[target].participant)) continue;
      for (const Ownership& own : drawn_.target->parts[target].owns)
        for (uint64_t layer = 0; layer < kLayersLooked; ++layer)
          for (const ComponentName& name : own.components)
            if (own.layers.contains(layer)) visit_owned(target, own, layer, name, visit);
    }
  }

  // Those that may send it, sorted by replica ordinal; of the data-parallel rank that stands for the target's.
  const std::vector<uint32_t>& candidates(const Move& move) { return candidates(move, source_dp_for(move.target)); }

  bool any_can_send(const Move& move) {
    return std::any_of(source_dps_.begin(), source_dps_.end(),
                       [&](uint64_t dp) { return !candidates(move, dp).empty(); });
  }

  bool can_send(const Move& move, uint32_t source) {
    const uint64_t dp = dp_of(*drawn_.source, drawn_.source->parts[source].participant);
    const std::vector<uint32_t>& owners = candidates(move, dp);
    return std::count(source_dps_.begin(), source_dps_.end(), dp) > 0 &&
           std::count(owners.begin(), owners.end(), source) > 0;
  }

  // Those of any data-parallel rank that may serve.
  std::vector<uint32_t> all_candidates(const Move& move) {
    std::vector<uint32_t> all;
    for (const uint64_t dp : source_dps_) {
      const std::vector<uint32_t>& owners = candidates(move, dp);
      all.insert(all.end(), owners.begin(), owners.end());
    }
    return all;
  }

  // Every element that is asked for, from the one that the deterministic choice names; empty when one has no source.
  std::optional<std::vector<Move>> deterministic() {
    std::vector<Move> moves;
    bool complete = true;
    for_each_required([&](uint64_t ordinal, const Component&, Move move) {
      const std::vector<uint32_t>& owners = candidates(move);
      complete &= !owners.empty();
      if (!complete) return;
      move.source = owners[ordinal % owners.size()];
      moves.push_back(move);
    });
    if (!complete) return std::nullopt;
    std::sort(moves.begin(), moves.end());
    return moves;
  }

 private:
  using ElementKey = std::tuple<uint64_t, uint64_t, uint32_t, uint64_t, uint64_t>;  // dp, layer, component, head, token

  template <class Visit>
  void visit_owned(uint32_t target, const Ownership& own, uint64_t layer, const ComponentName& name,
                   Visit visit) const {
    const LayerGroup& group = *drawn_.target->cache_schema.find_group(layer);
    const Component& component = *group.find(name);
    const uint32_t number =
        static_cast<uint32_t>(std::find(names_.begin(), names_.end(), name.text()) - names_.begin());
    for (uint64_t token = 0; token < kTokensLooked; ++token) {
      const bool lives = drawn_.options.snapshot_tokens
                             ? is_live(group, component, *drawn_.options.snapshot_tokens, token)
                         : component.is_state() ? token == 0
                                                : drawn_.target->tokens.contains(token);
      const bool asked = component.is_state() || drawn_.options.tokens.contains(token);
      if (!lives || !asked || !naive_owns_token(own.tokens, token)) continue;
      for (uint64_t head = 0; head < component.head_count; ++head)
        if (own.heads.contains(head))
          visit(own.replica.ordinal, component, Move{target, number, layer, head, token, 0});
    }
  }

  static uint64_t dp_of(const PlacementManifest& placement, const ParticipantId& id) {
    return placement.topology.find(id)->rank.dp;
  }
  bool may_send(const ParticipantId& id) const {
    return drawn_.options.sources.empty() ||
           std::count(drawn_.options.sources.begin(), drawn_.options.sources.end(), PlanEnd(id.text())) > 0;
  }
  bool is_asked(const ParticipantId& id) const {
    if (drawn_.options.target_dp && dp_of(*drawn_.target, id) != *drawn_.options.target_dp) return false;
    return drawn_.options.targets.empty() ||
           std::count(drawn_.options.targets.begin(), drawn_.options.targets.end(), PlanEnd(id.text())) > 0;
  }
  uint64_t source_dp_for(uint32_t target) const {
    return source_dps_[dp_of(*drawn_.target, drawn_.target->parts[target].participant) % source_dps_.size()];
  }

  const std::vector<uint32_t>& candidates(const Move& move, uint64_t dp) {
    const auto [entry, is_new] =
        candidates_.try_emplace(ElementKey(dp, move.layer, move.component, move.head, move.token));
    if (!is_new) return entry->second;
    std::vector<std::pair<uint64_t, uint32_t>> by_ordinal;
    for (const std::string& owner :
         naive_owners(*drawn_.source, dp, move.layer, names_[move.component], move.head, move.token)) {
      if (!may_send(ParticipantId(owner))) continue;
      const Part* part = drawn_.source->find_part(ParticipantId(owner));
      by_ordinal.emplace_back(ordinal_of(*part, move), static_cast<uint32_t>(part - drawn_.source->parts.data()));
    }
    std::sort(by_ordinal.begin(), by_ordinal.end());
    for (const auto& [ordinal, part] : by_ordinal) entry->second.push_back(part);
    return entry->second;
  }

  uint64_t ordinal_of(const Part& part, const Move& move) const {
    for (const Ownership& own : part.owns)
      if (own.layers.contains(move.layer) && own.heads.contains(move.head) &&
          naive_owns_token(own.tokens, move.token) &&
          std::count(own.components.begin(), own.components.end(), ComponentName(names_[move.component])) > 0)
        return own.replica.ordinal;
    RC_FAIL("an owner owns nothing");
  }

  const PlanCase& drawn_;
  std::vector<std::string> names_;
  std::vector<uint64_t> source_dps_;  // that may serve, sorted
  std::map<ElementKey, std::vector<uint32_t>> candidates_;
};

// The moves of a plan, sorted; one that stands in it twice is there twice.
std::vector<Move> moves_of(const TransferPlan& plan, const PlanCase& drawn, const std::vector<std::string>& names) {
  const auto part_number = [](const Placement& placement, const PlanEnd& end) {
    const Part* part = placement->find_part(ParticipantId(end.text()));
    RC_ASSERT(part != nullptr);
    return static_cast<uint32_t>(part - placement->parts.data());
  };
  std::vector<Move> moves;
  for (const Edge& edge : plan.edges) {
    const std::string& name = plan.tensors[edge.tensor].component.name.text();
    Move move{};
    move.target = part_number(drawn.target, plan.targets[edge.target]);
    move.source = part_number(drawn.source, plan.sources[edge.source]);
    move.component = static_cast<uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
    const TokenSet& tokens = plan.token_sets[edge.token_set];
    for (move.layer = 0; move.layer < kLayersLooked; ++move.layer)
      for (move.token = 0; move.token < kTokensLooked; ++move.token) {
        if (!plan.layer_sets[edge.layer_set].contains(move.layer) || !tokens.intervals.contains(move.token)) continue;
        if (tokens.cycle && !naive_owns_token(TokenOwnership(*tokens.cycle), move.token)) continue;
        for (move.head = edge.heads.begin(); move.head < edge.heads.end(); ++move.head) moves.push_back(move);
      }
  }
  std::sort(moves.begin(), moves.end());
  return moves;
}

// ---- drawing options

// Some of the participants, at least one.
std::vector<PlanEnd> random_ends(const Placement& placement, Choices& choices) {
  std::vector<PlanEnd> ends;
  for (const Part& part : placement->parts)
    if (!choices.chance(1, 3)) ends.emplace_back(part.participant.text());
  if (ends.empty()) ends.emplace_back(placement->parts.front().participant.text());
  return ends;
}

std::vector<NicGroup> random_nics(const Placement& placement, Choices& choices) {
  std::vector<NicGroup> nics(choices.below(4));
  for (size_t i = 0; i < nics.size(); ++i) nics[i].name = fmt::format("nic{}", i);
  if (nics.empty()) return nics;
  for (const Part& part : placement->parts)
    if (choices.chance(3, 4)) nics[choices.below(nics.size())].participants.emplace_back(part.participant.text());
  return nics;
}

// Part of the snapshot that cuts no row but those that it cuts itself.
Range random_tokens_within(Range snapshot, uint64_t unit, Choices& choices) {
  const auto boundary = [&](uint64_t token) {
    const uint64_t aligned = token / unit * unit;
    return aligned < snapshot.begin() ? snapshot.begin() : aligned;
  };
  const uint64_t begin = boundary(choices.between(snapshot.begin(), snapshot.end() - 1));
  const uint64_t end = boundary(choices.between(begin, snapshot.end()));
  return Range(begin, end > begin ? end : snapshot.end());
}

std::optional<uint64_t> random_dp(const Placement& placement, const std::vector<PlanEnd>& only, Choices& choices) {
  std::set<uint64_t> ranks;
  for (const Participant& participant : placement->topology.participants)
    if (only.empty() || std::count(only.begin(), only.end(), PlanEnd(participant.id.text())) > 0)
      ranks.insert(participant.rank.dp);
  if (!choices.chance(1, 4)) return std::nullopt;
  return *std::next(ranks.begin(), static_cast<ptrdiff_t>(choices.below(ranks.size())));
}

// What source and target of any plan agree about.
struct Documents {
  Valid<CacheSchema> schema;
  Valid<CacheSchema> target_schema;  // asks for a part of it, or is the same
  Valid<SnapshotDescriptor> snapshot;
};

Documents random_documents(const Draw& draw) {
  Choices schema_choices(draw, Section::kSchema);
  Choices token_choices(draw, Section::kTokens);
  const Valid<CacheSchema> schema = random_schema(schema_choices);
  const Valid<CacheSchema> target_schema = random_part_of(schema, schema_choices);
  return Documents{schema, target_schema, snapshot_of(schema, random_tokens(token_choices))};
}

// Options that valid documents always have a plan for.
PlanOptions random_options(const Documents& documents, const Placement& source, const Placement& target,
                           Choices& choices) {
  PlanOptions options;
  options.snapshot_tokens = documents.snapshot->tokens;
  if (choices.chance(1, 4))
    options.tokens = random_tokens_within(documents.snapshot->tokens, row_unit(*documents.schema), choices);
  options.source_dp = random_dp(source, {}, choices);
  if (choices.chance(1, 4))
    options.targets = random_ends(target, choices);
  else
    options.target_dp = random_dp(target, {}, choices);
  if (choices.chance(1, 3)) {
    options.selection = SourceSelection::kBalanced;
    options.nics = random_nics(source, choices);
  }
  return options;
}

struct LiveCase : PlanCase {
  Documents documents;
};

LiveCase random_live_case(const Draw& draw) {
  Documents documents = random_documents(draw);
  const Range tokens = documents.snapshot->tokens;
  Choices source_choices(draw, Section::kSource);
  Choices target_choices(draw, Section::kTarget);
  Choices option_choices(draw, Section::kOptions);
  Placement source = random_placement(documents.schema, tokens, "source", source_choices);
  Placement target = random_placement(documents.target_schema, tokens, "target", target_choices);
  PlanOptions options = random_options(documents, source, target, option_choices);
  return LiveCase{{std::move(source), std::move(target), std::move(options)}, std::move(documents)};
}

void add_to(Witness& witness, const LiveCase& drawn) {
  witness.add("source", drawn.source);
  witness.add("target", drawn.target);
  witness.add("snapshot", drawn.documents.snapshot);
  witness.add_text("command", [&drawn] { return command_text(drawn.options); });
}

Valid<TransferPlan> plan_or_fail(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                 BalanceReport* report = nullptr) {
  Diagnostics diagnostics;
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, PlanLimits{}, diagnostics, report);
  if (plan) {
    const PlanProof proof = verify_plan(*plan, source, target, VerifyLimits{}, diagnostics);
    RC_ASSERT(proof.complete);
  }
  log_faults(diagnostics);
  RC_ASSERT(plan.has_value());
  RC_ASSERT(diagnostics.empty());
  return *plan;
}

PlanSide side_of(const Placement& placement) { return PlanSide(placement, digest(placement)); }

// ---- (a) plans

// The bytes that each network interface sends, whole rows counted once for each target.
std::vector<uint64_t> loads_of(const std::vector<Move>& moves, const PlanCase& drawn,
                               const std::vector<std::string>& names) {
  std::vector<uint64_t> loads(drawn.options.nics.size() + drawn.source->parts.size());
  std::set<Move> rows;
  for (Move row : moves) {
    const Component& component =
        *drawn.target->cache_schema.find_group(row.layer)->find(ComponentName(names[row.component]));
    row.token = component.is_state() ? 0 : row.token / *component.tokens_per_row;
    if (!rows.insert(row).second) continue;
    size_t nic = drawn.options.nics.size() + row.source;
    const PlanEnd end(drawn.source->parts[row.source].participant.text());
    for (size_t i = 0; i < drawn.options.nics.size(); ++i) {
      const std::vector<PlanEnd>& members = drawn.options.nics[i].participants;
      if (std::count(members.begin(), members.end(), end) > 0) nic = i;
    }
    loads[nic] += component.head_bytes();
  }
  return loads;
}

uint64_t highest(const std::vector<uint64_t>& loads) { return *std::max_element(loads.begin(), loads.end()); }

RC_GTEST_PROP(Plan, BringsEachRequiredElementOnceFromTheSourceThatTheRuleNames, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  drawn.options.selection = SourceSelection::kDeterministic;
  Choices choices(draw, Section::kStore);
  // Without a snapshot the source has to hold whatever the target does.
  if (choices.chance(1, 4) && drawn.source->tokens.contains(drawn.target->tokens) &&
      drawn.options.tokens == Range::all())
    drawn.options.snapshot_tokens = std::nullopt;
  Witness witness;
  add_to(witness, drawn);
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  NaivePlanner naive(drawn);
  const std::optional<std::vector<Move>> expected = naive.deterministic();
  RC_ASSERT(expected.has_value());
  RC_ASSERT(moves_of(*plan, drawn, naive.names()) == *expected);
}

RC_GTEST_PROP(Plan, FromStatedSourcesIsRightOrNamesAGap, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  Choices choices(draw, Section::kStore);
  drawn.options.selection = SourceSelection::kDeterministic;
  drawn.options.sources = random_ends(drawn.source, choices);
  drawn.options.source_dp = random_dp(drawn.source, drawn.options.sources, choices);
  Witness witness;
  add_to(witness, drawn);
  NaivePlanner naive(drawn);
  const std::optional<std::vector<Move>> expected = naive.deterministic();
  RC_CLASSIFY(expected.has_value(), "complete");
  if (expected) {
    const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
    RC_ASSERT(moves_of(*plan, drawn, naive.names()) == *expected);
    return;
  }
  Diagnostics diagnostics;
  RC_ASSERT(!make_plan(side_of(drawn.source), side_of(drawn.target), drawn.options, PlanLimits{}, diagnostics));
  log_faults(diagnostics);
  RC_ASSERT(diagnostics.has(Rule::kPlanGap) || diagnostics.has(Rule::kPlanEmpty));
}

// The most that any set of interfaces has to send between them because no other can, for each of them.
uint64_t least_highest_load(NaivePlanner& naive, const PlanCase& drawn) {
  std::map<uint64_t, std::vector<Move>> only_from;  // by the set of interfaces, as bits
  naive.for_each_required([&](uint64_t, const Component&, Move move) {
    uint64_t nics = 0;
    for (const uint32_t source : naive.all_candidates(move)) {
      Move one = move;
      one.source = source;
      const std::vector<uint64_t> load = loads_of({one}, drawn, naive.names());
      nics |= uint64_t{1} << (std::max_element(load.begin(), load.end()) - load.begin());
    }
    only_from[nics].push_back(move);
  });
  uint64_t all = 0;
  std::vector<std::pair<uint64_t, uint64_t>> bytes;
  for (const auto& [nics, moves] : only_from) {
    const std::vector<uint64_t> loads = loads_of(moves, drawn, naive.names());
    bytes.emplace_back(nics, std::accumulate(loads.begin(), loads.end(), uint64_t{0}));
    all |= nics;
  }
  uint64_t bound = 0;
  for (uint64_t set = all; set > 0; set = (set - 1) & all) {
    uint64_t sum = 0;
    for (const auto& [nics, own] : bytes)
      if ((nics & ~set) == 0) sum += own;
    const uint64_t count = static_cast<uint64_t>(__builtin_popcountll(set));
    bound = std::max(bound, (sum + count - 1) / count);
  }
  return bound;
}

// Whether the blocks that a balanced choice deals out whole (one layer and head for one target, of which the same
// sources have the same tokens) are all of one size.
bool blocks_weigh_the_same(NaivePlanner& naive, const PlanCase& drawn) {
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, std::vector<uint32_t>>, std::vector<Move>> blocks;
  naive.for_each_required([&](uint64_t, const Component&, const Move& move) {
    blocks[{move.target, move.component, move.layer, move.head, naive.candidates(move)}].push_back(move);
  });
  std::set<uint64_t> bytes;
  for (const auto& [block, moves] : blocks) bytes.insert(highest(loads_of(moves, drawn, naive.names())));
  return bytes.size() <= 1;
}

// True when it is better than the deterministic choice.
bool check_balanced(const LiveCase& drawn) {
  BalanceReport report;
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options, &report);
  NaivePlanner naive(drawn);
  std::vector<Move> moves = moves_of(*plan, drawn, naive.names());
  for (const Move& move : moves) RC_ASSERT(naive.can_send(move, move.source));
  const uint64_t load = highest(loads_of(moves, drawn, naive.names()));
  const std::optional<std::vector<Move>> deterministic = naive.deterministic();
  RC_ASSERT(deterministic.has_value());
  const uint64_t deterministic_load = highest(loads_of(*deterministic, drawn, naive.names()));
  RC_LOG() << fmt::format("load {}, deterministic {}; reported: {}, deterministic {}, bound {}", load,
                          deterministic_load, report.balanced_bytes, report.deterministic_bytes, report.bound_bytes)
           << "\n";
  RC_ASSERT(load == report.balanced_bytes);
  RC_ASSERT(load <= deterministic_load);
  RC_ASSERT(report.deterministic_bytes == deterministic_load);
  RC_ASSERT(load >= report.bound_bytes);
  RC_ASSERT(report.bound_bytes >= least_highest_load(naive, drawn));
  if (blocks_weigh_the_same(naive, drawn)) RC_ASSERT(load == report.bound_bytes);
  // The same elements as in the deterministic plan, each once.
  std::vector<Move> expected = *deterministic;
  for (std::vector<Move>* list : {&moves, &expected}) {
    for (Move& move : *list) move.source = 0;
    std::sort(list->begin(), list->end());
  }
  RC_ASSERT(moves == expected);
  return load < deterministic_load;
}

RC_GTEST_PROP(Plan, BalancedIsNoWorseThanDeterministicAndNoBetterThanTheBound, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  Choices choices(draw, Section::kStore);
  drawn.options.selection = SourceSelection::kBalanced;
  Witness witness;
  add_to(witness, drawn);
  bool better = false;
  for (int times = 0; times < 4; ++times) {
    drawn.options.nics = random_nics(drawn.source, choices);
    better |= check_balanced(drawn);
  }
  RC_CLASSIFY(better, "better");
}

// ---- memory

using RegionKey = std::pair<InstanceId, RegionId>;
using Bytes = std::vector<uint8_t>;
using Memory = std::map<RegionKey, Bytes>;

uint8_t hash(std::initializer_list<uint64_t> values) {
  uint64_t state = 0;
  for (const uint64_t value : values) {
    state ^= value;
    state = splitmix64(state);
  }
  return static_cast<uint8_t>(state >> 56);
}

// What lies in a region where no element does: another pattern for each salt.
void fill(Memory& memory, uint64_t salt) {
  uint64_t number = 0;
  for (auto& [key, bytes] : memory) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = hash({salt, number, i});
    ++number;
  }
}

void add_regions(const Bindings& bindings, Memory& memory) {
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const Region& region : binding->regions) memory[{binding->instance, region.id}] = Bytes(region.bytes);
}

// An element; a component is known by its name.
struct Element {
  const Component& component;
  uint64_t layer;
  uint64_t head;
  uint64_t token;
  uint64_t dim;

  uint64_t row() const { return token / component.tokens_per_row.value_or(1); }
};

// Calls visit(Element, address of its first byte) for each element that a view shows.
template <class Visit>
void for_each_element(const View& view, const std::vector<PageTable>& tables, const CacheSchema& schema, Visit visit) {
  for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
    const Component& component = *schema.find_group(layer)->find(view.component);
    for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token)
      for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head)
        for (uint64_t dim = view.dims.begin(); dim < view.dims.end(); ++dim) {
          const auto address = naive_address(view, tables, component, layer, token, head, dim);
          if (address) visit(Element{component, layer, head, token, dim}, *address);
        }
  }
}

// The bytes of an element, which every copy of it has: those of its row, whichever of its tokens is looked at.
void write_element(const Element& element, uint64_t address, Bytes& bytes) {
  uint64_t name = 0;
  for (const char letter : element.component.name.text()) name = name * 256 + static_cast<uint8_t>(letter);
  for (uint64_t i = 0; i < element.component.item_bytes; ++i)
    bytes.at(address + i) = hash({name, element.layer, element.head, element.row(), element.dim, i});
}

// Writes the elements that the bindings show and that `wanted(participant, element)` names.
template <class Wanted>
void write_elements(const Bindings& bindings, const CacheSchema& schema, Wanted wanted, Memory& memory) {
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views) {
      Bytes& bytes = memory.at({binding->instance, view.region});
      for_each_element(view, binding->page_tables, schema, [&](const Element& element, uint64_t address) {
        if (wanted(binding->participant, element)) write_element(element, address, bytes);
      });
    }
}

Bytes& region_of(Memory& memory, const BoundRegion& region) { return memory.at({region.instance, region.id}); }

// Copies step by step and piece by piece, as slowly as possible; counts how often each target byte is written.
struct NaiveCopier {
  Memory source;
  Memory target;
  std::map<RegionKey, std::vector<int>> written = {};
  StepCounts counts = {};

  void run(const LoweredPlan& lowered) {
    for (const auto& [key, bytes] : target) written[key].resize(bytes.size());
    for (const LoweredPair& pair : lowered.pairs()) {
      StepCounts own;
      lowered.for_each_step(pair, [&](const CopyStep& step) { copy(step, lowered, own); });
      RC_ASSERT(own.steps == pair.counts.steps);
      RC_ASSERT(own.ranges == pair.counts.ranges);
      RC_ASSERT(own.bytes == pair.counts.bytes);
      counts += own;
    }
    RC_ASSERT(counts.steps == lowered.counts().steps);
    RC_ASSERT(counts.ranges == lowered.counts().ranges);
    RC_ASSERT(counts.bytes == lowered.counts().bytes);
    RC_ASSERT(counts.steps <= lowered.counts().steps_planned);
    RC_ASSERT(lowered.counts().steps_planned <= lowered.counts().head_rows);
  }

 private:
  void copy(const CopyStep& step, const LoweredPlan& lowered, StepCounts& own) {
    const BoundRegion& from = lowered.source_regions().at(step.source_region);
    const BoundRegion& to = lowered.target_regions().at(step.target_region);
    const Bytes& from_bytes = region_of(source, from);
    Bytes& to_bytes = region_of(target, to);
    RC_ASSERT(step.bytes >= 1u);
    for (const CopyAxis& axis : step.axes()) RC_ASSERT(axis.extent >= 2u);
    RC_ASSERT(step.source_offset + step.source_span() <= from_bytes.size());
    RC_ASSERT(step.target_offset + step.target_span() <= to_bytes.size());
    ++own.steps;
    ByteRanges pieces(step);
    for (ByteCopy piece; pieces.next(piece); ++own.ranges)
      for (uint64_t i = 0; i < piece.bytes; ++i, ++own.bytes) {
        to_bytes.at(piece.target_offset + i) = from_bytes.at(piece.source_offset + i);
        ++written[{to.instance, to.id}].at(piece.target_offset + i);
      }
  }
};

// Success means: the bytes that were to come are the elements', each written once, and nothing else was touched (I1).
void check_target(const NaiveCopier& copier, const Memory& expected, const Memory& wanted_bytes) {
  for (const auto& [key, bytes] : expected) {
    const Bytes& wanted = wanted_bytes.at(key);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int times = copier.written.at(key).at(i);
      if (times == (wanted[i] != 0 ? 1 : 0) && copier.target.at(key)[i] == bytes[i]) continue;
      RC_LOG() << fmt::format("region '{}' of '{}', byte {}: written {} times, {} wanted; holds {}, should {}",
                              key.second.text(), key.first.text(), i, times, wanted[i] != 0 ? 1 : 0,
                              copier.target.at(key)[i], bytes[i])
               << "\n";
      RC_FAIL("a byte of the target is wrong");
    }
  }
}

// Ones where an element that `wanted` names lies.
template <class Wanted>
Memory marked(const Bindings& bindings, const CacheSchema& schema, Wanted wanted, Memory memory) {
  for (auto& [key, bytes] : memory) std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      for_each_element(view, binding->page_tables, schema, [&](const Element& element, uint64_t address) {
        Bytes& bytes = memory.at({binding->instance, view.region});
        for (uint64_t i = 0; i < element.component.item_bytes; ++i)
          if (wanted(binding->participant, element)) bytes.at(address + i) = 1;
      });
  return memory;
}

// ---- (b) steps

// The context of a side that may ask for less than the snapshot holds, which then is another schema's.
BindingContext context_of(const Placement& placement, const Documents& documents) {
  return BindingContext(placement, placement->cache_schema == *documents.schema ? &documents.snapshot : nullptr);
}

std::vector<const Valid<RuntimeBinding>*> pointers_to(const Bindings& bindings) {
  std::vector<const Valid<RuntimeBinding>*> pointers;
  for (const Valid<RuntimeBinding>& binding : bindings) pointers.push_back(&binding);
  return pointers;
}

BoundSide bind_or_fail(const BindingContext& context, const Bindings& bindings) {
  Diagnostics diagnostics;
  std::optional<BoundSide> side = BoundSide::bind(context, pointers_to(bindings), diagnostics);
  log_faults(diagnostics);
  RC_ASSERT(side.has_value());
  return *side;
}

LoweredPlan lower_or_fail(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                          const LowerOptions& options = {}) {
  Diagnostics diagnostics;
  std::optional<LoweredPlan> lowered = lower(plan, source, target, options, LowerLimits{}, diagnostics);
  log_faults(diagnostics);
  RC_ASSERT(lowered.has_value());
  return std::move(*lowered);
}

// Which elements the options ask for of what the bindings of a target show.
struct Asked {
  const Placement& target;
  const PlanOptions& options;

  bool operator()(const ParticipantId& participant, const Element& element) const {
    const bool is_target = options.targets.empty() ||
                           std::count(options.targets.begin(), options.targets.end(), PlanEnd(participant.text())) > 0;
    const bool is_rank = !options.target_dp || target->topology.find(participant)->rank.dp == *options.target_dp;
    return is_target && is_rank && (element.component.is_state() || options.tokens.contains(element.token));
  }
};

bool has_divided_dims(const Bindings& bindings, const CacheSchema& schema) {
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      if (view.dims.size() != schema.find_group(view.layers.begin())->find(view.component)->head_dim) return true;
  return false;
}

// Rows of one layer and head that the options ask for.
uint64_t count_head_rows(const Bindings& bindings, const CacheSchema& schema, const Asked& asked) {
  std::set<std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>> rows;
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      for_each_element(view, binding->page_tables, schema, [&](const Element& element, uint64_t) {
        if (asked(binding->participant, element))
          rows.emplace(binding->participant.text(), view.component.text(), element.layer, element.head, element.row());
      });
  return rows.size();
}

struct BoundCase : LiveCase {
  Bindings source_bindings;
  Bindings target_bindings;
};

BoundCase random_bound_case(const Draw& draw, BindingStyle style) {
  LiveCase drawn = random_live_case(draw);
  Choices source_choices(draw, Section::kSourceBinding);
  Choices target_choices(draw, Section::kTargetBinding);
  Bindings source = random_bindings(drawn.source, drawn.documents.snapshot, style, source_choices);
  Bindings target = random_bindings(drawn.target, drawn.documents.snapshot, style, target_choices);
  return BoundCase{std::move(drawn), std::move(source), std::move(target)};
}

void add_to(Witness& witness, const BoundCase& drawn) {
  add_to(witness, static_cast<const LiveCase&>(drawn));
  witness.add("source-binding", drawn.source_bindings);
  witness.add("target-binding", drawn.target_bindings);
  witness.add_text("with bindings", [] {
    return "--steps --source-binding source-binding-*.json --target-binding target-binding-*.json";
  });
}

constexpr auto kEverything = [](const ParticipantId&, const Element&) { return true; };

// What a writer or a reader lowers for itself is its part of the whole.
void check_parts(const TransferPlan& plan, const BoundSide& source, const BoundSide& target, const LoweredPlan& whole) {
  size_t pair_count = 0;
  const auto check_part = [&](const LowerOptions& options) {
    const LoweredPlan part = lower_or_fail(plan, source, target, options);
    for (const LoweredPair& pair : part.pairs()) {
      const auto same = std::find_if(whole.pairs().begin(), whole.pairs().end(), [&](const LoweredPair& each) {
        return each.source == pair.source && each.target == pair.target;
      });
      RC_ASSERT(same != whole.pairs().end());
      RC_ASSERT(part.steps(pair) == whole.steps(*same));
      RC_ASSERT(pair.counts == same->counts);
    }
    pair_count += part.pairs().size();
  };
  for (const PlanEnd& end : plan.sources) check_part(LowerOptions{end, std::nullopt});
  for (const PlanEnd& end : plan.targets) check_part(LowerOptions{std::nullopt, end});
  RC_ASSERT(pair_count == 2 * whole.pairs().size());
}

RC_GTEST_PROP(Lowering, CopiesEachRequiredByteOnceAndTouchesNothingElse, (const Draw& draw)) {
  const BoundCase drawn = random_bound_case(draw, BindingStyle::kAny);
  Witness witness;
  add_to(witness, drawn);
  const CacheSchema& target_schema = drawn.target->cache_schema;
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  const BindingContext source_context = context_of(drawn.source, drawn.documents);
  const BindingContext target_context = context_of(drawn.target, drawn.documents);
  const BoundSide source = bind_or_fail(source_context, drawn.source_bindings);
  const BoundSide target = bind_or_fail(target_context, drawn.target_bindings);
  const LoweredPlan lowered = lower_or_fail(*plan, source, target);

  NaiveCopier copier;
  add_regions(drawn.source_bindings, copier.source);
  add_regions(drawn.target_bindings, copier.target);
  fill(copier.source, 1);
  fill(copier.target, 2);
  write_elements(drawn.source_bindings, drawn.source->cache_schema, kEverything, copier.source);
  const Asked asked{drawn.target, drawn.options};
  Memory expected = copier.target;
  write_elements(drawn.target_bindings, target_schema, asked, expected);
  const Memory wanted = marked(drawn.target_bindings, target_schema, asked, expected);
  copier.run(lowered);
  check_target(copier, expected, wanted);

  const uint64_t head_rows = count_head_rows(drawn.target_bindings, target_schema, asked);
  const bool divided = has_divided_dims(drawn.source_bindings, drawn.source->cache_schema) ||
                       has_divided_dims(drawn.target_bindings, target_schema);
  if (divided)
    RC_ASSERT(lowered.counts().head_rows >= head_rows);
  else
    RC_ASSERT(lowered.counts().head_rows == head_rows);
  check_parts(*plan, source, target, lowered);
  RC_CLASSIFY(copier.counts.bytes > 200, "more than 200 bytes");
  RC_CLASSIFY(plan->edges.size() > 10, "more than 10 edges");
}

// ---- (c) stores

using ObjectMemory = std::map<RegionId, Bytes>;

// Where a store layout puts an element: docs/formats.md, "Store layout", written out.
class NaiveLayout {
 public:
  explicit NaiveLayout(const StoreLayout& layout) : layout_(layout) {}

  // The object, and the offset of the element's first byte in it.
  std::pair<RegionId, uint64_t> place_of(const Element& element) const {
    for (const StorePart& part : layout_.parts) {
      if (!part.layers.contains(element.layer) || !part.heads.contains(element.head) ||
          std::count(part.components.begin(), part.components.end(), element.component.name) == 0)
        continue;
      std::optional<uint64_t> offset;
      for_each_array(part, element.component.is_state(), [&](const LayerGroup& group, const Component& each, Range at) {
        if (each.name == element.component.name && group.layers.contains(element.layer))
          offset = at.begin() + offset_in_array(part, group, element);
      });
      RC_ASSERT(offset.has_value());
      return {object_of(part, element), *offset};
    }
    RC_FAIL("an element is in no part");
  }

  // The objects that the elements lie in, all bytes zero.
  ObjectMemory objects_for(const std::vector<Element>& elements) const {
    ObjectMemory objects;
    for (const Element& element : elements) {
      const RegionId id = place_of(element).first;
      for (const StorePart& part : layout_.parts)
        if (id.text().substr(0, id.text().rfind('/')) == part.key.text())
          for_each_array(part, element.component.is_state(),
                         [&](const LayerGroup&, const Component&, Range at) { objects[id] = Bytes(at.end()); });
    }
    return objects;
  }

 private:
  // Calls visit(group, component, its bytes) for each array in the part's objects of states, or of pages. An array
  // begins at a multiple of its item size.
  template <class Visit>
  void for_each_array(const StorePart& part, bool of_states, Visit visit) const {
    uint64_t end = 0;
    for (const ComponentName& name : part.components)
      for (const LayerGroup& group : layout_.cache_schema.groups) {
        const Component* component = group.find(name);
        if (component == nullptr || component->is_state() != of_states || layer_count(part, group) == 0) continue;
        while (end % component->item_bytes != 0) ++end;
        const Range bytes(end, end + array_bytes(part, group, *component));
        visit(group, *component, bytes);
        end = bytes.end();
      }
  }
  RegionId object_of(const StorePart& part, const Element& element) const {
    if (element.component.is_state()) return RegionId(part.key.text() + "/state");
    return RegionId(fmt::format("{}/{}", part.key.text(), element.token / layout_.page_tokens));
  }
  static uint64_t rank_in(const IntervalSet& set, uint64_t value) {
    uint64_t rank = 0;
    for (uint64_t i = 0; i < value; ++i) rank += set.contains(i);
    return rank;
  }
  static uint64_t layer_count(const StorePart& part, const LayerGroup& group) {
    return rank_in(part.layers.intersect(group.layers), kLayersLooked);
  }
  uint64_t row_count(const Component& component) const {
    return component.is_state() ? 1 : layout_.page_tokens / *component.tokens_per_row;
  }
  uint64_t array_bytes(const StorePart& part, const LayerGroup& group, const Component& component) const {
    return row_count(component) * layer_count(part, group) * part.heads.count() * component.head_dim *
           component.item_bytes;
  }
  uint64_t offset_in_array(const StorePart& part, const LayerGroup& group, const Element& element) const {
    const Component& component = element.component;
    const uint64_t rows = row_count(component);
    const uint64_t row = element.row() % rows;
    const uint64_t layers = layer_count(part, group);
    const uint64_t layer = rank_in(part.layers.intersect(group.layers), element.layer);
    const uint64_t heads = part.heads.count();
    const uint64_t head = rank_in(part.heads, element.head);
    uint64_t cell = (row * layers + layer) * heads + head;
    if (layout_.object_order == ObjectOrder::kLphd) cell = (layer * rows + row) * heads + head;
    if (layout_.object_order == ObjectOrder::kHpld) cell = (head * rows + row) * layers + layer;
    return (cell * component.head_dim + element.dim) * component.item_bytes;
  }

  const StoreLayout& layout_;
};

// All that a snapshot holds.
std::vector<Element> elements_of(const CacheSchema& schema, Range snapshot) {
  std::vector<Element> elements;
  for (const LayerGroup& group : schema.groups)
    for (uint64_t layer = 0; layer < kLayersLooked; ++layer)
      for (const Component& component : group.components)
        for (uint64_t token = 0; token < kTokensLooked && group.layers.contains(layer); ++token)
          for (uint64_t head = 0; head < component.head_count && is_live(group, component, snapshot, token); ++head)
            for (uint64_t dim = 0; dim < component.head_dim; ++dim)
              elements.push_back(Element{component, layer, head, token, dim});
  return elements;
}

struct StoreCase {
  BoundCase bound;
  Valid<StoreLayout> layout;
  bool of_source;  // the layout was made from the source's placement
};

// Whether no element lies in two different regions of the first replicas of a data-parallel rank.
bool regions_are_disjoint(const PlacementManifest& placement, uint64_t dp) {
  std::map<std::tuple<uint64_t, ComponentName, uint64_t>,
           std::set<std::tuple<IntervalSet, std::vector<ComponentName>, IntervalSet>>>
      regions;
  for (const Part& part : placement.parts) {
    if (placement.topology.find(part.participant)->rank.dp != dp) continue;
    for (const Ownership& own : part.owns)
      for (uint64_t layer = 0; layer < kLayersLooked; ++layer)
        for (const ComponentName& name : own.components)
          for (uint64_t head = 0; head < own.heads.hull().end(); ++head)
            if (own.replica.ordinal == 0 && own.layers.contains(layer) && own.heads.contains(head))
              regions[{layer, name, head}].emplace(own.layers, own.components, own.heads);
  }
  return std::all_of(regions.begin(), regions.end(), [](const auto& entry) { return entry.second.size() == 1; });
}

StoreCase random_store_case(const Draw& draw) {
  BoundCase bound = random_bound_case(draw, BindingStyle::kAny);
  Choices choices(draw, Section::kStore);
  const Valid<CacheSchema>& schema = bound.documents.schema;
  if (choices.chance(1, 2)) {
    const std::optional<uint64_t> dp = random_dp(bound.source, {}, choices);
    const ObjectOrder order = kObjectOrders[choices.below(kObjectOrders.size())].order;
    Diagnostics diagnostics;
    std::optional<Valid<StoreLayout>> layout =
        layout_of(bound.source, dp, order, row_unit(*schema) * choices.between(1, 4), "layout", diagnostics);
    log_faults(diagnostics);
    RC_ASSERT(layout.has_value() == regions_are_disjoint(*bound.source, dp.value_or(0)));
    if (layout) return StoreCase{std::move(bound), std::move(*layout), true};
  }
  Valid<StoreLayout> layout = random_layout(schema, choices);
  return StoreCase{std::move(bound), std::move(layout), false};
}

Memory as_memory(const ObjectMemory& objects) {
  Memory memory;
  for (const auto& [id, bytes] : objects) memory[{InstanceId(), id}] = bytes;
  return memory;
}

// What a store would publish for the objects; nobody looks at the checksums here.
Valid<StoreManifest> manifest_of(const SnapshotObjects& objects, const Documents& documents) {
  StoreManifest manifest;
  manifest.snapshot = *documents.snapshot;
  manifest.cache_schema = *documents.schema;
  for (const ObjectShape& object : objects.objects)
    manifest.objects.push_back(StoredObject{object.id, object.bytes, 8, std::vector<uint32_t>((object.bytes + 7) / 8)});
  manifest.views = objects.views;
  Diagnostics diagnostics;
  std::optional<Valid<StoreManifest>> valid = Valid<StoreManifest>::make(std::move(manifest), diagnostics);
  log_faults(diagnostics);
  RC_ASSERT(valid.has_value());
  return *valid;
}

// Objects full of a snapshot, and a look at them.
struct Stored {
  SnapshotObjects objects;
  Memory memory;
};

// Plans, lowers and runs an upload, and checks each byte of each object.
Stored upload(const StoreCase& drawn) {
  const BoundCase& bound = drawn.bound;
  const Range tokens = bound.documents.snapshot->tokens;
  const Sha256Digest layout_digest = digest(drawn.layout);
  PlanOptions options = bound.options;
  options.tokens = Range::all();
  options.targets = {};
  options.target_dp = std::nullopt;
  const Valid<TransferPlan> plan = plan_or_fail(side_of(bound.source), PlanSide(drawn.layout, layout_digest), options);
  Diagnostics diagnostics;
  const std::optional<SnapshotObjects> objects = snapshot_objects(drawn.layout, layout_digest, tokens, diagnostics);
  RC_ASSERT(objects.has_value());
  const BindingContext context(bound.source, &bound.documents.snapshot);
  const BoundSide source = bind_or_fail(context, bound.source_bindings);
  const BoundSide target(*objects);
  const LoweredPlan lowered = lower_or_fail(*plan, source, target);

  const NaiveLayout naive(*drawn.layout);
  const std::vector<Element> elements = elements_of(*bound.documents.schema, tokens);
  ObjectMemory expected = naive.objects_for(elements);
  NaiveCopier copier;
  copier.target = as_memory(expected);
  RC_ASSERT(objects->objects.size() == expected.size());
  for (const ObjectShape& object : objects->objects) RC_ASSERT(expected.at(object.id).size() == object.bytes);
  add_regions(bound.source_bindings, copier.source);
  fill(copier.source, 1);
  fill(copier.target, 2);
  write_elements(bound.source_bindings, bound.source->cache_schema, kEverything, copier.source);
  Memory wanted = copier.target;
  for (auto& [key, bytes] : wanted) std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  Memory expected_memory = copier.target;
  for (const Element& element : elements) {
    const auto [id, offset] = naive.place_of(element);
    write_element(element, offset, expected_memory.at({InstanceId(), id}));
    for (uint64_t i = 0; i < element.component.item_bytes; ++i) wanted.at({InstanceId(), id}).at(offset + i) = 1;
  }
  copier.run(lowered);
  check_target(copier, expected_memory, wanted);
  return Stored{*objects, std::move(copier.target)};
}

// Runs a plan from the stored objects to the target's bindings, and checks each byte there.
void restore(const StoreCase& drawn, const Stored& stored, const PlanSide& side, const BoundSide& source) {
  const BoundCase& bound = drawn.bound;
  PlanOptions options = bound.options;
  options.source_dp = std::nullopt;
  options.nics = {};
  const Valid<TransferPlan> plan = plan_or_fail(side, side_of(bound.target), options);
  const BindingContext context = context_of(bound.target, bound.documents);
  const BoundSide target = bind_or_fail(context, bound.target_bindings);
  const LoweredPlan lowered = lower_or_fail(*plan, source, target);
  NaiveCopier copier;
  copier.source = stored.memory;
  add_regions(bound.target_bindings, copier.target);
  fill(copier.target, 3);
  const Asked asked{bound.target, options};
  Memory expected = copier.target;
  write_elements(bound.target_bindings, bound.target->cache_schema, asked, expected);
  const Memory wanted = marked(bound.target_bindings, bound.target->cache_schema, asked, expected);
  copier.run(lowered);
  check_target(copier, expected, wanted);
}

RC_GTEST_PROP(Store, WhatWasUploadedThroughAnyLayoutIsRestoredIntoAnyPlacement, (const Draw& draw)) {
  const StoreCase drawn = random_store_case(draw);
  Witness witness;
  add_to(witness, drawn.bound);
  witness.add("layout", drawn.layout);
  witness.add_text("upload", [] {
    return "crossdock plan --upload --source source.json --layout layout.json --snapshot snapshot.json";
  });
  witness.add_text("restore", [] {
    return "crossdock plan --restore --layout layout.json --target target.json --snapshot snapshot.json";
  });
  const Stored stored = upload(drawn);
  RC_CLASSIFY(drawn.of_source, "layout of the source");
  const Sha256Digest layout_digest = digest(drawn.layout);
  restore(drawn, stored, PlanSide(drawn.layout, layout_digest), BoundSide(stored.objects));
  const Valid<StoreManifest> manifest = manifest_of(stored.objects, drawn.bound.documents);
  const Sha256Digest manifest_digest = digest(manifest);
  restore(drawn, stored, PlanSide(manifest, manifest_digest), BoundSide(manifest, manifest_digest));
}

RC_GTEST_PROP(Store, InALayoutOfThePlacementEachWriterPutsWholeObjects, (const Draw& draw)) {
  const Documents documents = random_documents(draw);
  Choices source_choices(draw, Section::kSource);
  Choices choices(draw, Section::kStore);
  const Placement source = random_placement(documents.schema, documents.snapshot->tokens, "source", source_choices);
  Witness witness;
  witness.add("source", source);
  PlanOptions options;
  options.snapshot_tokens = documents.snapshot->tokens;
  options.source_dp = random_dp(source, {}, choices);
  for (const Part& part : source->parts)
    for (const Ownership& own : part.owns) RC_PRE(own.tokens == TokenOwnership(AllTokens()));
  RC_PRE(regions_are_disjoint(*source, options.source_dp.value_or(0)));
  Diagnostics diagnostics;
  const auto layout = layout_of(source, options.source_dp, ObjectOrder::kPlhd, 12, "layout", diagnostics);
  log_faults(diagnostics);
  RC_ASSERT(layout.has_value());
  const Valid<TransferPlan> plan = plan_or_fail(side_of(source), PlanSide(*layout, digest(*layout)), options);
  std::map<uint32_t, std::set<uint32_t>> writers;
  for (const Edge& edge : plan->edges) writers[edge.target].insert(edge.source);
  for (const auto& [part, sources] : writers) RC_ASSERT(sources.size() == 1u);
}

// ---- (d) other pages

enum class Change { kPermuted, kOneSlot, kAnySlots, kOneEpoch, kOneGeneration, kOtherView, kOtherTable, kOtherRegion };

void new_slots(PageTable& table, Change change, Choices& choices) {
  if (table.slots.empty() || change == Change::kOneSlot) return;
  if (change != Change::kAnySlots) return choices.shuffle(table.slots);
  std::vector<uint64_t> slots(*std::max_element(table.slots.begin(), table.slots.end()) + 1 + choices.below(3));
  std::iota(slots.begin(), slots.end(), uint64_t{0});
  choices.shuffle(slots);
  std::copy(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(table.slots.size()), table.slots.begin());
}

// Puts one page of one table into a slot that the table has not.
void replace_slot(RuntimeBinding& binding, Choices& choices) {
  if (binding.page_tables.empty()) return;
  std::vector<uint64_t>& slots = binding.page_tables[choices.below(binding.page_tables.size())].slots;
  uint64_t slot = choices.below(2 * slots.size() + 4);
  while (std::count(slots.begin(), slots.end(), slot) > 0) ++slot;
  if (!slots.empty()) slots[choices.below(slots.size())] = slot;
}

// The same bindings for another operation, with new epochs and new slots, or with something else changed too.
Bindings changed(const Bindings& bindings, Change change, Choices& choices) {
  Bindings result;
  const uint64_t epochs = choices.below(3);
  const size_t which = choices.below(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    RuntimeBinding binding = *bindings[i];
    binding.operation = OperationId("op2");
    for (Region& region : binding.regions) region.epoch += epochs;
    for (PageTable& table : binding.page_tables) new_slots(table, change, choices);
    if (i == which && change == Change::kOneSlot) replace_slot(binding, choices);
    if (i == which && change == Change::kOneGeneration) ++binding.generation;
    if (i == which && change == Change::kOneEpoch && !binding.regions.empty()) ++binding.regions.front().epoch;
    if (i == which && change == Change::kOtherView && !binding.views.empty())
      binding.views[choices.below(binding.views.size())].offset_bytes += 12;
    if (i == which && change == Change::kOtherTable && !binding.page_tables.empty())
      binding.page_tables[choices.below(binding.page_tables.size())].slots.push_back(1000);
    if (i == which && change == Change::kOtherRegion && !binding.regions.empty())
      binding.regions[choices.below(binding.regions.size())].bytes += 12;
    result.push_back(valid_or_die(std::move(binding)));
  }
  return result;
}

bool same_but_for_slots(const Bindings& a, const Bindings& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->views != b[i]->views || a[i]->page_tables.size() != b[i]->page_tables.size()) return false;
    for (size_t t = 0; t < a[i]->page_tables.size(); ++t)
      if (a[i]->page_tables[t].slots.size() != b[i]->page_tables[t].slots.size()) return false;
    for (size_t r = 0; r < a[i]->regions.size(); ++r)
      if (a[i]->regions[r].bytes != b[i]->regions[r].bytes) return false;
  }
  return true;
}

// The pages of one region, of all bindings of an instance.
struct PagedRegion {
  std::set<uint64_t> page_strides;
  Range page;  // the bytes that views have in slot 0, and what lies between them
  std::map<std::pair<ParticipantId, PageTableId>, std::vector<uint64_t>> slots;
  uint64_t end = 0;  // of the last page, were it whole

  // Pages are the outermost axis of the region, each slot is one table's, and whole pages lie within.
  bool is_plain(uint64_t bytes) const {
    std::vector<uint64_t> all;
    for (const auto& [table, own] : slots) all.insert(all.end(), own.begin(), own.end());
    std::sort(all.begin(), all.end());
    return page_strides.size() == 1 && page.size() <= *page_strides.begin() && end <= bytes &&
           std::adjacent_find(all.begin(), all.end()) == all.end();
  }
};

// Whether the bindings are legal for plain reasons, where BoundSide::rebind() has to see it.
bool is_plainly_legal(const Bindings& bindings, const CacheSchema& schema) {
  std::map<RegionKey, PagedRegion> paged;
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views) {
      if (!view.pages) return false;
      const auto table = std::find_if(binding->page_tables.begin(), binding->page_tables.end(),
                                      [&](const PageTable& each) { return each.id == view.pages->table; });
      const Component& component = *schema.find_group(view.layers.begin())->find(view.component);
      const uint64_t rows = table->page_tokens / component.tokens_per_row.value_or(1);
      const uint64_t end = view.offset_bytes + (view.layers.size() - 1) * view.strides.layer +
                           (view.heads.size() - 1) * view.strides.head + (view.dims.size() - 1) * view.strides.dim +
                           (rows - 1) * view.strides.row + component.item_bytes;
      PagedRegion& region = paged[{binding->instance, view.region}];
      region.page = region.page.empty()
                        ? Range(view.offset_bytes, end)
                        : Range(std::min(region.page.begin(), view.offset_bytes), std::max(region.page.end(), end));
      region.page_strides.insert(view.pages->page_stride_bytes);
      region.slots[{binding->participant, table->id}] = table->slots;
      const uint64_t last = *std::max_element(table->slots.begin(), table->slots.end());
      region.end = std::max(region.end, end + last * view.pages->page_stride_bytes);
    }
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const Region& region : binding->regions)
      if (!paged[{binding->instance, region.id}].is_plain(region.bytes)) return false;
  return true;
}

void check_same(const LoweredPlan& a, const LoweredPlan& b) {
  RC_ASSERT(a.source_regions() == b.source_regions());
  RC_ASSERT(a.target_regions() == b.target_regions());
  RC_ASSERT(a.pairs().size() == b.pairs().size());
  for (size_t i = 0; i < a.pairs().size(); ++i) {
    RC_ASSERT(a.pairs()[i].source == b.pairs()[i].source);
    RC_ASSERT(a.pairs()[i].target == b.pairs()[i].target);
    RC_ASSERT(a.steps(a.pairs()[i]) == b.steps(b.pairs()[i]));
    RC_ASSERT(a.pairs()[i].counts == b.pairs()[i].counts);
  }
}

// Gives a side other bindings. What it takes has to be what bind() would take; what is plainly legal it has to take.
bool rebind(BoundSide& side, const BindingContext& context, const Bindings& before, const Bindings& after) {
  const bool taken = side.rebind(pointers_to(after));
  Diagnostics diagnostics;
  const bool legal = BoundSide::bind(context, pointers_to(after), diagnostics).has_value();
  if (taken) RC_ASSERT(legal);
  const CacheSchema& schema = context.placement().cache_schema;
  if (!same_but_for_slots(before, after))
    RC_ASSERT(!taken);
  else if (legal && is_plainly_legal(before, schema) && is_plainly_legal(after, schema))
    RC_ASSERT(taken);
  return taken;
}

// Moves one page of one binding, here and there.
void check_single_slots(const BoundSide& side, const BindingContext& context, const Bindings& bindings,
                        Choices& choices) {
  for (int times = 0; times < 6; ++times) {
    const Bindings after = changed(bindings, Change::kOneSlot, choices);
    Witness witness;
    witness.add("other-binding", after);
    BoundSide copy = side;
    rebind(copy, context, bindings, after);
  }
}

void check_rebind(const Draw& draw, BindingStyle style) {
  BoundCase drawn = random_bound_case(draw, style);
  Witness witness;
  add_to(witness, drawn);
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  const BindingContext source_context = context_of(drawn.source, drawn.documents);
  const BindingContext target_context = context_of(drawn.target, drawn.documents);
  BoundSide source = bind_or_fail(source_context, drawn.source_bindings);
  BoundSide target = bind_or_fail(target_context, drawn.target_bindings);
  const LoweredPlan before = lower_or_fail(*plan, source, target);

  Choices choices(draw, Section::kStore);
  check_single_slots(source, source_context, drawn.source_bindings, choices);
  check_single_slots(target, target_context, drawn.target_bindings, choices);
  const bool permuted_only = !choices.chance(1, 2);
  const auto random_change = [&] {
    if (permuted_only) return Change::kPermuted;
    return choices.chance(2, 3) ? Change::kOneSlot : static_cast<Change>(choices.below(8));
  };
  const Bindings new_source = changed(drawn.source_bindings, random_change(), choices);
  const Bindings new_target = changed(drawn.target_bindings, random_change(), choices);
  witness.add("new-source-binding", new_source);
  witness.add("new-target-binding", new_target);
  const bool source_taken = rebind(source, source_context, drawn.source_bindings, new_source);
  if (!source_taken) check_same(lower_or_fail(*plan, source, target), before);  // nothing was changed
  const bool target_taken = rebind(target, target_context, drawn.target_bindings, new_target);
  RC_CLASSIFY(source_taken && target_taken, "both taken");
  if (!source_taken || !target_taken) return;
  LoweredPlan lowered = before;
  lowered = lowered.rebound(*plan, source, target);
  check_same(lowered,
             lower_or_fail(*plan, bind_or_fail(source_context, new_source), bind_or_fail(target_context, new_target)));
}

RC_GTEST_PROP(Rebind, OfPagedBindingsGivesTheStepsOfLoweringAnew, (const Draw& draw)) {
  check_rebind(draw, BindingStyle::kPaged);
}

RC_GTEST_PROP(Rebind, OfAnyBindingsTakesOnlyWhatBindTakes, (const Draw& draw)) {
  check_rebind(draw, BindingStyle::kAny);
}

}  // namespace
}  // namespace crossdock::testing
