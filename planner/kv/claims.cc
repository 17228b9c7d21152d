#include "planner/kv/claims.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

// Owned(p) as a list of boxes: one claim for each (tensor, interval of heads) of an ownership, with its layers cut to
// the layers of the tensor. The claims of one owner are disjoint boxes, because its ownerships are (placement
// coverage).
namespace crossdock {
namespace {

class ClaimCollector {
 public:
  ClaimCollector(const PlanSide& side, ClaimSide which, const CommonTensors& common, ClaimNumbers& numbers)
      : common_(common), numbers_(numbers), layers_(side.cache_schema()) {
    groups_of_.resize(side.cache_schema().groups.size());
    for (const CommonGroup& group : common.groups)
      groups_of_[which == ClaimSide::kSource ? group.source_group : group.target_group].push_back(&group);
  }

  void add(const PlanOwner& owner, uint32_t index) {
    for (const Ownership& ownership : owner.owns) add_ownership(index, ownership);
  }

  std::vector<Claim> take() { return std::move(claims_); }

 private:
  // Groups are found through the layer index, so an ownership costs the groups that it touches, not all of the schema.
  void add_ownership(uint32_t index, const Ownership& ownership) {
    Claim claim;
    claim.owner = index;
    claim.replica_count = static_cast<uint32_t>(ownership.replica.count);
    claim.replica_ordinal = static_cast<uint32_t>(ownership.replica.ordinal);
    claim.ownership = numbers_.ownerships.intern(ownership.tokens);
    touched_.clear();
    layers_.for_each_piece(ownership.layers, [&](Range, size_t group) {
      if (group != LayerIndex::kNoGroup && (touched_.empty() || touched_.back() != group)) touched_.push_back(group);
    });
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const size_t group : touched_)
      for (const CommonGroup* common : groups_of_[group]) add_group(ownership, *common, claim);
  }

  void add_group(const Ownership& ownership, const CommonGroup& group, Claim& claim) {
    // The usual case: an ownership within one group. Its layer set is interned as it is, without intersecting it.
    if (group.layers.contains(ownership.layers)) {
      claim.layer_set = numbers_.layer_sets.intern(ownership.layers);
    } else {
      const IntervalSet layers = ownership.layers.intersect(group.layers);
      if (layers.empty()) return;
      claim.layer_set = numbers_.layer_sets.intern(layers);
    }
    for (const ComponentName& name : ownership.components) {
      const std::optional<uint32_t> tensor = find_tensor(group, name);
      // A component that the target's schema does not have; nothing requires it.
      if (!tensor) continue;
      claim.tensor = *tensor;
      for (const Range heads : ownership.heads.ranges()) {
        claim.heads = heads;
        claims_.push_back(claim);
      }
    }
  }

  // Tensors of a group are sorted by name.
  std::optional<uint32_t> find_tensor(const CommonGroup& group, const ComponentName& name) const {
    const size_t next = static_cast<size_t>(&group - common_.groups.data()) + 1;
    const auto begin = common_.tensors.begin() + static_cast<ptrdiff_t>(group.first_tensor);
    const auto end = next < common_.groups.size()
                         ? common_.tensors.begin() + static_cast<ptrdiff_t>(common_.groups[next].first_tensor)
                         : common_.tensors.end();
    const auto found = std::lower_bound(begin, end, name, [](const PlanTensor& tensor, const ComponentName& wanted) {
      return tensor.component.name < wanted;
    });
    if (found == end || found->component.name != name) return std::nullopt;
    return static_cast<uint32_t>(found - common_.tensors.begin());
  }

  const CommonTensors& common_;
  ClaimNumbers& numbers_;
  LayerIndex layers_;
  std::vector<std::vector<const CommonGroup*>> groups_of_;  // of each group of this side's schema
  std::vector<size_t> touched_;
  std::vector<Claim> claims_;
};

}  // namespace

std::vector<Claim> collect_claims(const PlanSide& side, ClaimSide which, std::span<const uint32_t> owners,
                                  const CommonTensors& common, ClaimNumbers& numbers) {
  ClaimCollector collector(side, which, common, numbers);
  for (const uint32_t owner : owners) collector.add(side.owners()[owner], owner);
  return collector.take();
}

}  // namespace crossdock
