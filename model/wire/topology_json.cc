#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr auto axes_of_at_least(uint64_t minimum) {
  return form::object([minimum](auto& fields, auto& axes) {
    for (const ParallelAxis& axis : kParallelAxes) fields.required(axis.name, axes.*axis.member, form::number(minimum));
  });
}

constexpr auto kParticipant = form::object([](auto& fields, auto& participant) {
  fields.required("id", participant.id, form::kName);
  fields.required("rank", participant.rank, axes_of_at_least(0));
});

constexpr auto kTopology = [](auto& fields, auto& topology) {
  fields.required("participants", topology.participants, form::list_of(kParticipant));
  fields.required("sizes", topology.sizes, axes_of_at_least(1));
};

}  // namespace

void DocumentCodec<Topology>::encode(JsonWriter& out, const Topology& topology, bool with_header) {
  write_document(out, topology, kTopology, with_header);
}

Topology DocumentCodec<Topology>::decode_fields(ObjectReader& in) { return take_document<Topology>(in, kTopology); }

}  // namespace crossdock
