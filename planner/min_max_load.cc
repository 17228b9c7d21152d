#include "planner/min_max_load.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/range.h"

namespace crossdock {
namespace {

using List = std::span<const uint32_t>;

constexpr uint64_t kWeightSumLimit = uint64_t{1} << 63;
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Which of some lists are equal. Sets are numbered in the order of their first lists; an empty list is in no set.
struct EqualSets {
  std::vector<uint32_t> set_of;                // of each list, or kNone
  std::vector<uint32_t> rank_of;               // of each list among the members of its set
  std::vector<std::vector<uint32_t>> members;  // of each set: the lists in it, ascending
};

// A total order of lists that are not empty, by size and then by bytes. On a little-endian machine it is not the
// numeric order. Only equality of lists matters to find_equal(), so the result does not depend on it (I7).
struct SomeOrder {
  bool operator()(List a, List b) const {
    if (a.size() != b.size()) return a.size() < b.size();
    return std::memcmp(a.data(), b.data(), a.size_bytes()) < 0;
  }
};

EqualSets find_equal(std::span<const List> lists) {
  EqualSets sets;
  sets.set_of.assign(lists.size(), kNone);
  sets.rank_of.assign(lists.size(), 0);
  std::map<List, uint32_t, SomeOrder> known;
  for (uint32_t i = 0; i < lists.size(); ++i) {
    if (lists[i].empty()) continue;
    const auto [entry, fresh] = known.try_emplace(lists[i], static_cast<uint32_t>(sets.members.size()));
    if (fresh) sets.members.emplace_back();
    std::vector<uint32_t>& members = sets.members[entry->second];
    sets.set_of[i] = entry->second;
    sets.rank_of[i] = static_cast<uint32_t>(members.size());
    members.push_back(i);
  }
  return sets;
}

// Lists in one array: list i is items[begins[i], begins[i + 1]).
// One array instead of a vector per list: there is a list for each candidate, and most are short.
struct Lists {
  std::vector<size_t> begins;
  std::vector<uint32_t> items;

  List operator[](size_t i) const { return List(items).subspan(begins[i], begins[i + 1] - begins[i]); }
};

// For each number below `number_count`: which of the lists hold it, ascending.
Lists invert(std::span<const List> lists, size_t number_count) {
  Lists inverse;
  inverse.begins.assign(number_count + 1, 0);
  for (const List list : lists)
    for (const uint32_t number : list) ++inverse.begins[number + size_t{1}];
  for (size_t i = 0; i < number_count; ++i) inverse.begins[i + 1] += inverse.begins[i];
  inverse.items.resize(inverse.begins.back());
  std::vector<size_t> ends(inverse.begins.begin(), inverse.begins.end() - 1);
  for (uint32_t i = 0; i < lists.size(); ++i)
    for (const uint32_t number : lists[i]) inverse.items[ends[number]++] = i;
  return inverse;
}

// Classes and groups as nodes of a graph: first all classes, then all groups. An edge is an arc from a class to a group
// without limit and its inverse, on which the flow of the edge can be taken back.
class FlowGraph {
 public:
  // `group_classes` of each group: the classes that may use it.
  FlowGraph(std::vector<uint64_t> class_weights, std::vector<uint64_t> group_sizes, std::span<const List> group_classes)
      : class_count_(static_cast<uint32_t>(class_weights.size())), amount_(std::move(class_weights)) {
    amount_.insert(amount_.end(), group_sizes.begin(), group_sizes.end());
    add_arcs(group_classes);
    flow_.assign(edge_count_, 0);
    part_.assign(amount_.size(), 0);
    room_.assign(amount_.size(), 0);
    depth_.assign(amount_.size(), kNone);
    cursor_.assign(amount_.size(), 0);
  }

