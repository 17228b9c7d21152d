#include "tests/support/random_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

#include "base/rng.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"

namespace crossdock::testing {
namespace {

// Simpler draws than the given one: blocks of numbers set to 0, the largest first; then numbers taken out, so that
// those after them in their section move up; then numbers made smaller.
class SimplerDraws {
 public:
  explicit SimplerDraws(Draw draw) : draw_(std::move(draw)) {}

  rc::Maybe<Draw> operator()() {
    for (; way_ < kWays.size(); ++way_, at_ = 0)
      while (at_ < draw_.numbers.size()) {
        const size_t begin = std::exchange(at_, at_ + kWays[way_].stride);
        Draw simpler = draw_;
        apply(kWays[way_], std::span(simpler.numbers).subspan(begin));
        if (simpler.numbers != draw_.numbers) return simpler;
      }
    return rc::Nothing;
  }

 private:
  enum class Kind { kZero, kTakeOut, kReduce };
  struct Way {
    Kind kind;
    size_t count;   // numbers set to 0 or taken out; or the part by which one becomes smaller
    size_t stride;  // from one place where it is tried to the next
  };
  static constexpr size_t kAll = Draw::kSectionCount * Draw::kSectionNumbers;
  static constexpr std::array kWays = {
      Way{Kind::kZero, kAll, kAll}, Way{Kind::kZero, 512, 512}, Way{Kind::kZero, 128, 128}, Way{Kind::kZero, 32, 32},
      Way{Kind::kZero, 8, 8},       Way{Kind::kZero, 4, 4},     Way{Kind::kZero, 2, 2},     Way{Kind::kZero, 1, 1},
      Way{Kind::kTakeOut, 16, 4},   Way{Kind::kTakeOut, 4, 1},  Way{Kind::kTakeOut, 2, 1},  Way{Kind::kTakeOut, 1, 1},
      Way{Kind::kReduce, 2, 1},     Way{Kind::kReduce, 4, 1},   Way{Kind::kReduce, 8, 1}};

  // `numbers` begin where the way is tried, and end with the draw.
  static void apply(const Way& way, std::span<uint16_t> numbers) {
    if (way.kind == Kind::kReduce) {
      numbers[0] = static_cast<uint16_t>(numbers[0] - numbers[0] / way.count);
    } else if (way.kind == Kind::kZero) {
      std::fill_n(numbers.begin(), way.count, uint16_t{0});
    } else {
      const std::span<uint16_t> section = numbers.first((numbers.size() - 1) % Draw::kSectionNumbers + 1);
      const size_t count = std::min(way.count, section.size());
      std::fill(std::copy(section.begin() + static_cast<ptrdiff_t>(count), section.end(), section.begin()),
                section.end(), uint16_t{0});
    }
  }

