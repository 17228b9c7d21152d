#include "planner/kv/token_joiner.h"

#include <tuple>

// Ownerships of one form are sets of one kind of number, tokens or blocks of a cycle, so what they share is found by
// looking each range of the target up among all ranges of the sources. Ownerships of two forms are brought on a common
// axis first (planner/kv/token_axis.h). For n sources and n targets that is about n log n, and not n * n pairs to
// compare.
namespace crossdock {
namespace {

// Past it, each source of that form is taken as a partner.
constexpr uint64_t kProjectedPiecesMax = uint64_t{1} << 20;

uint64_t stated_size(const TokenOwnership& ownership) {
  const IntervalSet* ranges = ranges_of(ownership);
  return ranges != nullptr ? ranges->ranges().size() : 0;
}

uint64_t ranges_in(const TokenSet& set) {
  return 1 + set.intervals.ranges().size() + (set.cycle ? 2 * set.cycle->blocks.ranges().size() : 0);
}

}  // namespace

TokenJoiner::TokenJoiner(const ClaimNumbers& numbers, const std::vector<PlanTensor>& tensors,
                         std::span<const Claim> source_claims, uint64_t range_count_max)
    : numbers_(numbers), range_count_max_(range_count_max) {
  universe_of_.reserve(tensors.size());
  for (const PlanTensor& tensor : tensors) universe_of_.push_back(universes_.intern(tensor.tokens));
  sources_.reserve(source_claims.size());
  for (const Claim& claim : source_claims) sources_.push_back(claim.ownership);
  std::sort(sources_.begin(), sources_.end());
  sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
  for (const uint32_t source : sources_) {
    const TokenOwnership& ownership = numbers_.ownerships[source];
    const IntervalSet* ranges = ranges_of(ownership);
    if (ranges == nullptr) {
      unshaped_.push_back(source);
      continue;
    }
    Shelf& shelf = shelves_[form_of(ownership)];
    shelf.ownerships.push_back(source);
    for (const Range range : ranges->ranges()) shelf.pieces.push_back(Piece{range, source});
  }
  for (auto& [form, shelf] : shelves_) shelf.sort();
}

void TokenJoiner::Shelf::sort() {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.range, a.ownership) < std::tie(b.range, b.ownership);
  });
  std::vector<Range> ranges;
  ranges.reserve(pieces.size());
  for (const Piece& piece : pieces) ranges.push_back(piece.range);
  index = RangeIndex(std::move(ranges));
}

std::span<const uint32_t> TokenJoiner::partners(uint32_t target_ownership) {
  if (partners_of_ == target_ownership) return partners_;
  partners_of_ = target_ownership;
  met_.clear();
  const TokenOwnership& ownership = numbers_.ownerships[target_ownership];
  const IntervalSet* wanted = ranges_of(ownership);
  if (wanted == nullptr) return partners_ = sources_;
  partners_ = unshaped_;
  const TokenForm target = form_of(ownership);
  for (const auto& [form, shelf] : shelves_)
    if (form == target)
      find_same_form(shelf, *wanted);
    else if (!find_other_form(form, target, *wanted))
      partners_.insert(partners_.end(), shelf.ownerships.begin(), shelf.ownerships.end());
  std::sort(partners_.begin(), partners_.end());
  partners_.erase(std::unique(partners_.begin(), partners_.end()), partners_.end());
  work_ += partners_.size();
  return partners_;
}

// The ranges of one source are met in ascending order, since those of the target are looked up in that order and the
// source's own are disjoint. Sorting by ownership alone, and stably, keeps it.
void TokenJoiner::find_same_form(const Shelf& shelf, const IntervalSet& wanted) {
  for (const Range range : wanted.ranges())
    shelf.index.for_each_overlapping(range, [&](size_t position) {
      const Piece& piece = shelf.pieces[position];
      met_.push_back(Piece{piece.range.intersect(range), piece.ownership});
    });
  std::stable_sort(met_.begin(), met_.end(), [](const Piece& a, const Piece& b) { return a.ownership < b.ownership; });
  for (const Piece& piece : met_) partners_.push_back(piece.ownership);
  work_ += wanted.ranges().size() + met_.size();
}

// False when the axis has too many pieces.
bool TokenJoiner::find_other_form(const TokenForm& sources, const TokenForm& target, const IntervalSet& wanted) {
  const Projected* common = projected(sources, target);
  if (common == nullptr || common->axis.projected_count(target, wanted.ranges().size()) > kProjectedPiecesMax)
    return false;
  std::vector<Range> pieces;
  for (const Range range : wanted.ranges()) common->axis.project(target, range, pieces);
  for (const Range piece : pieces)
    common->shelf.index.for_each_overlapping(piece, [&](size_t position) {
      ++work_;
      const uint32_t ownership = common->shelf.pieces[position].ownership;
      if (partners_.empty() || partners_.back() != ownership) partners_.push_back(ownership);
    });
  work_ += pieces.size();
  return true;
}

