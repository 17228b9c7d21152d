#include "sim/run/islands.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <string>

#include "sim/run/scenario_side.h"

namespace crossdock {
namespace {

// Groups that grow together (Tarjan's disjoint sets, with paths halved).
class Groups {
 public:
  explicit Groups(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }
  size_t find(size_t member) {
    while (parents_[member] != member) member = parents_[member] = parents_[parents_[member]];
    return member;
  }
  // The smallest member represents a group, so the islands come in the order of their first works (I7).
  void join(size_t a, size_t b) { parents_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<size_t> parents_;
};

}  // namespace

std::vector<Scenario> islands_of(const Scenario& scenario) {
  if (!scenario.faults.empty()) return {scenario};
  const ClusterLinks links(scenario.cluster);
  Groups groups(scenario.works.size());
  std::map<std::string, size_t> first_user;  // of a link or store
  const auto use = [&](size_t work, const std::string& what) {
    const auto [entry, is_new] = first_user.try_emplace(what, work);
    if (!is_new) groups.join(work, entry->second);
  };
  for (size_t i = 0; i < scenario.works.size(); ++i) {
    const WorkSpec& work = scenario.works[i];
    if (!work.after.empty()) use(i, "work " + work.after);
    use(i, "work " + work.name);
    if (!work.store.empty()) use(i, "store " + work.store);
    if (!work.source || !work.target) continue;
    // Every pair, whether the plan has bytes for it or not: links too many join more works and cost time, links too few
    // would give wrong times.
    for (uint64_t from = 0; from < work.source->parallel.participant_count(); ++from)
      for (uint64_t to = 0; to < work.target->parallel.participant_count(); ++to)
        for (const uint32_t link :
             links.path(place_on(*work.source, scenario.cluster, from), place_on(*work.target, scenario.cluster, to)))
          use(i, fmt::format("link {}", link));
  }
  std::map<size_t, std::vector<size_t>> islands;
  for (size_t i = 0; i < scenario.works.size(); ++i) islands[groups.find(i)].push_back(i);
  std::vector<Scenario> parts;
  for (const auto& [group, works] : islands) {
    Scenario part = scenario;
    part.works.clear();
    part.expected.clear();
    for (const size_t i : works) {
      part.works.push_back(scenario.works[i]);
      const auto expected = scenario.expected.find(scenario.works[i].name);
      if (expected != scenario.expected.end()) part.expected.insert(*expected);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace crossdock