  Draw draw_;
  size_t way_ = 0;
  size_t at_ = 0;
};

Draw draw_from(uint64_t seed) {
  Rng rng(seed);
  Draw draw;
  draw.numbers.resize(Draw::kSectionCount * Draw::kSectionNumbers);
  for (size_t section = 0; section < Draw::kSectionCount; ++section) {
    if (rng.chance(1, 16)) continue;  // the simplest document
    for (size_t i = 0; i < Draw::kSectionNumbers; ++i)
      draw.numbers[section * Draw::kSectionNumbers + i] = static_cast<uint16_t>(rng.below(uint64_t{1} << 16));
  }
  return draw;
}

uint64_t round_down(uint64_t value, uint64_t unit) { return value - value % unit; }
uint64_t round_up(uint64_t value, uint64_t unit) { return round_down(value + unit - 1, unit); }

std::vector<uint64_t> numbers_of(const IntervalSet& set) {
  std::vector<uint64_t> numbers;
  for (const Range range : set.ranges())
    for (uint64_t number = range.begin(); number < range.end(); ++number) numbers.push_back(number);
  return numbers;
}

// ---- schema

struct ItemType {
  const char* dtype;
  uint64_t bytes;
};
constexpr std::array kItemTypes = {ItemType{"bfloat16", 2}, ItemType{"float8_e4m3fn", 1}, ItemType{"float32", 4},
                                   ItemType{"packed_int24", 3}};

Component random_component(const char* name, uint64_t row_tokens, Choices& choices) {
  const ItemType item = kItemTypes[choices.below(kItemTypes.size())];
  Component component{ComponentName(name), item.dtype, "plain", item.bytes, 1, 1, 1};
  component.head_count = choices.between(1, 6);
  component.head_dim = choices.between(1, 3);
  switch (choices.below(6)) {
    case 4: component.tokens_per_row = row_tokens; break;
    case 5: component.tokens_per_row = std::nullopt; break;
    default: break;
  }
  return component;
}

// ---- placement

// The tensor-parallel ranks that own each head, by replica ordinal.
using HeadOwners = std::vector<std::vector<uint64_t>>;

HeadOwners random_head_owners(uint64_t head_count, uint64_t rank_count, Choices& choices) {
  HeadOwners owners(head_count);
  const uint64_t kind = choices.below(5);
  uint64_t reached = 0;
  for (uint64_t head = 0; head < head_count; ++head) {
    std::vector<uint64_t>& ranks = owners[head];
    if (kind == 0) {  // runs of any length
      if (choices.chance(1, 2)) reached = choices.between(reached, rank_count - 1);
      ranks = {reached};
    } else if (kind == 1) {  // as engines do: equal runs, or equal replica sets where there are more ranks than heads
      for (uint64_t rank = 0; rank < rank_count; ++rank)
        if (rank_count >= head_count ? rank * head_count / rank_count == head : head * rank_count / head_count == rank)
          ranks.push_back(rank);
    } else if (kind == 2) {  // all replicas
      ranks.resize(rank_count);
      std::iota(ranks.begin(), ranks.end(), uint64_t{0});
    } else if (kind == 3) {
      ranks = {choices.below(rank_count)};
    } else {  // any replica set
      const uint64_t members = choices.between(1, (uint64_t{1} << rank_count) - 1);
      for (uint64_t rank = 0; rank < rank_count; ++rank)
        if (members >> rank & 1) ranks.push_back(rank);
    }
    if (choices.chance(1, 4)) choices.shuffle(ranks);
  }
  return owners;
}

// What each context-parallel rank has of the tokens; empty where it has none.
using TokenShares = std::vector<std::optional<TokenOwnership>>;

TokenShares shares_of(const std::vector<std::vector<Range>>& owned, std::optional<CyclicTokens> cycle) {
  TokenShares shares;
  for (const std::vector<Range>& ranges : owned) {
    const IntervalSet set = IntervalSet::from_ranges(ranges);
    if (set.empty()) {
      shares.emplace_back();
    } else if (cycle) {
      cycle->blocks = set;
      shares.emplace_back(*cycle);
    } else {
      shares.emplace_back(TokenIntervals{set});
    }
  }
  return shares;
}

TokenShares random_cycle(uint64_t rank_count, uint64_t unit, Choices& choices) {
  CyclicTokens cycle{unit * choices.between(1, 2), rank_count, {}};
  const uint64_t kind = choices.below(3);
  if (kind == 1) cycle.cycle_blocks = 2 * rank_count;  // zigzag
  if (kind == 2) cycle.cycle_blocks = choices.between(1, 5);
  std::vector<std::vector<Range>> blocks(rank_count);
  for (uint64_t block = 0; block < cycle.cycle_blocks; ++block) {
    const uint64_t rank = kind == 2            ? choices.below(rank_count)
                          : block < rank_count ? block
                                               : 2 * rank_count - 1 - block;
    blocks[rank].emplace_back(block, block + 1);
  }
  return shares_of(blocks, cycle);
}

// Intervals that end anywhere up to the last token that anyone looks at.
TokenShares random_intervals(uint64_t rank_count, uint64_t unit, Range tokens, Choices& choices) {
  std::vector<std::vector<Range>> owned(rank_count);
  for (uint64_t begin = tokens.begin(); begin < tokens.end();) {
    const uint64_t next = round_down(begin + unit * choices.between(1, 6), unit);
    const uint64_t end = next >= tokens.end() || next > 30 ? tokens.end() : next;
    owned[choices.below(rank_count)].emplace_back(begin, end);
    begin = end;
  }
  return shares_of(owned, std::nullopt);
}

class PlacementBuilder {
 public:
  PlacementBuilder(const CacheSchema& schema, Range tokens, Choices& choices)
      : schema_(schema), unit_(row_unit(schema)), choices_(choices) {
    placement_.cache_schema = schema;
    placement_.resource = ResourceId("r");
    placement_.revision = RevisionId("1");
    if (choices.chance(1, 4))
      placement_.tokens =
          Range(round_down(tokens.begin() - choices.below(tokens.begin() + 1), unit_), tokens.end() + choices.below(4));
  }

  PlacementManifest build(const std::string& name) {
    placement_.name = name;
    ParallelAxes& sizes = placement_.topology.sizes;
    sizes = ParallelAxes{.dp = choices_.between(1, 3),
                         .pp = choices_.between(1, 3),
                         .tp = choices_.between(1, 4),
                         .cp = choices_.between(1, 3),
                         .ep = 1};
    while (sizes.dp * sizes.pp * sizes.tp * sizes.cp > 12) {
      uint64_t& size = sizes.dp > 1 ? sizes.dp : sizes.pp > 1 ? sizes.pp : sizes.cp;
      --size;
    }
    for (uint64_t dp = 0; dp < sizes.dp; ++dp) {
      if (dp == 0 || choices_.chance(1, 3)) share_out();  // else as the rank before
      name_participants(dp);
    }
    return placement_;
  }

 private:
  using RankKey = std::tuple<uint64_t, uint64_t, uint64_t>;  // pp, tp, cp
  using ItemKey = std::tuple<IntervalSet, ComponentName, TokenOwnership, ReplicaOrdinal>;
  using MergedKey = std::tuple<IntervalSet, IntervalSet, TokenOwnership, ReplicaOrdinal>;  // layers, heads

