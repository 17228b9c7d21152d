#include "planner/kv/verify_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/text.h"

// The tensors that a plan must have follow from the two schemas: one for each (source group, target group) with layers
// in common and each component of the target group. This is worked out again here, from the schemas and not from the
// plan, and compared field by field. A plan with a tensor too few would otherwise have nothing to prove for it.
namespace crossdock {
namespace {

// Layers of one target group and one source group.
struct CommonLayers {
  size_t source_group;
  Range layers;
};

struct GroupLayers {
  Range layers;
  size_t group;
};

// Messages are made only while they are kept: a hostile plan may have millions of wrong tensors.
template <class MakeText>
void refuse(Diagnostics& diagnostics, Rule rule, MakeText make_text) {
  if (diagnostics.full()) {
    diagnostics.add(rule, "", "");
    return;
  }
  auto [place, message] = make_text();
  diagnostics.add(rule, std::move(place), std::move(message));
}

std::string place_of(const IntervalSet& layers, const Component& component) {
  return fmt::format("layers {} component {}", set_text(layers), component.name.text());
}

std::string rows_text(const std::optional<uint64_t>& tokens_per_row) {
  return tokens_per_row ? fmt::to_string(*tokens_per_row) : "none (a state)";
}

// The first field in which two components of one name differ.
// Not shared with planner/kv/tensors.cc, on purpose (planner/kv/verify_plan.cc).
std::string difference(const Component& a, std::string_view a_side, const Component& b, std::string_view b_side) {
  const auto text = [&](std::string_view field, const auto& of_a, const auto& of_b) {
    return fmt::format("{} {} in {}, {} in {}", field, of_a, a_side, of_b, b_side);
  };
  if (a.dtype != b.dtype) return text("dtype", a.dtype, b.dtype);
  if (a.encoding != b.encoding) return text("encoding", a.encoding, b.encoding);
  if (a.item_bytes != b.item_bytes) return text("item_bytes", a.item_bytes, b.item_bytes);
  if (a.head_count != b.head_count) return text("head_count", a.head_count, b.head_count);
  if (a.head_dim != b.head_dim) return text("head_dim", a.head_dim, b.head_dim);
  return text("tokens_per_row", rows_text(a.tokens_per_row), rows_text(b.tokens_per_row));
}

class TensorCheck {
 public:
  TensorCheck(const TransferPlan& plan, const PlanSide& source, const PlanSide& target, WorkMeter& work,
              Diagnostics& diagnostics)
      : plan_(plan),
        source_(source),
        target_(target),
        work_(work),
        diagnostics_(diagnostics),
        seen_(plan.tensors.size()) {}

  void run() {
    const std::vector<LayerGroup>& source_groups = source_.cache_schema().groups;
    for (size_t i = 0; i < source_groups.size(); ++i)
      for (const Range layers : source_groups[i].layers.ranges()) source_layers_.push_back(GroupLayers{layers, i});
    std::sort(source_layers_.begin(), source_layers_.end(),
              [](const GroupLayers& a, const GroupLayers& b) { return a.layers < b.layers; });
    for (const LayerGroup& group : target_.cache_schema().groups) {
      find_common_layers(group);
      for (size_t begin = 0; begin < common_.size() && !work_.stopped();) {
        size_t end = begin;
        std::vector<Range> ranges;
        for (; end < common_.size() && common_[end].source_group == common_[begin].source_group; ++end)
          ranges.push_back(common_[end].layers);
        check_groups(source_groups[common_[begin].source_group], group, IntervalSet::from_ranges(std::move(ranges)));
        begin = end;
      }
    }
    if (work_.stopped()) return;
    for (size_t i = 0; i < seen_.size(); ++i)
      if (!seen_[i])
        refuse(diagnostics_, Rule::kPlanTensor, [&] {
          return std::pair(place_of(plan_.tensors[i].layers, plan_.tensors[i].component),
                           fmt::format("tensor {} is none of the two documents", i));
        });
  }

 private:
  // Common layers with each source group, sorted by it.
  // A walk through the ranges of the source's layers, which are sorted and disjoint (rule layer-repeated).
  void find_common_layers(const LayerGroup& group) {
    common_.clear();
    for (const Range wanted : group.layers.ranges()) {
      auto next = std::partition_point(source_layers_.begin(), source_layers_.end(),
                                       [&](const GroupLayers& entry) { return entry.layers.end() <= wanted.begin(); });
      uint64_t at = wanted.begin();
      for (; next != source_layers_.end() && next->layers.begin() < wanted.end(); ++next) {
        if (!work_.spend(1)) return;
        const Range common = next->layers.intersect(wanted);
        if (at < common.begin()) source_has_not(Range(at, common.begin()));
        common_.push_back(CommonLayers{next->group, common});
        at = common.end();
      }
      if (at < wanted.end()) source_has_not(Range(at, wanted.end()));
    }
    const auto before = [](const CommonLayers& a, const CommonLayers& b) {
      return a.source_group != b.source_group ? a.source_group < b.source_group : a.layers < b.layers;
    };
    if (!std::is_sorted(common_.begin(), common_.end(), before)) std::sort(common_.begin(), common_.end(), before);
  }

