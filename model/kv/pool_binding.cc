#include "model/kv/pool_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/checked.h"
#include "base/interval_rank.h"
#include "base/rng.h"
#include "base/sweep.h"
#include "model/kv/binding_rules.h"
#include "model/kv/schema_rules.h"
#include "model/kv/token_counter.h"
#include "model/kv/view_rules.h"
#include "model/text.h"

// Builds Address(p, x) as an engine would: pools of slots, a slot holds a page of all heads, and page tables say which
// slot holds which page. Everything is counted before it is made, because page counts follow the numbers of the request
// and not the size of a document.
namespace crossdock {
namespace {

constexpr size_t kLayerDigitsMin = 3;

// Tokens that lie in one page table.
struct TokenRun {
  Range tokens;
  size_t table;  // of the binding
};

// The live tokens of one ownership.
struct PagedTokens {
  std::optional<CyclicTokens> cycle = std::nullopt;  // of all runs
  std::vector<TokenRun> runs = {};
  uint64_t page_count = 0;  // of each run, added
};

// What one ownership has of one component, in layers of one group.
struct Piece {
  Range layers;
  const Component* component;
  const IntervalSet* heads;
  const PagedTokens* tokens;  // null: a state
};

// Where a table begins whose first page has `count` tokens of the cycle before it; not after `token_max`.
// The begin of a cycle is preferred, because a person then recognises it; any token with that count before it means the
// same pages.
uint64_t table_begin(const CyclicTokens& cycle, uint64_t count, uint64_t token_max) {
  const uint64_t earliest = TokenCounter(cycle).first_with(count, token_max);
  const std::optional<uint64_t> cycle_tokens = checked_mul(cycle.block_tokens, cycle.cycle_blocks);
  const std::optional<uint64_t> cycle_begin =
      cycle_tokens ? checked_round_up(earliest, *cycle_tokens) : std::optional<uint64_t>();
  const bool fits = cycle_begin && *cycle_begin <= token_max && cycle.count_below(*cycle_begin) == count;
  return fits ? *cycle_begin : earliest;
}

std::string padded(uint64_t number, uint64_t highest, size_t digits_min = 1) {
  return fmt::format("{:0{}}", number, std::max(digits_min, fmt::formatted_size("{}", highest)));
}

// Different for different names and suffixes: a suffix has neither of the signs before it.
RegionId region_id(const ComponentName& component, const std::string& suffix) {
  if (component.text().size() + 1 + suffix.size() <= kNameBytesMax)
    return RegionId(fmt::format("{}-{}", component.text(), suffix));
  return RegionId(fmt::format("{}~{}", sha256(component.text()).hex(), suffix));
}

// A name that is too long becomes its digest, which is as unique.
InstanceId instance_id(const std::string& prefix, const ParticipantId& participant) {
  const std::string name = prefix + participant.text();
  return InstanceId(name.size() <= kNameBytesMax ? name : sha256(name).hex());
}

std::string place_of(const Piece& piece) {
  return fmt::format("component '{}' (layers {})", piece.component->name.text(), set_text({piece.layers}));
}

class PoolBuilder {
 public:
  PoolBuilder(const PlacementManifest& placement, const PoolRequest& request, RuntimeBinding& binding,
              Diagnostics& diagnostics)
      : placement_(placement),
        index_(placement.cache_schema),
        request_(request),
        binding_(binding),
        diagnostics_(diagnostics) {}

  // False, with a diagnostic, when there is no such binding.
  bool run(const Part& part) {
    for (const Ownership& ownership : part.owns)
      if (!take(ownership)) return false;
    if (!fill_page_tables()) return false;
    for (const auto& [key, pieces] : pools_)
      if (!make_regions(key.first, key.second, pieces)) return false;
    return true;
  }

 private:
  bool refuse(Rule rule, std::string place, std::string message) {
    diagnostics_.add(rule, std::move(place), std::move(message));
    return false;
  }

  bool take(const Ownership& ownership) {
    bool good = true;
    index_.for_each_piece(ownership.layers, [&](Range layers, size_t group) {
      for (const ComponentName& name : ownership.components)
        good = good && take(ownership, layers, group, *placement_.cache_schema.groups[group].find(name));
      return good;
    });
    return good;
  }

