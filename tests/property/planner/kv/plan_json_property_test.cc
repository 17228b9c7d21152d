// Transfer plans in JSON: drawn plans, plans written in another order, and damaged text. The expected text is what
// nlohmann's library prints for the same values, with sorted fields and in ASCII.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/kv/plan_json.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/made_plans.h"

namespace crossdock::testing {
namespace {

// ---- One identity, however it was written ----

template <class Item>
void shuffle(std::vector<Item>& list, Rng& rng) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng.below(i)]);
}

// Intervals in any order, some cut in two.
json another_way(const json& intervals, Rng& rng) {
  std::vector<json> pieces;
  for (const json& interval : intervals) {
    const auto begin = interval[0].get<uint64_t>();
    const auto end = interval[1].get<uint64_t>();
    const uint64_t cut = begin + rng.below(std::min<uint64_t>(end - begin, 1000));
    if (cut > begin) pieces.push_back({begin, cut});
    pieces.push_back({cut, end});
  }
  shuffle(pieces, rng);
  return pieces;
}

// Entries in any order, some of them twice and one that is not used; `index` (of each edge) follows.
void mix_list(json& document, const char* name, size_t index, json unused, Rng& rng) {
  const std::vector<json> before = document[name];
  std::vector<std::pair<size_t, json>> entries;  // with the index before
  for (size_t i = 0; i < before.size(); ++i) {
    entries.emplace_back(i, before[i]);
    if (rng.chance(1, 3)) entries.emplace_back(i, before[i]);
  }
  entries.emplace_back(SIZE_MAX, std::move(unused));
  shuffle(entries, rng);
  std::map<size_t, std::vector<size_t>> places;
  document[name] = json::array();
  for (size_t i = 0; i < entries.size(); ++i) {
    places[entries[i].first].push_back(i);
    document[name].push_back(entries[i].second);
  }
  for (json& edge : document["edges"]) {
    const std::vector<size_t>& choice = places.at(edge[index].get<size_t>());
    edge[index] = choice[rng.below(choice.size())];
  }
}

RC_GTEST_PROP(PlanWire, APlanHasOneIdentityInWhateverOrderItWasWritten, (uint64_t seed)) {
  Rng rng(seed);
  const MadePlan& made = made_plans()[rng.below(made_plans().size())];
  json document = json::parse(plan_to_json(made.plan));
  mix_list(document, "layer_sets", 3, {{700, 701}}, rng);
  mix_list(document, "token_sets", 6, {{"intervals", json::array()}}, rng);
  for (json& layers : document["layer_sets"]) layers = another_way(layers, rng);
  for (json& tokens : document["token_sets"]) tokens["intervals"] = another_way(tokens["intervals"], rng);
  for (json& tensor : document["tensors"]) tensor["layers"] = another_way(tensor["layers"], rng);
  std::vector<json> edges = document["edges"];
  shuffle(edges, rng);
  document["edges"] = edges;
  Diagnostics diagnostics;
  const auto again = read_plan(backwards(document).dump(2), JsonLimits(), diagnostics);
  RC_LOG() << diagnostic_lines(diagnostics);
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->plan == made.plan);
  RC_ASSERT(plan_to_json(again->plan) == plan_to_json(made.plan));
  RC_ASSERT(digest(again->plan) == digest(made.plan));
}

// ---- Plans that are drawn ----

Range draw_within(Range range, Rng& rng) {
  const uint64_t begin = range.begin() + rng.below(range.size());
  return Range(begin, begin + 1 + rng.below(range.end() - begin));
}

IntervalSet draw_set(Range within, Rng& rng) {
  std::vector<Range> ranges;
  const uint64_t count = 1 + rng.below(3);
  for (uint64_t i = 0; i < count; ++i) ranges.push_back(draw_within(within, rng));
  return IntervalSet::from_ranges(std::move(ranges));
}

uint64_t draw_number(Rng& rng) { return rng.chance(1, 4) ? UINT64_MAX - rng.below(3) : 1 + rng.below(5); }

PlanTensor draw_tensor(Rng& rng) {
  static const std::vector<std::string> kTexts = {"key", "\"", "a\\b", "\x01\n\x7f", "\xc3\xa9", "\xf0\x9f\x98\x80"};
  const auto text = [&] { return kTexts[rng.below(kTexts.size())]; };
  PlanTensor tensor;
  tensor.component = Component{
      ComponentName(text()), text(), text(), 1 + rng.below(4), 1 + rng.below(4), 1 + rng.below(uint64_t{1} << 40), 1};
  tensor.layers = draw_set(Range(0, 8), rng);
  if (rng.chance(1, 3)) tensor.live = LiveTokens::window(draw_number(rng));
  tensor.tokens = rng.chance(1, 3) ? Range::all() : draw_within(Range(0, 40), rng);
  if (rng.chance(1, 4)) {
    tensor.component.tokens_per_row = std::nullopt;
    tensor.tokens = Range(0, 1);
  } else if (rng.chance(1, 4)) {
    tensor.component.tokens_per_row = draw_number(rng);
  }
  return tensor;
}

TokenSet draw_tokens(const PlanTensor& tensor, Rng& rng) {
  TokenSet tokens{{tensor.tokens}, std::nullopt};
  if (tensor.component.tokens_per_row != uint64_t{1} || rng.chance(1, 2)) return tokens;  // rows are not cut
  tokens.intervals = draw_set(tensor.tokens, rng);
  const uint64_t cycle_blocks = draw_number(rng);
  const CyclicTokens cycle{draw_number(rng), cycle_blocks, draw_set(Range(0, cycle_blocks), rng)};
  if (TokenSet{tokens.intervals, cycle}.count() > 0) tokens.cycle = cycle;
  return tokens;
}

