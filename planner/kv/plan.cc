#include "planner/kv/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "model/text.h"

// The rules that a plan keeps without other documents. They are what makes the proof and the lowering safe to run on a
// plan from outside: indices in range, no empty edge, edges within their tensor, rows not cut. That the plan is right
// is another question (verify_plan()).
namespace crossdock {
namespace {

// Sorts a list and drops unused and repeated items. new_index[old] is SIZE_MAX for a dropped item.
template <class Item>
// Unused and repeated sets are dropped, because they mean nothing: plans that move the same in the same edges have one
// text and one digest (I7).
std::vector<size_t> sort_used(std::vector<Item>& list, const std::vector<bool>& used) {
  std::vector<size_t> order;
  order.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    if (used[i]) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return list[a] < list[b]; });
  std::vector<size_t> new_index(list.size(), SIZE_MAX);
  std::vector<Item> sorted;
  sorted.reserve(order.size());
  for (const size_t old : order) {
    if (sorted.empty() || sorted.back() != list[old]) sorted.push_back(std::move(list[old]));
    new_index[old] = sorted.size() - 1;
  }
  list = std::move(sorted);
  return new_index;
}

// Sorts a list; new_index[old] says where an item went. Equal items stay apart, for validate() to tell.
template <class Item, class Less>
std::vector<uint32_t> sort_list(std::vector<Item>& list, Less less) {
  std::vector<uint32_t> new_index(list.size());
  std::iota(new_index.begin(), new_index.end(), uint32_t{0});
  if (std::is_sorted(list.begin(), list.end(), less)) return new_index;
  std::vector<uint32_t> order = new_index;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return less(list[a], list[b]); });
  std::vector<Item> sorted;
  sorted.reserve(list.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    sorted.push_back(std::move(list[order[i]]));
    new_index[order[i]] = i;
  }
  list = std::move(sorted);
  return new_index;
}

// Asked before any use of an index: canonicalize() runs on what a reader has just parsed.
bool indices_fit(const TransferPlan& plan, const Edge& edge) {
  return edge.target < plan.targets.size() && edge.source < plan.sources.size() && edge.tensor < plan.tensors.size() &&
         edge.layer_set < plan.layer_sets.size() && edge.token_set < plan.token_sets.size();
}

std::string edge_place(size_t index) { return fmt::format("edge {}", index); }

template <class Item>
bool strictly_sorted(const std::vector<Item>& list) {
  return std::adjacent_find(list.begin(), list.end(), [](const Item& a, const Item& b) { return !(a < b); }) ==
         list.end();
}

// The order of tensors, as tuples.
auto tensor_key(const PlanTensor& tensor) { return std::tie(tensor.layers, tensor.component.name); }

class PlanRules {
 public:
  PlanRules(const TransferPlan& plan, Diagnostics& diagnostics)
      : plan_(plan), diagnostics_(diagnostics), diagnostics_before_(diagnostics.total()) {}

  // Edges are looked at only where the lists are right: their rules read the facts that check_lists() fills in.
  void run() {
    check_lists();
    if (diagnostics_.total() != diagnostics_before_) return;
    std::vector<bool> source_used(plan_.sources.size());
    for (size_t i = 0; i < plan_.edges.size() && !diagnostics_.full(); ++i) {
      if (!indices_fit(plan_, plan_.edges[i])) {
        diagnostics_.add(Rule::kPlanIndex, edge_place(i), "names an entry that its list does not have");
        continue;
      }
      source_used[plan_.edges[i].source] = true;
      check_edge(i);
    }
    const auto idle = std::find(source_used.begin(), source_used.end(), false);
    if (idle != source_used.end())
      diagnostics_.add(Rule::kPlanIndex, "",
                       fmt::format("source '{}' has no edge",
                                   plan_.sources[static_cast<size_t>(idle - source_used.begin())].text()));
  }

 private:
  void check_lists() {
    if (plan_.targets.empty()) diagnostics_.add(Rule::kPlanParticipant, "targets", "a plan is for at least one target");
    for (const auto& [ends, name] : {std::pair(&plan_.targets, "target"), std::pair(&plan_.sources, "source")})
      for (const PlanEnd& end : *ends) check_name(end.text(), "", name, diagnostics_);
    if (!strictly_sorted(plan_.targets))
      diagnostics_.add(Rule::kPlanParticipant, "targets", "a target is listed twice");
    if (!strictly_sorted(plan_.sources))
      diagnostics_.add(Rule::kPlanParticipant, "sources", "a source is listed twice");
    if (plan_.tokens.empty()) diagnostics_.add(Rule::kPlanEmpty, "tokens", "a plan is about at least one token");
    if (plan_.snapshot_tokens && plan_.snapshot_tokens->empty())
      diagnostics_.add(Rule::kSnapshotEmpty, "snapshot_tokens", "a snapshot holds at least one token");
    for (size_t i = 0; i < plan_.tensors.size() && !diagnostics_.full(); ++i) check_tensor(i);
    token_facts_.reserve(plan_.token_sets.size());
    for (size_t i = 0; i < plan_.token_sets.size() && !diagnostics_.full(); ++i) check_token_set(i);
    checked_within_.resize(plan_.layer_sets.size(), SIZE_MAX);
  }