  // Who owns what within one data-parallel rank.
  void share_out() {
    items_.clear();
    const ParallelAxes& sizes = placement_.topology.sizes;
    shares_ = TokenShares{TokenOwnership(AllTokens())};
    if (sizes.cp > 1)
      shares_ = choices_.chance(1, 3) ? random_intervals(sizes.cp, unit_, placement_.tokens, choices_)
                                      : random_cycle(sizes.cp, unit_, choices_);
    const std::vector<uint64_t> layers = numbers_of(schema_.layers());
    std::map<uint64_t, uint64_t> stage_of;
    const bool any_set = choices_.chance(1, 2);
    for (size_t i = 0; i < layers.size(); ++i)
      stage_of[layers[i]] = any_set ? choices_.below(sizes.pp) : i * sizes.pp / layers.size();
    for (uint64_t stage = 0; stage < sizes.pp; ++stage) {
      owners_.clear();
      for (const LayerGroup& group : schema_.groups) {
        std::vector<Range> own;
        for (const uint64_t layer : layers)
          if (stage_of[layer] == stage && group.layers.contains(layer)) own.emplace_back(layer, layer + 1);
        if (own.empty()) continue;
        for (const Component& component : group.components)
          share_component(stage, IntervalSet::from_ranges(own), component);
      }
    }
  }

  void share_component(uint64_t stage, const IntervalSet& layers, const Component& component) {
    const uint64_t rank_count = placement_.topology.sizes.tp;
    const auto draw = [&] { return random_head_owners(component.head_count, rank_count, choices_); };
    const auto known = owners_.find(component.head_count);
    const HeadOwners owners = known != owners_.end() && !choices_.chance(1, 4) ? known->second : draw();
    owners_[component.head_count] = owners;
    if (component.is_state()) return share_state(stage, layers, component, owners);
    for (uint64_t cp = 0; cp < shares_.size(); ++cp) {
      if (!shares_[cp]) continue;
      const HeadOwners own = choices_.chance(1, 8) ? draw() : owners;
      for (uint64_t head = 0; head < own.size(); ++head)
        for (uint64_t i = 0; i < own[head].size(); ++i)
          items_[RankKey(stage, own[head][i], cp)]
                [ItemKey(layers, component.name, *shares_[cp], ReplicaOrdinal{i, own[head].size()})]
                    .emplace_back(head, head + 1);
    }
  }

  // One context-parallel rank has it, or all of them as replicas.
  void share_state(uint64_t stage, const IntervalSet& layers, const Component& component, const HeadOwners& owners) {
    const uint64_t cp_count = placement_.topology.sizes.cp;
    const bool replicated = choices_.chance(1, 2);
    const uint64_t only = choices_.below(cp_count);
    for (uint64_t head = 0; head < owners.size(); ++head) {
      ReplicaOrdinal replica{0, owners[head].size() * (replicated ? cp_count : 1)};
      for (uint64_t cp = 0; cp < cp_count; ++cp) {
        if (!replicated && cp != only) continue;
        for (const uint64_t tp : owners[head]) {
          items_[RankKey(stage, tp, cp)][ItemKey(layers, component.name, AllTokens(), replica)].emplace_back(head,
                                                                                                             head + 1);
          ++replica.ordinal;
        }
      }
    }
  }

  // Components that are owned alike stand in one ownership or in several, runs of heads too.
  std::vector<Ownership> owned_by(const RankKey& rank) {
    std::map<MergedKey, std::vector<ComponentName>> merged;
    for (const auto& [key, ranges] : items_[rank]) {
      const auto& [layers, component, tokens, replica] = key;
      const IntervalSet heads = IntervalSet::from_ranges(ranges);
      if (choices_.chance(1, 6))
        for (const Range run : heads.ranges())
          merged[MergedKey(layers, IntervalSet{run}, tokens, replica)].push_back(component);
      else
        merged[MergedKey(layers, heads, tokens, replica)].push_back(component);
    }
    std::vector<Ownership> owns;
    for (const auto& [key, components] : merged) {
      const auto& [layers, heads, tokens, replica] = key;
      if (choices_.chance(1, 4))
        for (const ComponentName& component : components)
          owns.push_back(Ownership{layers, {component}, heads, tokens, replica});
      else
        owns.push_back(Ownership{layers, components, heads, tokens, replica});
    }
    return owns;
  }

  // Names whose order is not that of the ranks.
  void name_participants(uint64_t dp) {
    const ParallelAxes& sizes = placement_.topology.sizes;
    std::vector<uint64_t> labels(sizes.pp * sizes.tp * sizes.cp);
    std::iota(labels.begin(), labels.end(), uint64_t{0});
    if (choices_.chance(1, 3)) choices_.shuffle(labels);
    size_t next = 0;
    for (uint64_t pp = 0; pp < sizes.pp; ++pp)
      for (uint64_t tp = 0; tp < sizes.tp; ++tp)
        for (uint64_t cp = 0; cp < sizes.cp; ++cp) {
          const ParticipantId id(fmt::format("d{}-{:02}", dp, labels[next++]));
          const Part part{id, owned_by(RankKey(pp, tp, cp))};
          if (part.owns.empty() && choices_.chance(1, 4)) continue;  // a rank may stay empty
          placement_.topology.participants.push_back(
              Participant{id, ParallelAxes{.dp = dp, .pp = pp, .tp = tp, .cp = cp, .ep = 0}});
          placement_.parts.push_back(part);
        }
  }