  // Sends the weight of every class to its groups.
  // Terminates: a component either levels or splits into two parts, and each part has a class and a group. So there are
  // fewer than 2 * min(K, G) components for K classes and G groups. An explicit stack instead of recursion, since parts
  // may nest as deep as there are nodes.
  void balance() {
    std::vector<std::vector<uint32_t>> parts(1);
    for (uint32_t node = 0; node < amount_.size(); ++node) parts.front().push_back(node);
    while (!parts.empty()) {
      const std::vector<uint32_t> part = std::move(parts.back());
      parts.pop_back();
      for (const std::vector<uint32_t>& component : find_components(part))
        if (!level(component)) split(component, parts);
    }
  }

  // The edges of a class; group_of and flow_of are about one of them.
  Range edges_of(uint32_t class_index) const { return arcs_of(class_index); }
  uint32_t group_of(uint64_t edge) const { return arcs_[edge].head - class_count_; }
  uint64_t flow_of(uint64_t edge) const { return flow_[edge]; }

 private:
  struct Arc {
    uint32_t head;
    size_t edge;
  };
  struct Step {
    uint32_t tail;
    size_t arc;
  };

  bool is_class(uint32_t node) const { return node < class_count_; }
  Range arcs_of(uint32_t node) const { return Range(arc_begins_[node], arc_begins_[node + size_t{1}]); }

  // The arc of edge e is arc e; the inverse arcs follow, those of each group together.
  void add_arcs(std::span<const List> group_classes) {
    arc_begins_.assign(amount_.size() + 1, 0);
    for (size_t group = 0; group < group_classes.size(); ++group) {
      edge_count_ += group_classes[group].size();
      arc_begins_[class_count_ + group + 1] = group_classes[group].size();
      for (const uint32_t class_index : group_classes[group]) ++arc_begins_[class_index + size_t{1}];
    }
    for (size_t node = 0; node < amount_.size(); ++node) arc_begins_[node + 1] += arc_begins_[node];
    arcs_.resize(2 * edge_count_);
    std::vector<size_t> ends(arc_begins_.begin(), arc_begins_.end() - 1);
    for (uint32_t group = 0; group < group_classes.size(); ++group)
      for (const uint32_t class_index : group_classes[group]) {
        const uint32_t node = class_count_ + group;
        const size_t edge = ends[class_index]++;
        arcs_[edge] = {node, edge};
        arcs_[ends[node]++] = {class_index, edge};
      }
  }

  // The connected components of the nodes of one part, each as a part of its own, its nodes ascending.
  std::vector<std::vector<uint32_t>> find_components(const std::vector<uint32_t>& nodes) {
    std::vector<std::vector<uint32_t>> components;
    if (nodes.empty()) return components;
    const uint32_t whole = part_[nodes.front()];
    for (const uint32_t start : nodes) {
      if (part_[start] != whole) continue;
      std::vector<uint32_t>& found = components.emplace_back();
      const uint32_t part = ++part_last_;
      const auto add = [&](uint32_t node) {
        part_[node] = part;
        found.push_back(node);
      };
      add(start);
      for (size_t i = 0; i < found.size(); ++i) {
        const Range arcs = arcs_of(found[i]);
        for (uint64_t arc = arcs.begin(); arc != arcs.end(); ++arc)
          if (part_[arcs_[arc].head] == whole) add(arcs_[arc].head);
      }
      std::sort(found.begin(), found.end());
    }
    return components;
  }

  // True when all weight of the component was sent so that the loads of its candidates are at most one apart. Otherwise
  // `reached_` is the source side of a minimum cut, a proper part of the component.
  // The room of floor(m) is tried before ceil(m): a maximum flow with ceil(m) alone may leave some candidates far below
  // the mean. candidate_count is at least 1. A class of a component has all its weight within the component, and weight
  // can only be in a group.
  bool level(const std::vector<uint32_t>& nodes) {
    uint64_t weight = 0;
    uint64_t candidate_count = 0;
    for (const uint32_t node : nodes) (is_class(node) ? weight : candidate_count) += amount_[node];
    // load * amount_ is at most `weight`, and that is below kWeightSumLimit, so no product here passes 64 bits.
    const uint64_t load = weight / candidate_count;
    for (const uint32_t node : nodes) {
      room_[node] = is_class(node) ? amount_[node] : load * amount_[node];
      if (!is_class(node)) continue;
      const Range edges = arcs_of(node);
      std::fill(flow_.begin() + static_cast<std::ptrdiff_t>(edges.begin()),
                flow_.begin() + static_cast<std::ptrdiff_t>(edges.end()), 0);
    }
    // The second call goes on from the flow of the first: adding room keeps a flow feasible, and no load sinks.
    send(nodes);
    if (reached_.size() == nodes.size()) {  // every candidate is full and some weight, less than one for each, is left
      for (const uint32_t node : nodes)
        if (!is_class(node)) room_[node] += amount_[node];
      send(nodes);
    }
    // A cut beyond all candidates would weigh more than all classes do.
    CHECK(reached_.size() < nodes.size());
    return reached_.empty();
  }