  bool take(const Ownership& ownership, Range layers, size_t group, const Component& component) {
    Piece piece{layers, &component, &ownership.heads, nullptr};
    if (!component.is_state()) {
      if (request_.page_tokens % *component.tokens_per_row != 0)
        return refuse(
            Rule::kTokenAlignment, place_of(piece),
            fmt::format("pages of {} tokens cut a row of {} tokens", request_.page_tokens, *component.tokens_per_row));
      const LiveTokens& life = placement_.cache_schema.groups[group].live_of(component.name);
      const Range live = live_pages(life, component, binding_.tokens, request_.whole_pages ? request_.page_tokens : 1);
      piece.tokens = paged(live, ownership.tokens);
      if (piece.tokens == nullptr) return false;
      if (piece.tokens->runs.empty()) return true;
    }
    if (!count(piece)) return false;
    pools_[{component.name, group}].push_back(piece);
    return true;
  }

  // Views and their pages, before there are any.
  // Before there are any, so that neither memory nor time is spent on a request past the limits.
  bool count(const Piece& piece) {
    const Checked parts = Checked(request_.region_per_layer ? piece.layers.size() : 1) * piece.heads->ranges().size();
    const auto views = (parts * (piece.tokens == nullptr ? 1 : piece.tokens->runs.size()) + view_count_).value();
    if (!views || *views > kPoolViewsMax)
      return refuse(Rule::kWorkLimit, place_of(piece),
                    fmt::format("with its {} the binding has more than {} views",
                                views ? fmt::to_string(*views - view_count_) : "2^64 or more", kPoolViewsMax));
    const auto pages = (parts * (piece.tokens == nullptr ? 1 : piece.tokens->page_count) + page_count_).value();
    if (!pages || *pages > kViewPiecesMax)
      return refuse(Rule::kWorkLimit, place_of(piece),
                    fmt::format("with its {} the views hold more than {} pages",
                                pages ? fmt::to_string(*pages - page_count_) : "2^64 or more", kViewPiecesMax));
    view_count_ = *views;
    page_count_ = *pages;
    return true;
  }

  // Null, with a diagnostic, when there are too many intervals.
  // Components with the same live tokens and ownership share page tables, as in engines: key and value of a token lie
  // in the same slot number.
  const PagedTokens* paged(Range live, const TokenOwnership& ownership) {
    const auto [known, is_new] = paged_.try_emplace({live, ownership});
    if (!is_new) return &known->second;
    if (const auto* cycle = std::get_if<CyclicTokens>(&ownership)) {
      known->second = in_cycle(live, *cycle);
      return &known->second;
    }
    const std::optional<IntervalSet> owned = tokens_within(ownership, live, kPoolViewsMax);
    if (!owned) {
      refuse(Rule::kWorkLimit, "", fmt::format("an ownership has more than {} token intervals", kPoolViewsMax));
      return nullptr;
    }
    known->second = in_intervals(*owned);
    return &known->second;
  }

  PagedTokens in_cycle(Range live, const CyclicTokens& cycle) {
    const uint64_t first = cycle.count_below(live.begin());
    const uint64_t end = cycle.count_below(live.end());
    if (first == end) return PagedTokens();
    const Range pages = pages_of(Range(first, end));
    const uint64_t begin = table_begin(cycle, pages.begin() * request_.page_tokens, live.begin());
    return PagedTokens{cycle, {TokenRun{live, add_table(begin, pages.size())}}, pages.size()};
  }

  // Two intervals may end and begin in the same page; page runs are united first, so that a page has one slot.
  PagedTokens in_intervals(const IntervalSet& tokens) {
    std::vector<Range> pages;
    PagedTokens result;
    for (const Range range : tokens.ranges()) {
      pages.push_back(pages_of(range));
      result.page_count += pages.back().size();
    }
    const IntervalSet page_runs = IntervalSet::from_ranges(pages);
    size_t next = 0;
    for (const Range page_run : page_runs.ranges()) {
      const size_t table = add_table(page_run.begin() * request_.page_tokens, page_run.size());
      for (; next < pages.size() && page_run.contains(pages[next]); ++next)
        result.runs.push_back(TokenRun{tokens.ranges()[next], table});
    }
    return result;
  }