// A plan that keeps its own rules, which is about no documents.
TransferPlan draw_plan(Rng& rng) {
  TransferPlan plan;
  plan.kind = std::array{PlanKind::kLive, PlanKind::kUpload, PlanKind::kRestore}[rng.below(3)];
  plan.source_digest = sha256(fmt::format("{}", rng.below(100)));
  plan.target_digest = sha256(fmt::format("{}", rng.below(100)));
  if (rng.chance(1, 2)) plan.snapshot_tokens = draw_within(Range::all(), rng);
  if (rng.chance(1, 2)) plan.tokens = draw_within(Range(0, 40), rng);
  std::map<std::pair<IntervalSet, ComponentName>, PlanTensor> tensors;
  for (uint64_t i = rng.below(5); i > 0; --i) {
    const PlanTensor tensor = draw_tensor(rng);
    tensors.emplace(std::pair(tensor.layers, tensor.component.name), tensor);
  }
  for (const auto& [key, tensor] : tensors) plan.tensors.push_back(tensor);
  const uint64_t target_count = 1 + rng.below(3);
  for (uint64_t i = 0; i < target_count; ++i) plan.targets.emplace_back(fmt::format("t{}", i));
  for (uint64_t i = plan.tensors.empty() ? 0 : rng.below(6); i > 0; --i) {
    Edge edge;
    edge.target = static_cast<uint32_t>(rng.below(plan.targets.size()));
    edge.source = static_cast<uint32_t>(plan.sources.size());
    edge.tensor = static_cast<uint32_t>(rng.below(plan.tensors.size()));
    const PlanTensor& tensor = plan.tensors[edge.tensor];
    edge.layer_set = static_cast<uint32_t>(plan.layer_sets.size());
    plan.layer_sets.push_back(rng.chance(1, 2) ? tensor.layers : IntervalSet{tensor.layers.ranges().front()});
    edge.heads = draw_within(Range(0, tensor.component.head_count), rng);
    edge.token_set = static_cast<uint32_t>(plan.token_sets.size());
    plan.token_sets.push_back(draw_tokens(tensor, rng));
    plan.sources.emplace_back(fmt::format("s{}", plan.sources.size()));
    plan.edges.push_back(edge);
  }
  return plan;
}

RC_GTEST_PROP(PlanWire, DrawnPlansReadBackAsTheyWere, (uint64_t seed)) {
  Rng rng(seed);
  Diagnostics diagnostics;
  const std::optional<Valid<TransferPlan>> plan = Valid<TransferPlan>::make(draw_plan(rng), diagnostics);
  RC_LOG() << diagnostic_lines(diagnostics);
  RC_ASSERT(plan.has_value());
  RC_CLASSIFY(!(*plan)->edges.empty(), "with edges");
  const std::string text = plan_to_json(*plan);
  RC_ASSERT(text == rendered(**plan, nullptr, nullptr));
  const std::optional<PlanDocument> again = read_plan(text, JsonLimits(), diagnostics);
  RC_LOG() << diagnostic_lines(diagnostics);
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->plan == *plan);
}

// ---- Damage ----

// Most changes are small ones to a number, so that many of them read to another plan.
std::string damaged(std::string text, Rng& rng) {
  static const std::vector<std::string> kPieces = {
      "18446744073709551615", "4294967296", "-1", "[]", "{}", ",", "\xff", "[[0,1]]"};
  const uint64_t count = 1 + rng.below(3);
  for (uint64_t i = 0; i < count && !text.empty(); ++i) {
    size_t at = rng.below(text.size());
    switch (rng.below(8)) {
      case 0: text[at] = static_cast<char>(rng.below(256)); break;
      case 1: text.erase(at, 1 + rng.below(20)); break;
      case 2: text.insert(at, kPieces[rng.below(kPieces.size())]); break;
      case 3: text.insert(at, text.substr(at, rng.below(40))); break;
      default:
        at = text.find_first_of("0123456789", at);
        if (at != std::string::npos) text[at] = static_cast<char>('0' + rng.below(10));
        break;
    }
  }
  return text;
}

RC_GTEST_PROP(PlanReading, DamagedTextIsRefusedWithDiagnosticsOrReadsToAPlan, (uint64_t seed)) {
  Rng rng(seed);
  const MadePlan& made = made_plans()[rng.below(made_plans().size())];
  const bool carries = rng.chance(1, 2);
  const std::string text = rng.chance(1, 3) ? std::string(kPlanText)
                           : carries        ? plan_to_json(made.plan, &made.source, &made.target)
                                            : plan_to_json(made.plan);
  Diagnostics diagnostics;
  const std::optional<PlanDocument> plan = read_plan(damaged(text, rng), JsonLimits(), diagnostics);
  RC_ASSERT(plan.has_value() == diagnostics.empty());
  RC_CLASSIFY(plan.has_value(), "read");
  if (!plan) return;
  const AnyDocument* source = plan->source ? &*plan->source : nullptr;
  const AnyDocument* target = plan->target ? &*plan->target : nullptr;
  const std::string written = plan_to_json(plan->plan, source, target);
  RC_ASSERT(written == rendered(*plan->plan, source, target));
  const std::optional<PlanDocument> again = read_plan(written, JsonLimits(), diagnostics);
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->plan == plan->plan);
  RC_ASSERT(again->source == plan->source);
  RC_ASSERT(again->target == plan->target);
}

}  // namespace
}  // namespace crossdock::testing
