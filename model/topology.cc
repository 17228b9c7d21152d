#include "model/topology.h"

#include <algorithm>

namespace crossdock {

const Participant* Topology::find(const ParticipantId& id) const {
  const auto found = std::lower_bound(participants.begin(), participants.end(), id,
                                      [](const Participant& p, const ParticipantId& wanted) { return p.id < wanted; });
  return found != participants.end() && found->id == id ? &*found : nullptr;
}

}  // namespace crossdock