  // Makes a part of what was reached and one of the rest. No flow crosses from one to the other: a class that was not
  // reached sends nothing to a group that was, since the inverse arc would have reached it.
  void split(const std::vector<uint32_t>& nodes, std::vector<std::vector<uint32_t>>& parts) {
    const uint32_t part = ++part_last_;
    for (const uint32_t node : reached_) part_[node] = part;
    std::vector<uint32_t>& rest = parts.emplace_back();
    for (const uint32_t node : nodes)
      if (part_[node] != part) rest.push_back(node);
    parts.push_back(reached_);
  }

  // Extends the flow within the nodes of one part to a maximum one. Leaves in `reached_` what the weight that could not
  // be sent can reach: nothing when all was sent. A load never sinks here.
  void send(const std::vector<uint32_t>& nodes) {
    while (find_depths(nodes)) {  // each round raises the depth of the nearest room
      for (const uint32_t node : nodes) cursor_[node] = arc_begins_[node];
      for (const uint32_t node : nodes)
        if (is_class(node)) send_from(node);
    }
  }

  // Distances from the classes with weight left to the nearest group with room. False when there is no such group.
  // The breadth-first half of Dinic's algorithm. It may stop at the first group with room, because send_from() only
  // follows arcs that lead one level deeper; nodes that it left out keep kNone and are on no shortest path.
  bool find_depths(const std::vector<uint32_t>& nodes) {
    reached_.clear();
    for (const uint32_t node : nodes) {
      const bool starts = is_class(node) && room_[node] > 0;
      depth_[node] = starts ? 0 : kNone;
      if (starts) reached_.push_back(node);
    }
    for (size_t i = 0; i < reached_.size(); ++i) {
      const uint32_t node = reached_[i];
      if (!is_class(node) && room_[node] > 0) return true;
      const Range arcs = arcs_of(node);
      for (uint64_t arc = arcs.begin(); arc != arcs.end(); ++arc) {
        const uint32_t head = arcs_[arc].head;
        if (!is_open(node, arc) || depth_[head] != kNone) continue;
        depth_[head] = depth_[node] + 1;
        reached_.push_back(head);
      }
    }
    return false;
  }

  // Whether the arc can carry more and stays in its part.
  // An arc from a class has no limit of its own: all limits are those of weights and candidates. An arc back from a
  // group needs no test of the part, since flow never crosses parts (split()).
  bool is_open(uint32_t tail, uint64_t arc) const {
    return is_class(tail) ? part_[arcs_[arc].head] == part_[tail] : flow_[arcs_[arc].edge] > 0;
  }

  // Sends what it can from one class along shortest paths. Not recursive: a path may be as long as the graph.
  // cursor_ of a node moves on only past arcs that are of no use until the next find_depths(), so all walks of one
  // phase together look at each arc once, besides the pushes.
  void send_from(uint32_t start) {
    path_.clear();
    uint32_t node = start;
    while (room_[start] > 0) {
      if (!is_class(node) && room_[node] > 0) {
        node = push(start, node);
        continue;
      }
      size_t& arc = cursor_[node];
      while (arc != arc_begins_[node + size_t{1}] &&
             !(is_open(node, arc) && depth_[arcs_[arc].head] == depth_[node] + 1))
        ++arc;
      if (arc != arc_begins_[node + size_t{1}]) {
        path_.push_back({node, arc});
        node = arcs_[arc].head;
      } else if (path_.empty()) {
        return;
      } else {
        node = path_.back().tail;
        path_.pop_back();
        ++cursor_[node];
      }
    }
  }

