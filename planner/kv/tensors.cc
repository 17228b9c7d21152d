#include "planner/kv/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/text.h"

// A tensor is (layers that are in one group of each schema, component). For these, elements of both sides are the same
// bytes: every field that gives bytes a meaning is equal, or plan-schema names the one that is not. Crossdock copies
// and never converts, so there is no "compatible" besides "equal". The verifier has its own version of this matching
// (planner/kv/verify_tensors.cc), on purpose: a mistake here must not be a mistake there.
namespace crossdock {
namespace {

std::string granularity(const Component& component) {
  return component.is_state() ? "state" : fmt::format("{} tokens per row", *component.tokens_per_row);
}

// The first field in which two components differ, as "dtype bfloat16 and float16"; empty when they do not.
// Token granularity comes last: dtype and dims are what a person fixes first.
std::string difference(const Component& source, const Component& target) {
  if (source == target) return "";
  const auto pair = [](std::string_view field, const auto& a, const auto& b) {
    return fmt::format("{} {} in the source and {} in the target", field, a, b);
  };
  if (source.dtype != target.dtype) return pair("dtype", source.dtype, target.dtype);
  if (source.encoding != target.encoding) return pair("encoding", source.encoding, target.encoding);
  if (source.item_bytes != target.item_bytes) return pair("item_bytes", source.item_bytes, target.item_bytes);
  if (source.head_count != target.head_count) return pair("head_count", source.head_count, target.head_count);
  if (source.head_dim != target.head_dim) return pair("head_dim", source.head_dim, target.head_dim);
  return pair("token_axis", granularity(source), granularity(target));
}

class TensorMatch {
 public:
  TensorMatch(const PlanSide& source, const PlanSide& target, const PlanOptions& options, Diagnostics& diagnostics)
      : source_(source), target_(target), options_(options), diagnostics_(diagnostics) {}

  std::optional<CommonTensors> run() {
    const uint64_t diagnostics_before = diagnostics_.total();
    find_groups();
    std::sort(result_.groups.begin(), result_.groups.end(),
              [](const CommonGroup& a, const CommonGroup& b) { return a.layers < b.layers; });
    for (CommonGroup& group : result_.groups) add_tensors(group);
    if (diagnostics_.total() != diagnostics_before) return std::nullopt;
    return std::move(result_);
  }

 private:
  // The pairs of groups that have layers in common: O(pieces log pieces), not all pairs of groups.
  void find_groups() {
    const LayerIndex source_layers(source_.cache_schema());
    const std::vector<LayerGroup>& groups = target_.cache_schema().groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      source_layers.for_each_piece(groups[group].layers, [&](Range layers, size_t source_group) {
        if (source_group == LayerIndex::kNoGroup)
          diagnostics_.add(Rule::kPlanSchema, fmt::format("layers {}", set_text({layers})),
                           fmt::format("{} has them, {} has not", target_.label(), source_.label()));
        else
          pieces_.push_back(Piece{source_group, layers});
      });
      std::stable_sort(pieces_.begin(), pieces_.end(),
                       [](const Piece& a, const Piece& b) { return a.source_group < b.source_group; });
      for (size_t begin = 0; begin < pieces_.size();) {
        size_t end = begin;
        std::vector<Range> ranges;
        for (; end < pieces_.size() && pieces_[end].source_group == pieces_[begin].source_group; ++end)
          ranges.push_back(pieces_[end].layers);
        result_.groups.push_back(
            CommonGroup{IntervalSet::from_ranges(std::move(ranges)), pieces_[begin].source_group, group, 0});
        begin = end;
      }
      pieces_.clear();
    }
  }

  // A source with a shorter window has dropped tokens that the target requires. The reverse is fine: the target
  // requires less than the source has.
  void add_tensors(CommonGroup& group) {
    const LayerGroup& source = source_.cache_schema().groups[group.source_group];
    const LayerGroup& target = target_.cache_schema().groups[group.target_group];
    group.first_tensor = result_.tensors.size();
    for (const Component& component : target.components) {
      const Component* found = source.find(component.name);
      const std::string differs = found == nullptr ? "the source has none" : difference(*found, component);
      if (!differs.empty())
        diagnostics_.add(Rule::kPlanSchema,
                         fmt::format("component {} of layers {}", component.name.text(), set_text(group.layers)),
                         differs);
      check_life(source, target, component, group.layers);
      result_.tensors.push_back(
          PlanTensor{component, group.layers, target.live_of(component.name), required_tokens(target, component)});
    }
  }

  // What lives in the target has to live in the source, whatever the length.
  void check_life(const LayerGroup& source, const LayerGroup& target, const Component& component,
                  const IntervalSet& layers) {
    const LiveTokens& has = source.live_of(component.name);
    const LiveTokens& needs = target.live_of(component.name);
    if (component.is_state() || has.covers(needs)) return;
    diagnostics_.add(Rule::kPlanSchema,
                     fmt::format("component {} of layers {}", component.name.text(), set_text(layers)),
                     fmt::format("live_tokens: {} in the source, {} in the target", has.to_text(), needs.to_text()));
  }

  // The intersection of Live and Asked for one component. Asked may not cut a row that Live does not cut, because a row
  // is copied as a whole.
  Range required_tokens(const LayerGroup& group, const Component& component) {
    if (component.is_state()) return Range(0, 1);
    const Range live = options_.snapshot_tokens ? live_pages(group.live_of(component.name), component,
                                                             *options_.snapshot_tokens, options_.live_page_tokens)
                                                : own_tokens();
    const Range tokens = live.intersect(options_.tokens);
    const uint64_t unit = component.tokens_per_row.value_or(1);
    if (cuts_row(tokens, live, unit))
      diagnostics_.add(Rule::kTokenAlignment, fmt::format("component {}", component.name.text()),
                       fmt::format("tokens {} cut a row of {} tokens", range_text(tokens), unit));
    return tokens;
  }

  // A store layout is about all tokens; what is put into it is what the source has.
  Range own_tokens() const { return target_.kind() == SideKind::kStoreLayout ? source_.tokens() : target_.tokens(); }

  struct Piece {
    size_t source_group;
    Range layers;
  };

  const PlanSide& source_;
  const PlanSide& target_;
  const PlanOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<Piece> pieces_;
  CommonTensors result_;
};

}  // namespace

std::optional<CommonTensors> match_tensors(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                           Diagnostics& diagnostics) {
  return TensorMatch(source, target, options, diagnostics).run();
}

}  // namespace crossdock