  // Facts are computed once for each set: many edges share one, and a set may have many intervals.
  void check_token_set(size_t index) {
    const TokenSet& set = plan_.token_sets[index];
    const std::string place = fmt::format("token set {}", index);
    TokenFacts facts;
    if (set.cycle) {
      const CyclicTokens& cycle = *set.cycle;
      if (cycle.block_tokens == 0 || cycle.blocks.empty() || cycle.blocks.hull().end() > cycle.cycle_blocks) {
        diagnostics_.add(Rule::kCycleBounds, place,
                         fmt::format("blocks {} of {} tokens do not fit a cycle of {} blocks", set_text(cycle.blocks),
                                     cycle.block_tokens, cycle.cycle_blocks));
        return;
      }
      facts.inner_boundaries = cycle.block_tokens;
    }
    facts.count = set.count();
    const std::vector<Range>& ranges = set.intervals.ranges();
    for (size_t i = 1; i < ranges.size(); ++i)
      // Every boundary is a multiple of a row's tokens exactly when their greatest common divisor is; so one number
      // answers for components of any granularity.
      facts.inner_boundaries = std::gcd(facts.inner_boundaries, std::gcd(ranges[i - 1].end(), ranges[i].begin()));
    token_facts_.push_back(facts);
  }

  void check_tensor(size_t index) {
    const PlanTensor& tensor = plan_.tensors[index];
    const std::string place = fmt::format("tensor {}", index);
    if (tensor.layers.empty()) diagnostics_.add(Rule::kPlanTensor, place, "has no layer");
    if (index > 0 && !(tensor_key(plan_.tensors[index - 1]) < tensor_key(tensor)))
      diagnostics_.add(Rule::kPlanTensor, place, "is listed twice");
    const Component& c = tensor.component;
    check_name(c.name.text(), place, "the component's name", diagnostics_);
    check_name(c.dtype, place, "dtype", diagnostics_);
    check_name(c.encoding, place, "encoding", diagnostics_);
    if (c.is_state() && tensor.tokens != Range(0, 1))
      diagnostics_.add(Rule::kStateTokens, place,
                       fmt::format("tokens {} of a state component must be [0,1)", range_text(tensor.tokens)));
    const bool fits = (Checked(c.head_count) * c.head_dim * c.item_bytes).value().has_value();
    if (!fits || c.head_count == 0 || c.head_dim == 0 || c.item_bytes == 0 || c.tokens_per_row == uint64_t{0})
      diagnostics_.add(
          Rule::kPlanTensor, place,
          fmt::format("{} heads x {} x {} bytes is no size of a row", c.head_count, c.head_dim, c.item_bytes));
  }

  void check_edge(size_t index) {
    const Edge& edge = plan_.edges[index];
    const PlanTensor& tensor = plan_.tensors[edge.tensor];
    const IntervalSet& layers = plan_.layer_sets[edge.layer_set];
    const Range tokens = plan_.token_sets[edge.token_set].intervals.hull();
    if (layers.empty() || edge.heads.empty() || token_facts_[edge.token_set].count == 0)
      diagnostics_.add(Rule::kPlanEdge, edge_place(index), "moves nothing");
    check_layers(index);
    if (edge.heads.end() > tensor.component.head_count)
      diagnostics_.add(Rule::kPlanTensor, edge_place(index),
                       fmt::format("heads {} end past head count {} (component {})", range_text(edge.heads),
                                   tensor.component.head_count, tensor.component.name.text()));
    if (!tensor.tokens.contains(tokens))
      diagnostics_.add(Rule::kPlanTensor, edge_place(index),
                       fmt::format("tokens {} are not within those of tensor {}, {}", range_text(tokens), edge.tensor,
                                   range_text(tensor.tokens)));
    check_rows(index);
    if (index > 0 && plan_.edges[index - 1] == edge)
      diagnostics_.add(Rule::kPlanEdge, edge_place(index), "is listed twice");
  }