  Range pages_of(Range tokens) const {
    return Range(tokens.begin() / request_.page_tokens, div_round_up(tokens.end(), request_.page_tokens));
  }

  // The table's slots are filled in when all tables are known.
  size_t add_table(uint64_t token_begin, uint64_t page_count) {
    binding_.page_tables.push_back(PageTable{PageTableId(), request_.page_tokens, token_begin, {}});
    slot_counts_.push_back(page_count);
    return slot_counts_.size() - 1;
  }

  // Slots are dealt out over all tables together, so no slot holds two pages (rule page-slots, and views-overlap across
  // tables).
  bool fill_page_tables() {
    const uint64_t used =
        std::accumulate(slot_counts_.begin(), slot_counts_.end(), uint64_t{0});  // at most page_count_
    const std::optional<uint64_t> all = checked_add(used, request_.spare_pages);
    if (!all || *all > kPoolSlotsMax)
      return refuse(Rule::kWorkLimit, "",
                    fmt::format("{} pages and {} spare ones are more than the {} slots that a pool may have", used,
                                request_.spare_pages, kPoolSlotsMax));
    slot_count_ = *all;
    std::vector<uint64_t> slots(slot_count_);
    std::iota(slots.begin(), slots.end(), 0);
    if (request_.shuffle_seed) Rng(*request_.shuffle_seed).shuffle(slots);
    auto next = slots.begin();
    for (size_t i = 0; i < slot_counts_.size(); ++i) {
      PageTable& table = binding_.page_tables[i];
      table.id = PageTableId("pages-" + padded(i, slot_counts_.size() - 1));
      table.slots.assign(next, next + static_cast<ptrdiff_t>(slot_counts_[i]));
      next += static_cast<ptrdiff_t>(slot_counts_[i]);
    }
    return true;
  }

  bool make_regions(const ComponentName& name, size_t group, const std::vector<Piece>& pieces) {
    const auto layers_of = [](const Piece& piece) { return piece.layers; };
    if (!request_.region_per_layer) {
      std::vector<Range> layers;
      std::transform(pieces.begin(), pieces.end(), std::back_inserter(layers), layers_of);
      const std::string suffix = "g" + padded(group, placement_.cache_schema.groups.size() - 1);
      return make_region(region_id(name, suffix), IntervalSet::from_ranges(std::move(layers)), pieces);
    }
    const uint64_t highest = placement_.cache_schema.layers().hull().end() - 1;
    return sweep(pieces, layers_of, [&](Range slab, std::span<const Piece> active) {
      for (uint64_t layer = slab.begin(); layer < slab.end(); ++layer) {
        const RegionId id = region_id(name, padded(layer, highest, kLayerDigitsMin));
        if (!make_region(id, IntervalSet{Range(layer, layer + 1)}, active)) return false;
      }
      return true;
    });
  }