  const CacheSchema& schema_;
  uint64_t unit_;
  Choices& choices_;
  PlacementManifest placement_;
  TokenShares shares_;                                              // of the context-parallel ranks
  std::map<uint64_t, HeadOwners> owners_;                           // of a stage, by head count
  std::map<RankKey, std::map<ItemKey, std::vector<Range>>> items_;  // heads
};

// ---- bindings

enum Axis : size_t { kPage, kLayer, kRow, kHead, kDim, kAxisCount };

// What one view will show.
struct Slab {
  Component component;
  Range layers;
  Range heads;
  Range dims;
  Range tokens;
  std::optional<CyclicTokens> cycle;
  std::optional<size_t> table;  // number in the binding

  uint64_t row_tokens() const { return component.tokens_per_row.value_or(1); }
  uint64_t first_row_begin() const { return round_down(tokens.begin(), row_tokens()); }
};

struct Table {
  PageTable table;
  std::optional<CyclicTokens> cycle;
  bool for_state = false;
  uint64_t page_count = 0;
  size_t pool = 0;  // tables of one pool share no slot
};

// An array of pages that several tables may use.
struct PageArray {
  size_t pool = 0;
  RegionId region;
  uint64_t offset_bytes = 0;
  uint64_t page_stride_bytes = 0;
  std::set<std::pair<size_t, size_t>> tables;  // (binding, table) in use
};

uint64_t selected_within(const std::optional<CyclicTokens>& cycle, uint64_t begin, uint64_t end) {
  uint64_t count = 0;
  for (uint64_t token = begin; token < end; ++token) count += !cycle || cycle->contains(token);
  return count;
}

// The participants of one instance, with its regions.
class InstanceBuilder {
 public:
  InstanceBuilder(const PlacementManifest& placement, RuntimeBinding common, BindingStyle style, Choices& choices)
      : placement_(placement),
        unit_(row_unit(placement.cache_schema)),
        common_(std::move(common)),
        style_(style),
        choices_(choices),
        region_count_(choices.between(1, 3)) {}

  void add(const Part& part) {
    Bound bound;
    bound.binding = common_;
    bound.binding.participant = part.participant;
    std::vector<Slab> slabs;
    const SlabStyle style = random_slab_style();
    for (const Ownership& own : part.owns) append_slabs(own, style, slabs);
    for (Slab& slab : slabs) {
      const bool is_paged = style_ == BindingStyle::kPaged
                                ? !choices_.chance(1, 16)
                                : style.paged && (!slab.component.is_state() || choices_.chance(1, 3));
      if (is_paged) slab.table = table_for(slab, bound.tables);
      find_pack(slab, style.packed, bound.packs).push_back(slab);
    }
    bounds_.push_back(std::move(bound));
  }

  std::vector<RuntimeBinding> finish() {
    deal_out_slots();
    for (size_t number = 0; number < bounds_.size(); ++number)
      for (const std::vector<Slab>& pack : bounds_[number].packs) place(number, pack);
    std::vector<RuntimeBinding> bindings;
    for (Bound& bound : bounds_) {
      for (const Table& table : bound.tables) bound.binding.page_tables.push_back(table.table);
      bindings.push_back(std::move(bound.binding));
    }
    size_regions(bindings);
    return bindings;
  }

 private:
  using Pack = std::vector<Slab>;  // interleaved
  struct Bound {
    RuntimeBinding binding;
    std::vector<Table> tables;
    std::vector<Pack> packs;
  };
  struct SlabStyle {
    bool per_layer, per_head, cut_dims, cut_tokens, without_cycles, paged, packed;
  };
  // What a slab's strides are, and where it begins in its pack.
  struct Placed {
    std::array<uint64_t, kAxisCount> strides = {};
    uint64_t offset = 0;
  };

  SlabStyle random_slab_style() {
    return SlabStyle{choices_.chance(1, 3), choices_.chance(1, 5), choices_.chance(1, 8), choices_.chance(1, 4),
                     choices_.chance(1, 4), choices_.chance(3, 4), choices_.chance(2, 3)};
  }

  void append_slabs(const Ownership& own, const SlabStyle& style, std::vector<Slab>& slabs) {
    for (const ComponentName& name : own.components) {
      std::vector<Slab> runs;  // neighbouring layers with the same component and live tokens, also of several groups
      for (const uint64_t layer : numbers_of(own.layers)) {
        const LayerGroup& group = *placement_.cache_schema.find_group(layer);
        Slab slab{*group.find(name), Range(layer, layer + 1), {}, {}, {}, {}, {}};
        slab.tokens = live_tokens(group, slab.component, common_.tokens);
        Slab* last = runs.empty() ? nullptr : &runs.back();
        if (last != nullptr && !style.per_layer && last->layers.end() == layer && last->component == slab.component &&
            last->tokens == slab.tokens)
          last->layers = Range(last->layers.begin(), layer + 1);
        else
          runs.push_back(slab);
      }
      for (const Slab& run : runs) append_tokens(run, own, style, slabs);
    }
  }