  void check_layers(size_t index) {
    const Edge& edge = plan_.edges[index];
    const IntervalSet& layers = plan_.layer_sets[edge.layer_set];
    const IntervalSet& allowed = plan_.tensors[edge.tensor].layers;
    // Edges are sorted by tensor within a pair, and most layer sets belong to one tensor, so remembering one is enough.
    if (checked_within_[edge.layer_set] == edge.tensor) return;
    work_ += layers.ranges().size() + allowed.ranges().size();
    if (work_ > kWorkMax) {
      if (checked_all_)
        diagnostics_.add(Rule::kPlanLimit, edge_place(index),
                         fmt::format("more than {} steps to check layers", kWorkMax));
      checked_all_ = false;
      return;
    }
    if (allowed.contains(layers))
      checked_within_[edge.layer_set] = edge.tensor;
    else
      diagnostics_.add(Rule::kPlanTensor, edge_place(index),
                       fmt::format("layers {} are not within those of tensor {}, {}", set_text(layers), edge.tensor,
                                   set_text(allowed)));
  }

  // Rows are copied whole: an edge may cut one only where the tensor's tokens begin or end.
  void check_rows(size_t index) {
    const Edge& edge = plan_.edges[index];
    const PlanTensor& tensor = plan_.tensors[edge.tensor];
    const uint64_t unit = tensor.component.tokens_per_row.value_or(1);
    if (unit == 1) return;
    const Range tokens = plan_.token_sets[edge.token_set].intervals.hull();
    if (cuts_row(tokens, tensor.tokens, unit) || token_facts_[edge.token_set].inner_boundaries % unit != 0)
      diagnostics_.add(Rule::kTokenAlignment, edge_place(index),
                       fmt::format("tokens within {} cut a row of {} tokens (component {})", range_text(tokens), unit,
                                   tensor.component.name.text()));
  }

  struct TokenFacts {
    uint64_t count = 0;
    uint64_t inner_boundaries =
        0;  // the greatest common divisor of all boundaries but the outer two; 0: there are none
  };

  // Ranges of layers that are compared. A plan of n edges with different pairs of long layer sets and tensors costs
  // their product otherwise.
  static constexpr uint64_t kWorkMax = uint64_t{1} << 27;

  const TransferPlan& plan_;
  Diagnostics& diagnostics_;
  uint64_t diagnostics_before_;
  std::vector<TokenFacts> token_facts_;
  std::vector<size_t> checked_within_;  // for each layer set a tensor that is known to hold it
  uint64_t work_ = 0;
  bool checked_all_ = true;
};

}  // namespace

void canonicalize(TransferPlan& plan) {
  // With a bad index nothing is brought into order; validate() tells of it.
  if (!std::all_of(plan.edges.begin(), plan.edges.end(), [&](const Edge& edge) { return indices_fit(plan, edge); }))
    return;
  std::vector<bool> layer_set_used(plan.layer_sets.size());
  std::vector<bool> token_set_used(plan.token_sets.size());
  for (const Edge& edge : plan.edges) {
    layer_set_used[edge.layer_set] = true;
    token_set_used[edge.token_set] = true;
  }
  const std::vector<size_t> layer_set = sort_used(plan.layer_sets, layer_set_used);
  const std::vector<size_t> token_set = sort_used(plan.token_sets, token_set_used);
  const std::vector<uint32_t> source = sort_list(plan.sources, std::less<>());
  const std::vector<uint32_t> target = sort_list(plan.targets, std::less<>());
  const std::vector<uint32_t> tensor =
      sort_list(plan.tensors, [](const PlanTensor& a, const PlanTensor& b) { return tensor_key(a) < tensor_key(b); });
  for (Edge& edge : plan.edges) {
    edge.source = source[edge.source];
    edge.target = target[edge.target];
    edge.tensor = tensor[edge.tensor];
    edge.layer_set = static_cast<uint32_t>(layer_set[edge.layer_set]);
    edge.token_set = static_cast<uint32_t>(token_set[edge.token_set]);
  }
  if (!std::is_sorted(plan.edges.begin(), plan.edges.end())) std::sort(plan.edges.begin(), plan.edges.end());
}

void validate(const TransferPlan& plan, Diagnostics& diagnostics) {
  diagnostics.set_document("plan");
  PlanRules(plan, diagnostics).run();
}

// kUnbounded for what does not fit: tokens without end have no number of bytes.
uint64_t block_bytes(const Component& component, uint64_t layer_count, uint64_t head_count, const TokenSet& tokens) {
  const uint64_t rows = tokens.row_count(component.tokens_per_row.value_or(1));
  return (Checked(layer_count) * head_count * rows * component.head_bytes()).value().value_or(Range::kUnbounded);
}

uint64_t edge_bytes(const TransferPlan& plan, const Edge& edge) {
  return block_bytes(plan.tensors[edge.tensor].component, plan.layer_sets[edge.layer_set].count(), edge.heads.size(),
                     plan.token_sets[edge.token_set]);
}

std::string_view plan_kind_name(PlanKind kind) {
  for (const PlanKindName& known : kPlanKinds)
    if (known.kind == kind) return known.name;
  check_failed("a known plan kind", __FILE__, __LINE__);
}

}  // namespace crossdock