  // Sends as much as fits along `path_` and cuts the path before its first arc that is full now. Returns its new end.
  uint32_t push(uint32_t start, uint32_t end) {
    // Subtracting is safe: amount is at most the room of both ends and the flow of every arc that it takes back.
    uint64_t amount = std::min(room_[start], room_[end]);
    for (const Step& step : path_)
      if (!is_class(step.tail)) amount = std::min(amount, flow_[arcs_[step.arc].edge]);
    room_[start] -= amount;
    room_[end] -= amount;
    std::optional<size_t> full;
    for (size_t i = 0; i < path_.size(); ++i) {
      uint64_t& flow = flow_[arcs_[path_[i].arc].edge];
      if (is_class(path_[i].tail)) {
        flow += amount;
      } else {
        flow -= amount;
        if (flow == 0 && !full) full = i;
      }
    }
    if (!full) return end;
    const uint32_t tail = path_[*full].tail;
    path_.resize(*full);
    return tail;
  }

  uint32_t class_count_;
  std::vector<uint64_t> amount_;  // the weight of a class, the number of candidates of a group
  size_t edge_count_ = 0;
  std::vector<size_t> arc_begins_;  // of each node, and the end
  std::vector<Arc> arcs_;
  std::vector<uint64_t> flow_;  // of each edge
  std::vector<uint32_t> part_;  // of each node: flow stays within a part
  uint32_t part_last_ = 0;
  std::vector<uint64_t> room_;     // what a class has left to send and a group can still take
  std::vector<uint32_t> depth_;    // of each node
  std::vector<size_t> cursor_;     // of each node: the arc to try next
  std::vector<uint32_t> reached_;  // in the order of their depths
  std::vector<Step> path_;
};

// Where member `rank` of a group lies when the group's load is laid out in a line and split evenly, the first members
// taking one more where it does not divide.
// The parts of ranks 0 to member_count - 1 are disjoint and their union is [0, load). No product passes `load`.
Range even_part(uint64_t load, uint64_t member_count, uint64_t rank) {
  const uint64_t each = load / member_count;
  const uint64_t rest = load % member_count;
  return Range(rank * each + std::min(rank, rest), (rank + 1) * each + std::min(rank + 1, rest));
}

// The candidates of the demands that weigh something. Those of the others stay empty.
// Demands without weight are left out of the graph: they would add classes and edges without changing a load.
std::vector<List> used_candidates(std::span<const LoadDemand> demands) {
  std::vector<List> lists;
  uint64_t sum = 0;
  for (const LoadDemand& demand : demands) {
    CHECK(!demand.candidates.empty());
    const std::optional<uint64_t> next = checked_add(sum, demand.weight);
    CHECK(next && *next < kWeightSumLimit);
    sum = *next;
    lists.push_back(demand.weight > 0 ? List(demand.candidates) : List());
  }
  return lists;
}

// The candidates of each class.
std::vector<List> candidates_of(const EqualSets& classes, std::span<const List> lists, uint32_t candidate_count) {
  std::vector<List> found;
  for (const std::vector<uint32_t>& members : classes.members) {
    const List list = lists[members.front()];
    CHECK(std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) == list.end());
    CHECK(list.back() < candidate_count);
    found.push_back(list);
  }
  return found;
}

FlowGraph make_graph(std::span<const LoadDemand> demands, const EqualSets& classes, const EqualSets& groups,
                     std::span<const List> candidate_classes) {
  std::vector<uint64_t> weights, sizes;
  std::vector<List> group_classes;
  for (const std::vector<uint32_t>& members : classes.members) {
    weights.push_back(0);
    for (const uint32_t demand : members) weights.back() += demands[demand].weight;
  }
  for (const std::vector<uint32_t>& members : groups.members) {
    sizes.push_back(members.size());
    group_classes.push_back(candidate_classes[members.front()]);
  }
  return FlowGraph(std::move(weights), std::move(sizes), group_classes);
}

// How the flow divides over candidates. Group by group, the classes' flows lie one behind the other in a line, which is
// cut into equal parts for the members.
// A pair of class and candidate gets the intersection of the class's interval and the candidate's interval in that
// line. Intervals instead of a proportional split: a class then touches at most as many candidates as its interval
// crosses, which is what bounds the number of edges that balancing adds.
class Shares {
 public:
  Shares(const FlowGraph& graph, const EqualSets& classes, const EqualSets& groups)
      : graph_(graph), groups_(groups), loads_(groups.members.size(), 0), lines_(groups.members.size()) {
    for (uint32_t c = 0; c < classes.members.size(); ++c)
      each_edge(c, [&](uint32_t group, uint64_t flow) { loads_[group] += flow; });
  }

