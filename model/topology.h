// Topology: the participants of one runtime and the rank of each. Ranks are stated, never derived from an order.
// Wire form: docs/formats/topology.md.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/ids.h"

namespace crossdock {

// Parallel axes: data, pipeline, tensor, context and expert. Used for sizes and for ranks.
struct ParallelAxes {
  uint64_t dp = 0;
  uint64_t pp = 0;
  uint64_t tp = 0;
  uint64_t cp = 0;
  uint64_t ep = 0;

  friend auto operator<=>(const ParallelAxes&, const ParallelAxes&) = default;
};

struct ParallelAxis {
  std::string_view name;
  uint64_t ParallelAxes::*member;
};

// In alphabetical order, as the wire form has them.
inline constexpr std::array<ParallelAxis, 5> kParallelAxes = {{{"cp", &ParallelAxes::cp},
                                                               {"dp", &ParallelAxes::dp},
                                                               {"ep", &ParallelAxes::ep},
                                                               {"pp", &ParallelAxes::pp},
                                                               {"tp", &ParallelAxes::tp}}};

struct Participant {
  ParticipantId id;
  ParallelAxes rank;

  friend bool operator==(const Participant&, const Participant&) = default;
};

struct Topology {
  ParallelAxes sizes;
  std::vector<Participant> participants;  // sorted by id; a rank may stay empty, none is taken twice

  // Null when there is none. O(log n).
  const Participant* find(const ParticipantId& id) const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// See model/valid.h.
void canonicalize(Topology& topology);
void validate(const Topology& topology, Diagnostics& diagnostics);

}  // namespace crossdock
