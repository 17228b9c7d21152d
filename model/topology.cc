#include "model/topology.h"

#include "base/sorted.h"

namespace crossdock {

const Participant* Topology::find(const ParticipantId& id) const {
  return find_sorted(participants, &Participant::id, id);
}

}  // namespace crossdock
