#include "sim/report/traffic_matrix.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace crossdock {
namespace {

bool is_digit(char c) { return '0' <= c && c <= '9'; }

// The number at the front of `text`, without its leading zeros.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

// Runs of digits compare as numbers.
struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
      if (is_digit(a.front()) && is_digit(b.front())) {
        const std::string_view number_a = take_digits(a);
        const std::string_view number_b = take_digits(b);
        if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
        if (number_a != number_b) return number_a < number_b;
      } else if (a.front() != b.front()) {
        return a.front() < b.front();
      } else {
        a.remove_prefix(1);
        b.remove_prefix(1);
      }
    }
    // "h01" and "h1" are equal as numbers; their texts decide, so that a map keeps both.
    return a.empty() && b.empty() ? whole_a < whole_b : a.empty();
  }
};

using BytesOf = std::map<std::string, uint64_t, NaturalLess>;

struct Side {
  std::vector<std::string> names;
  std::map<std::string, size_t> index;
  size_t together = 0;
};

Side make_side(const BytesOf& bytes_of, size_t side_max) {
  std::vector<std::pair<std::string, uint64_t>> kept(bytes_of.begin(), bytes_of.end());
  Side side;
  if (kept.size() > side_max) {
    // Equals stay in the order of their names, which is that of the map.
    std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    side.together = kept.size() - (side_max - 1);
    kept.resize(side_max - 1);
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return NaturalLess()(a.first, b.first); });
  }
  for (const auto& [name, bytes] : kept) {
    side.index.emplace(name, side.names.size());
    side.names.push_back(name);
  }
  if (side.together > 0) side.names.push_back("all others");
  return side;
}

// A name that was not kept is one of "all others", the last row.
size_t index_of(const Side& side, const std::string& name) {
  const auto found = side.index.find(name);
  return found == side.index.end() ? side.names.size() - 1 : found->second;
}

}  // namespace

TrafficMatrix traffic_matrix(const std::vector<TrafficCell>& traffic, size_t side_max) {
  CHECK(side_max >= 2);
  BytesOf sent;
  BytesOf received;
  for (const TrafficCell& cell : traffic) {
    const uint64_t bytes = std::max(cell.planned_bytes, cell.landed_bytes);
    if (bytes == 0) continue;
    sent[cell.from] = saturating_add(sent[cell.from], bytes);
    received[cell.to] = saturating_add(received[cell.to], bytes);
  }
  const Side senders = make_side(sent, side_max);
  const Side receivers = make_side(received, side_max);

  std::map<std::pair<size_t, size_t>, TrafficMatrix::Cell> cells;
  for (const TrafficCell& cell : traffic) {
    if (cell.planned_bytes == 0 && cell.landed_bytes == 0) continue;
    const std::pair at(index_of(senders, cell.from), index_of(receivers, cell.to));
    TrafficMatrix::Cell& sum = cells.emplace(at, TrafficMatrix::Cell{at.first, at.second, 0, 0}).first->second;
    sum.planned_bytes = saturating_add(sum.planned_bytes, cell.planned_bytes);
    sum.landed_bytes = saturating_add(sum.landed_bytes, cell.landed_bytes);
  }
  TrafficMatrix matrix{senders.names, receivers.names, senders.together, receivers.together, {}};
  for (const auto& [at, cell] : cells) matrix.cells.push_back(cell);
  return matrix;
}

TrafficPairs largest_pairs(const std::vector<TrafficCell>& traffic, size_t count_max) {
  std::map<std::pair<std::string, std::string>, TrafficCell> sums;
  for (const TrafficCell& cell : traffic) {
    if (cell.planned_bytes == 0 && cell.landed_bytes == 0) continue;
    const TrafficCell none{cell.from, cell.to, 0, 0};
    TrafficCell& sum = sums.emplace(std::pair(cell.from, cell.to), none).first->second;
    sum.planned_bytes = saturating_add(sum.planned_bytes, cell.planned_bytes);
    sum.landed_bytes = saturating_add(sum.landed_bytes, cell.landed_bytes);
  }
  TrafficPairs pairs{{}, sums.size()};
  for (const auto& [ends, sum] : sums) pairs.largest.push_back(sum);
  const auto bytes = [](const TrafficCell& cell) { return std::max(cell.planned_bytes, cell.landed_bytes); };
  std::sort(pairs.largest.begin(), pairs.largest.end(), [&](const TrafficCell& a, const TrafficCell& b) {
    if (bytes(a) != bytes(b)) return bytes(a) > bytes(b);
    return a.from != b.from ? NaturalLess()(a.from, b.from) : NaturalLess()(a.to, b.to);
  });
  if (pairs.largest.size() > count_max) pairs.largest.resize(count_max);
  return pairs;
}

}  // namespace crossdock