  void append_tokens(Slab slab, const Ownership& own, const SlabStyle& style, std::vector<Slab>& slabs) {
    std::vector<Range> stretches = {slab.tokens};
    if (const auto* stated = std::get_if<TokenIntervals>(&own.tokens)) {
      const IntervalSet live = stated->tokens.intersect({slab.tokens});
      stretches = live.ranges();
    }
    if (const auto* cycle = std::get_if<CyclicTokens>(&own.tokens)) {
      slab.cycle = *cycle;
      if (style.without_cycles) {
        stretches = tokens_within(own.tokens, slab.tokens, 100)->ranges();
        slab.cycle = std::nullopt;
      }
    }
    for (const Range stretch : stretches) {
      if (selected_within(slab.cycle, stretch.begin(), stretch.end()) == 0) continue;
      slab.tokens = stretch;
      const uint64_t cut = round_down(choices_.between(stretch.begin(), stretch.end()), slab.row_tokens());
      const bool is_cut = style.cut_tokens && !slab.component.is_state() && cut > stretch.begin() &&
                          selected_within(slab.cycle, stretch.begin(), cut) > 0 &&
                          selected_within(slab.cycle, cut, stretch.end()) > 0;
      if (is_cut) {
        slab.tokens = Range(stretch.begin(), cut);
        append_heads(slab, own, style, slabs);
        slab.tokens = Range(cut, stretch.end());
      }
      append_heads(slab, own, style, slabs);
    }
  }

  void append_heads(Slab slab, const Ownership& own, const SlabStyle& style, std::vector<Slab>& slabs) {
    for (const Range run : own.heads.ranges())
      for (uint64_t head = run.begin(); head < run.end(); head = slab.heads.end()) {
        slab.heads = style.per_head ? Range(head, head + 1) : run;
        const uint64_t dim = slab.component.head_dim;
        const uint64_t cut = style.cut_dims ? choices_.below(dim) : 0;
        if (cut > 0) {
          slab.dims = Range(0, cut);
          slabs.push_back(slab);
        }
        slab.dims = Range(cut, dim);
        slabs.push_back(slab);
      }
  }

  // A table of the binding that selects the same tokens and begins early enough, or a new one.
  size_t table_for(const Slab& slab, std::vector<Table>& tables) {
    const bool for_state = slab.component.is_state();
    size_t number = 0;
    for (; number < tables.size(); ++number)
      if (tables[number].cycle == slab.cycle && tables[number].for_state == for_state &&
          tables[number].table.token_begin <= slab.first_row_begin())
        break;
    if (number == tables.size() || choices_.chance(style_ == BindingStyle::kPaged ? 2 : 1, 4)) {
      number = tables.size();
      Table table;
      table.table.id = PageTableId(fmt::format("t{}", number));
      table.table.page_tokens = (for_state ? 1 : unit_) * choices_.between(1, 3);
      table.table.token_begin = for_state ? 0 : round_down(slab.first_row_begin(), unit_);
      for (uint64_t earlier = choices_.below(3); earlier > 0 && table.table.token_begin > 0; --earlier)
        table.table.token_begin -= unit_;
      table.cycle = slab.cycle;
      table.for_state = for_state;
      const uint64_t sharing = style_ == BindingStyle::kPaged ? 3 : 1;  // of 4 tables
      table.pool = pool_count_ > 0 && choices_.chance(sharing, 4) ? choices_.below(pool_count_) : pool_count_++;
      tables.push_back(table);
    }
    Table& table = tables[number];
    const uint64_t selected = selected_within(table.cycle, table.table.token_begin, slab.tokens.end());
    table.page_count =
        std::max(table.page_count, round_up(selected, table.table.page_tokens) / table.table.page_tokens);
    return number;
  }

  Pack& find_pack(const Slab& slab, bool packed, std::vector<Pack>& packs) {
    for (Pack& pack : packs) {
      const Slab& first = pack.front();
      if (packed && first.layers == slab.layers && first.heads == slab.heads && first.tokens == slab.tokens &&
          first.cycle == slab.cycle && first.table == slab.table &&
          first.component.tokens_per_row == slab.component.tokens_per_row)
        return pack;
    }
    return packs.emplace_back();
  }

  void deal_out_slots() {
    slot_counts_.resize(pool_count_);
    for (size_t pool = 0; pool < pool_count_; ++pool) {
      std::vector<Table*> tables;
      for (Bound& bound : bounds_)
        for (Table& table : bound.tables)
          if (table.pool == pool) tables.push_back(&table);
      for (Table* table : tables) {
        table->page_count += choices_.below(2);  // a page that no view reaches
        slot_counts_[pool] += table->page_count;
      }
      slot_counts_[pool] += choices_.below(3);
      std::vector<uint64_t> slots(slot_counts_[pool]);
      std::iota(slots.begin(), slots.end(), uint64_t{0});
      if (choices_.chance(2, 3)) choices_.shuffle(slots);
      auto next = slots.begin();
      for (Table* table : tables) {
        const auto end = next + static_cast<ptrdiff_t>(table->page_count);
        table->table.slots.assign(next, end);
        next = end;
      }
    }
  }