  // A region of `layers`, with what the pieces, all of one component, have there.
  bool make_region(RegionId id, const IntervalSet& layers, std::span<const Piece> pieces) {
    const Component& component = *pieces.front().component;
    std::vector<Range> head_runs;
    for (const Piece& piece : pieces)
      head_runs.insert(head_runs.end(), piece.heads->ranges().begin(), piece.heads->ranges().end());
    // Heads and layers of a region are packed: the place of one is the number of owned ones below it.
    const IntervalRank heads(IntervalSet::from_ranges(std::move(head_runs)));
    const IntervalRank packed_layers(layers);
    const uint64_t rows = component.is_state() ? 1 : request_.page_tokens / *component.tokens_per_row;
    const uint64_t slots = component.is_state() ? 1 : slot_count_;
    const Checked checked_page = Checked(component.head_bytes()) * heads.count() * rows;
    const auto bytes = (checked_page * slots * packed_layers.count()).value();
    if (!bytes)
      return refuse(Rule::kSizeOverflow, fmt::format("region '{}'", id.text()),
                    fmt::format("{} layers x {} slots x {} rows x {} heads x {} bytes do not fit in 64 bits",
                                packed_layers.count(), slots, rows, heads.count(), component.head_bytes()));
    const uint64_t page_bytes = *checked_page.value();
    const bool is_nhd = request_.axis_order == AxisOrder::kNhd;
    View view;
    view.component = component.name;
    view.dims = Range(0, component.head_dim);
    view.region = id;
    view.strides = ByteStrides{.layer = page_bytes * slots,
                               .row = component.head_bytes() * (is_nhd ? heads.count() : 1),
                               .head = component.head_bytes() * (is_nhd ? 1 : rows),
                               .dim = component.item_bytes};
    for (const Piece& piece : pieces) {
      view.layers = piece.layers.intersect(layers.hull());
      for (const Range head_run : piece.heads->ranges()) {
        view.heads = head_run;
        view.offset_bytes = packed_layers.count_below(view.layers.begin()) * view.strides.layer +
                            heads.count_below(head_run.begin()) * view.strides.head;
        append_views(view, piece.tokens, page_bytes);
      }
    }
    binding_.regions.push_back(Region{std::move(id), 0, *bytes, binding_.devices.front().id, {}, {}});
    return true;
  }

  // The view, which has all but its tokens and pages, for each run of the tokens.
  void append_views(View view, const PagedTokens* tokens, uint64_t page_bytes) {
    if (tokens == nullptr) {
      view.tokens = Range(0, 1);
      binding_.views.push_back(std::move(view));
      return;
    }
    view.cycle = tokens->cycle;
    for (const TokenRun& run : tokens->runs) {
      view.tokens = run.tokens;
      view.pages = ViewPages{binding_.page_tables[run.table].id, page_bytes};
      binding_.views.push_back(view);
    }
  }

  const PlacementManifest& placement_;
  const LayerIndex index_;
  const PoolRequest& request_;
  RuntimeBinding& binding_;
  Diagnostics& diagnostics_;
  std::map<std::pair<Range, TokenOwnership>, PagedTokens> paged_;         // by live interval and ownership
  std::map<std::pair<ComponentName, size_t>, std::vector<Piece>> pools_;  // by component and group
  std::vector<uint64_t> slot_counts_;                                     // of each page table
  uint64_t slot_count_ = 0;                                               // of a pool
  uint64_t view_count_ = 0;
  uint64_t page_count_ = 0;
};

}  // namespace

std::optional<Valid<RuntimeBinding>> pool_binding(const Valid<PlacementManifest>& placement,
                                                  const Sha256Digest& placement_digest,
                                                  const ParticipantId& participant, Range tokens,
                                                  const Sha256Digest& snapshot_digest, const PoolRequest& request,
                                                  Diagnostics& diagnostics) {
  RuntimeBinding binding;
  binding.operation = request.operation;
  binding.resource = placement->resource;
  binding.revision = placement->revision;
  binding.participant = participant;
  binding.instance = instance_id(request.instance_prefix, participant);
  binding.placement_digest = placement_digest;
  binding.snapshot_digest = snapshot_digest;
  binding.tokens = tokens;
  binding.devices = {Device{DeviceId("device"), request.device_kind, Range::kUnbounded}};
  diagnostics.set_document(binding_label(binding));
  const uint64_t diagnostics_before = diagnostics.total();
  const Part* part = placement->find_part(participant);
  if (part == nullptr)
    diagnostics.add(Rule::kBindingIdentity, "",
                    fmt::format("placement '{}' has no participant '{}'", placement->name, participant.text()));
  if (!placement->tokens.contains(tokens))
    diagnostics.add(Rule::kTokenBounds, "",
                    fmt::format("tokens {} lie outside the placement's tokens {}", range_text(tokens),
                                range_text(placement->tokens)));
  if (request.page_tokens == 0) diagnostics.add(Rule::kFieldMinimum, "", "page_tokens 0 is below 1");
  if (diagnostics.total() != diagnostics_before || !PoolBuilder(*placement, request, binding, diagnostics).run(*part))
    return std::nullopt;
  return Valid<RuntimeBinding>::make(std::move(binding), diagnostics);
}

}  // namespace crossdock