  void source_has_not(Range layers) {
    refuse(diagnostics_, Rule::kPlanSchema, [&] {
      return std::pair(fmt::format("layers {}", set_text({layers})),
                       fmt::format("are in {} and not in {}", target_.label(), source_.label()));
    });
  }

  // Tensors of a group follow each other in the plan, and components in the group, by name.
  // A merge: `at` only moves on, so a group costs its components and its tensors.
  void check_groups(const LayerGroup& source, const LayerGroup& target, const IntervalSet& layers) {
    const std::vector<PlanTensor>& tensors = plan_.tensors;
    size_t at = static_cast<size_t>(
        std::lower_bound(tensors.begin(), tensors.end(), layers,
                         [](const PlanTensor& tensor, const IntervalSet& wanted) { return tensor.layers < wanted; }) -
        tensors.begin());
    for (const Component& component : target.components) {
      if (!work_.spend(layers.ranges().size())) return;
      check_component(source.find(component.name), component, layers);
      check_life(source, target, component, layers);
      const auto is_of_group = [&] { return at < tensors.size() && tensors[at].layers == layers; };
      while (is_of_group() && tensors[at].component.name < component.name) ++at;
      if (is_of_group() && tensors[at].component.name == component.name) {
        seen_[at] = true;
        check_tensor(tensors[at], target, component);
        ++at;
      } else {
        refuse(diagnostics_, Rule::kPlanTensor,
               [&] { return std::pair(place_of(layers, component), std::string("the plan has no such tensor")); });
      }
    }
  }

  void check_component(const Component* source, const Component& target, const IntervalSet& layers) {
    if (source == nullptr)
      refuse(diagnostics_, Rule::kPlanSchema, [&] {
        return std::pair(place_of(layers, target), fmt::format("{} has no such component", source_.label()));
      });
    else if (*source != target)
      refuse(diagnostics_, Rule::kPlanSchema, [&] {
        return std::pair(place_of(layers, target), difference(*source, "the source", target, "the target"));
      });
  }

  void check_life(const LayerGroup& source, const LayerGroup& target, const Component& component,
                  const IntervalSet& layers) {
    const LiveTokens& has = source.live_of(component.name);
    const LiveTokens& needs = target.live_of(component.name);
    if (component.is_state() || has.covers(needs)) return;
    refuse(diagnostics_, Rule::kPlanSchema, [&] {
      return std::pair(place_of(layers, component),
                       fmt::format("{} live in the source, {} in the target", has.to_text(), needs.to_text()));
    });
  }

  void check_tensor(const PlanTensor& tensor, const LayerGroup& group, const Component& component) {
    const auto differs = [&](auto make_message) {
      refuse(diagnostics_, Rule::kPlanTensor,
             [&] { return std::pair(place_of(tensor.layers, component), make_message()); });
    };
    if (tensor.component != component)
      differs([&] { return difference(tensor.component, "the plan", component, "the target"); });
    if (tensor.live != group.live_of(component.name))
      differs([&] {
        return fmt::format("live_tokens: {} in the plan, {} in the target", tensor.live.to_text(),
                           group.live_of(component.name).to_text());
      });
    const Range present = present_tokens(group, component);
    const Range tokens = component.is_state() ? present : present.intersect(plan_.tokens);
    if (tensor.tokens != tokens)
      differs([&] {
        return fmt::format("tokens {} in the plan, {} follow from its tokens and the documents",
                           range_text(tensor.tokens), range_text(tokens));
      });
    if (component.is_state()) return;
    // Asked may end in the middle of a row only where Live ends there too: rows are copied whole.
    for (const uint64_t boundary : {plan_.tokens.begin(), plan_.tokens.end()})
      if (present.begin() < boundary && boundary < present.end() && boundary % *component.tokens_per_row != 0)
        differs([&] {
          return fmt::format("the plan's tokens {} cut a row of {} tokens", range_text(plan_.tokens),
                             *component.tokens_per_row);
        });
  }

  // Before the plan asks for less.
  Range present_tokens(const LayerGroup& group, const Component& component) const {
    if (component.is_state()) return Range(0, 1);
    if (plan_.snapshot_tokens)
      return live_pages(group.live_of(component.name), component, *plan_.snapshot_tokens, plan_.live_page_tokens);
    // A store layout takes any tokens: those of the source are put into it.
    return target_.kind() == SideKind::kStoreLayout ? source_.tokens() : target_.tokens();
  }

  const TransferPlan& plan_;
  const PlanSide& source_;
  const PlanSide& target_;
  WorkMeter& work_;
  Diagnostics& diagnostics_;
  std::vector<bool> seen_;  // of the plan's tensors
  std::vector<GroupLayers> source_layers_;
  std::vector<CommonLayers> common_;
};

}  // namespace

void check_plan_tensors(const TransferPlan& plan, const PlanSide& source, const PlanSide& target, WorkMeter& work,
                        Diagnostics& diagnostics) {
  TensorCheck(plan, source, target, work, diagnostics).run();
}

}  // namespace crossdock