  uint64_t extent_of(const Slab& slab, const Table* table, size_t axis) const {
    switch (axis) {
      case kPage: return table == nullptr ? 1 : slot_counts_[table->pool];
      case kLayer: return slab.layers.size();
      case kHead: return slab.heads.size();
      case kDim: return slab.dims.size();
      default: break;
    }
    if (table != nullptr) return table->table.page_tokens / slab.row_tokens();
    const uint64_t selected = selected_within(slab.cycle, slab.first_row_begin(), slab.tokens.end());
    return round_up(selected, slab.row_tokens()) / slab.row_tokens();
  }

  // At least `bytes`, a multiple of `unit`, sometimes more.
  uint64_t padded(uint64_t bytes, uint64_t unit) {
    return round_up(bytes, unit) + (choices_.chance(1, 6) ? unit * choices_.between(1, 2) : 0);
  }

  // The axes of a pack, outermost first, and how many of the outer ones all its slabs share.
  struct PackOrder {
    std::array<size_t, kAxisCount> axes = {kPage, kLayer, kRow, kHead, kDim};
    size_t shared = 0;
  };
  PackOrder random_order() {
    PackOrder order;
    if (choices_.chance(1, 2)) std::swap(order.axes[2], order.axes[3]);
    if (choices_.chance(1, 3)) choices_.shuffle(order.axes);
    const auto dim = std::find(order.axes.begin(), order.axes.end(), static_cast<size_t>(kDim));
    const auto page = std::find(order.axes.begin(), order.axes.end(), static_cast<size_t>(kPage));
    if (style_ == BindingStyle::kPaged && dim < page) std::swap(*dim, *page);
    const auto [first, last] = std::minmax(dim, page);
    const auto least = style_ == BindingStyle::kPaged ? first + 1 : order.axes.begin();
    const auto most = style_ == BindingStyle::kPaged ? last : dim;
    order.shared = choices_.between(static_cast<uint64_t>(least - order.axes.begin()),
                                    static_cast<uint64_t>(most - order.axes.begin()));
    return order;
  }

  void place(size_t number, const Pack& pack) {
    const Table* table = pack.front().table ? &bounds_[number].tables[*pack.front().table] : nullptr;
    const PackOrder order = random_order();
    std::vector<Placed> placed;
    uint64_t align = 1;
    uint64_t bytes = 0;  // of the pack
    for (const Slab& slab : pack) {
      const uint64_t item = slab.component.item_bytes;
      align = std::lcm(align, item);
      Placed& own = placed.emplace_back();
      uint64_t size = item;
      for (size_t i = kAxisCount; i-- > order.shared;) {
        own.strides[order.axes[i]] = padded(size, item);
        size = own.strides[order.axes[i]] * extent_of(slab, table, order.axes[i]);
      }
      own.offset = padded(bytes, item);
      bytes = own.offset + size;
    }
    uint64_t page_bytes = bytes;  // of what one page holds, where the page is the outermost axis
    for (size_t i = order.shared; i-- > 0;) {
      page_bytes = bytes;
      const uint64_t stride = padded(bytes, align);
      for (Placed& own : placed) own.strides[order.axes[i]] = stride;
      bytes = stride * extent_of(pack.front(), table, order.axes[i]);
    }
    const bool may_share = table != nullptr && order.shared > 0 && order.axes[0] == kPage;
    PageArray array = may_share ? array_for(number, pack, page_bytes, align) : PageArray{};
    if (array.page_stride_bytes == 0) {
      array = PageArray{0, next_region(table == nullptr ? 0 : placed.front().strides[kPage]), 0, 0, {}};
      uint64_t& used = used_bytes_[array.region];
      array.offset_bytes = round_up(used, align) + align * choices_.below(3);
      used = array.offset_bytes + bytes;
      if (may_share) {
        array.pool = table->pool;
        array.page_stride_bytes = placed.front().strides[kPage];
        array.tables = {{number, *pack.front().table}};
        arrays_.push_back(array);
      }
    }
    for (size_t i = 0; i < pack.size(); ++i) {
      if (may_share) placed[i].strides[kPage] = array.page_stride_bytes;
      add_view(number, pack[i], placed[i], array);
    }
  }

  // With kPaged, one whose pages are all of this size; with no pages (0), any.
  RegionId next_region(uint64_t page_stride_bytes) {
    if (style_ == BindingStyle::kAny) return RegionId(fmt::format("m{}", choices_.below(region_count_)));
    if (page_stride_bytes == 0) return RegionId(fmt::format("m{}", choices_.below(used_bytes_.size() + 1)));
    std::vector<RegionId>& regions = regions_of_[page_stride_bytes];
    if (regions.empty() || !choices_.chance(2, 3)) regions.emplace_back(fmt::format("m{}", used_bytes_.size()));
    return regions[choices_.below(regions.size())];
  }

  // An array of the pool in which the table has no page yet and whose pages are large enough; else one without stride.
  PageArray array_for(size_t number, const Pack& pack, uint64_t page_bytes, uint64_t align) {
    const size_t table_number = *pack.front().table;
    const size_t pool = bounds_[number].tables[table_number].pool;
    for (PageArray& array : arrays_) {
      if (array.pool != pool || array.tables.contains({number, table_number}) || array.page_stride_bytes < page_bytes ||
          array.page_stride_bytes % align != 0 || array.offset_bytes % align != 0)
        continue;
      array.tables.insert({number, table_number});
      return array;
    }
    return PageArray{};
  }