// Null when the axis would have too many pieces.
const TokenJoiner::Projected* TokenJoiner::projected(const TokenForm& sources, const TokenForm& target) {
  const auto [entry, is_new] = projected_.try_emplace(std::pair(sources, target));
  std::optional<Projected>& common = entry->second;
  const std::optional<TokenAxis> axis = is_new ? TokenAxis::of(sources, target) : std::nullopt;
  const std::vector<Piece>& own = shelves_.at(sources).pieces;
  if (axis && axis->projected_count(sources, own.size()) <= kProjectedPiecesMax) {
    common.emplace(Projected{*axis, {}});
    std::vector<Range> pieces;
    for (const Piece& piece : own) {
      pieces.clear();
      axis->project(sources, piece.range, pieces);
      for (const Range range : pieces) common->shelf.pieces.push_back(Piece{range, piece.ownership});
    }
    common->shelf.sort();
    work_ += common->shelf.pieces.size();
  }
  return common ? &*common : nullptr;
}

std::optional<uint32_t> TokenJoiner::join(uint32_t tensor, uint32_t source_ownership, uint32_t target_ownership) {
  const Key key{universe_of_[tensor], source_ownership, target_ownership};
  // Neighbouring claims mostly differ in their heads only.
  if (key == last_key_) return last_;
  const auto [entry, is_new] = joined_.try_emplace(key);
  if (is_new) {
    TokenSet common;
    const TokenJoin outcome = join_pair(key, common);
    if (outcome == TokenJoin::kSome) entry->second = token_sets_.intern(common);
    // A refused join is remembered too (its entry stays empty); too_many() makes the whole plan fail.
    too_many_ |= outcome == TokenJoin::kTooMany;
  }
  last_key_ = key;
  return last_ = entry->second;
}

std::optional<uint32_t> TokenJoiner::join_pages(uint32_t tensor, uint32_t source_ownership, uint32_t target_ownership,
                                                uint64_t page_tokens, ReplicaOrdinal replica) {
  const std::optional<uint32_t> all = join(tensor, source_ownership, target_ownership);
  if (!all || replica.count == 1) return all;
  const auto [entry, is_new] = pages_.try_emplace(std::tuple(*all, page_tokens, replica.count, replica.ordinal));
  if (!is_new) return entry->second;
  TokenSet cut = token_sets_[*all];
  const CyclicTokens pages{page_tokens, replica.count, {Range(replica.ordinal, replica.ordinal + 1)}};
  const TokenJoin outcome = cut_to_cycle(cut, pages, range_count_max_);
  if (outcome == TokenJoin::kSome) entry->second = token_sets_.intern(cut);
  work_ += outcome == TokenJoin::kTooMany ? range_count_max_ : ranges_in(cut);
  too_many_ |= outcome == TokenJoin::kTooMany;
  return entry->second;
}

// Work is counted for the caller's limit: what is compared, and then what it gave, such as the blocks of a common
// period.
TokenJoin TokenJoiner::join_pair(const Key& key, TokenSet& common) {
  const TokenOwnership& source = numbers_.ownerships[key.source];
  const TokenOwnership& target = numbers_.ownerships[key.target];
  TokenJoin outcome;
  if (ranges_of(source) != nullptr && ranges_of(target) != nullptr && form_of(source) == form_of(target)) {
    partners(key.target);
    outcome = join_ranges(target, met_with(key.source), universes_[key.universe], common);
  } else {
    work_ += stated_size(source) + stated_size(target);
    outcome = join_tokens(source, target, universes_[key.universe], range_count_max_, common);
  }
  work_ += outcome == TokenJoin::kTooMany ? range_count_max_ : ranges_in(common);
  return outcome;
}

// In one form already: two ranges of an intersection never touch.
IntervalSet TokenJoiner::met_with(uint32_t source_ownership) const {
  const auto by_ownership = [](const Piece& a, const Piece& b) { return a.ownership < b.ownership; };
  const auto [begin, end] = std::equal_range(met_.begin(), met_.end(), Piece{Range(), source_ownership}, by_ownership);
  std::vector<Range> ranges;
  ranges.reserve(static_cast<size_t>(end - begin));
  for (auto piece = begin; piece != end; ++piece) ranges.push_back(piece->range);
  return IntervalSet::from_ranges(std::move(ranges));
}

}  // namespace crossdock