  // Of one candidate.
  uint64_t load_max() const {
    uint64_t highest = 0;
    for (size_t group = 0; group < loads_.size(); ++group)
      highest = std::max(highest, div_round_up(loads_[group], groups_.members[group].size()));
    return highest;
  }

  // The shares of the next class in its candidates; the classes are asked for in order.
  std::vector<uint64_t> next_class(uint32_t class_index, List candidates) {
    each_edge(class_index, [&](uint32_t group, uint64_t flow) {
      lines_[group] = Range(lines_[group].end(), lines_[group].end() + flow);
    });
    std::vector<uint64_t> shares;
    for (const uint32_t candidate : candidates) {
      const uint32_t group = groups_.set_of[candidate];
      const Range part = even_part(loads_[group], groups_.members[group].size(), groups_.rank_of[candidate]);
      shares.push_back(lines_[group].intersect(part).size());
    }
    return shares;
  }

 private:
  template <class Visit>
  void each_edge(uint32_t class_index, Visit visit) const {
    const Range edges = graph_.edges_of(class_index);
    for (uint64_t edge = edges.begin(); edge != edges.end(); ++edge) visit(graph_.group_of(edge), graph_.flow_of(edge));
  }

  const FlowGraph& graph_;
  const EqualSets& groups_;
  std::vector<uint64_t> loads_;  // of each group
  std::vector<Range> lines_;     // of each group: where the class asked for last lies in its line
};

// Takes what is left of a class's shares from the front until it makes up the weight.
// `front` stays within the list, because the shares of a class sum up to the weight of its demands.
std::vector<uint64_t> take_shares(uint64_t weight, std::vector<uint64_t>& left, size_t& front) {
  std::vector<uint64_t> taken(left.size(), 0);
  while (weight > 0) {
    taken[front] = std::min(weight, left[front]);
    weight -= taken[front];
    left[front] -= taken[front];
    if (left[front] == 0) ++front;
  }
  return taken;
}

}  // namespace

LoadShares minimize_max_load(std::span<const LoadDemand> demands, uint32_t candidate_count) {
  const std::vector<List> used = used_candidates(demands);
  const EqualSets classes = find_equal(used);
  const std::vector<List> class_candidates = candidates_of(classes, used, candidate_count);
  const Lists inverse = invert(class_candidates, candidate_count);
  std::vector<List> candidate_classes;
  for (size_t candidate = 0; candidate < candidate_count; ++candidate) candidate_classes.push_back(inverse[candidate]);
  const EqualSets groups = find_equal(candidate_classes);
  FlowGraph graph = make_graph(demands, classes, groups, candidate_classes);
  graph.balance();

  Shares shares(graph, classes, groups);
  LoadShares result;
  result.load_max = shares.load_max();
  result.shares.resize(demands.size());
  for (uint32_t c = 0; c < classes.members.size(); ++c) {
    std::vector<uint64_t> left = shares.next_class(c, class_candidates[c]);
    size_t front = 0;
    for (const uint32_t demand : classes.members[c])
      result.shares[demand] = take_shares(demands[demand].weight, left, front);
  }
  for (size_t demand = 0; demand < demands.size(); ++demand)
    if (used[demand].empty()) result.shares[demand].assign(demands[demand].candidates.size(), 0);
  return result;
}

}  // namespace crossdock