  void add_view(size_t number, const Slab& slab, const Placed& placed, const PageArray& array) {
    View view;
    view.component = slab.component.name;
    view.layers = slab.layers;
    view.tokens = slab.tokens;
    view.cycle = slab.cycle;
    view.heads = slab.heads;
    view.dims = slab.dims;
    view.region = array.region;
    view.offset_bytes = array.offset_bytes + placed.offset;
    view.strides = ByteStrides{.layer = placed.strides[kLayer],
                               .row = placed.strides[kRow],
                               .head = placed.strides[kHead],
                               .dim = placed.strides[kDim]};
    if (slab.table) view.pages = ViewPages{bounds_[number].tables[*slab.table].table.id, placed.strides[kPage]};
    bounds_[number].binding.views.push_back(view);
  }

  // Regions end some bytes after what is in them, or with the last byte in use.
  void size_regions(std::vector<RuntimeBinding>& bindings) {
    std::map<RegionId, Region> regions;
    for (const auto& [id, used] : used_bytes_)
      regions[id] = Region{id, choices_.below(4), used + choices_.below(9), DeviceId("d"), {}, {}};
    for (auto& [id, region] : regions)
      if (style_ == BindingStyle::kAny && choices_.chance(1, 3)) region.bytes = end_of_use(bindings, id);
    for (RuntimeBinding& binding : bindings) {
      std::set<RegionId> named;
      for (const View& view : binding.views) named.insert(view.region);
      for (const RegionId& id : named) binding.regions.push_back(regions.at(id));
    }
  }

  uint64_t end_of_use(const std::vector<RuntimeBinding>& bindings, const RegionId& region) const {
    uint64_t end = 1;
    for (const RuntimeBinding& binding : bindings)
      for (const View& view : binding.views) {
        if (view.region != region) continue;
        const Component& component = *placement_.cache_schema.find_group(view.layers.begin())->find(view.component);
        for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token) {
          const auto address = naive_address(view, binding.page_tables, component, view.layers.end() - 1, token,
                                             view.heads.end() - 1, view.dims.end() - 1);
          if (address) end = std::max(end, *address + component.item_bytes);
        }
      }
    return end;
  }

  const PlacementManifest& placement_;
  uint64_t unit_;
  RuntimeBinding common_;
  BindingStyle style_;
  Choices& choices_;
  uint64_t region_count_;
  std::vector<Bound> bounds_;
  size_t pool_count_ = 0;
  std::vector<uint64_t> slot_counts_;  // of each pool
  std::vector<PageArray> arrays_;
  std::map<RegionId, uint64_t> used_bytes_;
  std::map<uint64_t, std::vector<RegionId>> regions_of_;  // by page stride
};

// ---- store layout

// Divides numbers among up to three sets, of which some may be empty.
std::vector<IntervalSet> random_sets(const std::vector<uint64_t>& numbers, Choices& choices) {
  std::vector<std::vector<Range>> ranges(choices.between(1, 3));
  for (const uint64_t number : numbers) ranges[choices.below(ranges.size())].emplace_back(number, number + 1);
  std::vector<IntervalSet> sets;
  for (const std::vector<Range>& each : ranges)
    if (!each.empty()) sets.push_back(IntervalSet::from_ranges(each));
  return sets;
}

}  // namespace

void showValue(const Draw& draw, std::ostream& out) {
  const auto zeros = std::count(draw.numbers.begin(), draw.numbers.end(), 0);
  out << draw.numbers.size() - static_cast<size_t>(zeros) << " choices that are not the simplest";
}

uint64_t row_unit(const CacheSchema& schema) {
  uint64_t unit = 1;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components) unit = std::lcm(unit, component.tokens_per_row.value_or(1));
  return unit;
}

Valid<CacheSchema> random_schema(Choices& choices) {
  const uint64_t layer_count = choices.between(1, 5);
  const uint64_t group_count = choices.between(1, std::min<uint64_t>(3, layer_count));
  const uint64_t row_tokens = choices.between(2, 4);
  std::vector<std::vector<Range>> layers(group_count);
  uint64_t id = 0;
  for (uint64_t layer = 0; layer < layer_count; ++layer, ++id) {
    if (choices.chance(1, 5)) ++id;  // a layer without a cache
    layers[layer < group_count ? layer : choices.below(group_count)].emplace_back(id, id + 1);
  }
  CacheSchema schema;
  for (const std::vector<Range>& own : layers) {
    LayerGroup group{IntervalSet::from_ranges(own), LiveTokens::all(), {}};
    if (!schema.groups.empty() && choices.chance(2, 3)) {
      group.components = schema.groups[0].components;
    } else {
      const uint64_t component_count = choices.between(1, 3);
      for (const char* name : {"key", "value", "scale"})
        if (group.components.size() < component_count)
          group.components.push_back(random_component(name, row_tokens, choices));
    }
    if (choices.chance(1, 3)) group.live = LiveTokens::window(choices.between(1, 8));
    schema.groups.push_back(group);
  }
  return valid_or_die(schema);
}

Valid<CacheSchema> random_part_of(const Valid<CacheSchema>& schema, Choices& choices) {
  if (!choices.chance(1, 3)) return schema;
  CacheSchema part;
  for (const LayerGroup& group : schema->groups) {
    LayerGroup kept = group;
    if (choices.chance(1, 3))
      kept.live = LiveTokens::window(choices.between(1, std::min<uint64_t>(testing::window_of(group).value_or(8), 8)));
    std::erase_if(kept.components, [&](const Component&) { return choices.chance(1, 5); });
    if (kept.components.empty()) kept.components = {group.components.back()};
    const bool divided = choices.chance(1, 3);
    std::vector<Range> layers[2];
    for (const uint64_t layer : numbers_of(group.layers))
      if (!choices.chance(1, 5)) layers[divided ? layer % 2 : 0].emplace_back(layer, layer + 1);
    for (const std::vector<Range>& own : layers) {
      kept.layers = IntervalSet::from_ranges(own);
      if (!own.empty()) part.groups.push_back(kept);
    }
  }
  return part.groups.empty() ? schema : valid_or_die(part);
}

Range random_tokens(Choices& choices) {
  const uint64_t begin = choices.below(10);
  return Range(begin, begin + choices.between(1, 14));
}

Valid<PlacementManifest> random_placement(const Valid<CacheSchema>& schema, Range tokens, const std::string& name,
                                          Choices& choices) {
  return valid_or_die(PlacementBuilder(*schema, tokens, choices).build(name));
}

std::vector<Valid<RuntimeBinding>> random_bindings(const Valid<PlacementManifest>& placement,
                                                   const Valid<SnapshotDescriptor>& snapshot, BindingStyle style,
                                                   Choices& choices) {
  RuntimeBinding common;
  common.operation = OperationId("op");
  common.resource = placement->resource;
  common.revision = placement->revision;
  common.placement_digest = digest(placement);
  common.snapshot_digest = digest(snapshot);
  common.tokens = snapshot->tokens;
  common.devices = {Device{DeviceId("d"), "host", uint64_t{1} << 20}};
  std::vector<Valid<RuntimeBinding>> bindings;
  for (size_t begin = 0; begin < placement->parts.size();) {
    common.instance = InstanceId(fmt::format("{}-i{}", placement->name, begin));
    common.generation = choices.below(3);
    InstanceBuilder instance(*placement, common, style, choices);
    do instance.add(placement->parts[begin++]);
    while (begin < placement->parts.size() && choices.chance(1, 4));
    for (RuntimeBinding& binding : instance.finish())
      if (!binding.views.empty() || choices.chance(1, 4)) bindings.push_back(valid_or_die(std::move(binding)));
  }
  return bindings;
}

Valid<StoreLayout> random_layout(const Valid<CacheSchema>& schema, Choices& choices) {
  StoreLayout layout;
  layout.name = "layout";
  layout.cache_schema = *schema;
  layout.object_order = kObjectOrders[choices.below(kObjectOrders.size())].order;
  layout.page_tokens = row_unit(*schema) * choices.between(1, 4);
  // Components that have the same head count in the same layers, and whose rows live alike, may lie together.
  std::map<std::tuple<ComponentName, uint64_t, LiveTokens>, std::vector<uint64_t>> layers_of;
  for (const LayerGroup& group : schema->groups)
    for (const Component& component : group.components)
      for (const uint64_t layer : numbers_of(group.layers))
        layers_of[{component.name, component.head_count, group.live_of(component.name)}].push_back(layer);
  std::map<std::tuple<std::vector<uint64_t>, uint64_t, LiveTokens, uint64_t>, std::vector<ComponentName>> together;
  for (auto& [key, layers] : layers_of) {
    std::sort(layers.begin(), layers.end());
    const uint64_t apart = choices.chance(1, 3) ? together.size() + 1 : 0;
    together[{layers, std::get<1>(key), std::get<2>(key), apart}].push_back(std::get<0>(key));
  }
  for (const auto& [key, components] : together) {
    std::vector<uint64_t> heads(std::get<1>(key));
    std::iota(heads.begin(), heads.end(), uint64_t{0});
    for (const IntervalSet& layers : random_sets(std::get<0>(key), choices))
      for (const IntervalSet& own_heads : random_sets(heads, choices))
        layout.parts.push_back(StorePart{ObjectKey(), layers, components, own_heads});
  }
  std::vector<uint64_t> labels(layout.parts.size());
  std::iota(labels.begin(), labels.end(), uint64_t{0});
  if (choices.chance(1, 2)) choices.shuffle(labels);
  for (size_t i = 0; i < labels.size(); ++i) layout.parts[i].key = ObjectKey(fmt::format("k{:02}", labels[i]));
  return valid_or_die(layout);
}

}  // namespace crossdock::testing

namespace rc {

Gen<crossdock::testing::Draw> Arbitrary<crossdock::testing::Draw>::arbitrary() {
  using crossdock::testing::Draw;
  return [](const Random& random, int) {
    return shrinkable::shrinkRecur(crossdock::testing::draw_from(Random(random).next()),
                                   [](const Draw& draw) { return makeSeq<crossdock::testing::SimplerDraws>(draw); });
  };
}

}  // namespace rc
