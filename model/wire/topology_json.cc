#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_axes(JsonWriter& out, const ParallelAxes& axes) {
  out.begin_object();
  for (const ParallelAxis& axis : kParallelAxes) out.key(axis.name).number(axes.*axis.member);
  out.end_object();
}

ParallelAxes decode_axes(const JsonCursor& cursor, uint64_t minimum) {
  ObjectReader in(cursor);
  ParallelAxes axes;
  for (const ParallelAxis& axis : kParallelAxes) axes.*axis.member = in.number(axis.name, minimum);
  in.finish();
  return axes;
}

Participant decode_participant(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Participant participant;
  participant.id = ParticipantId(in.name("id"));
  in.required("rank", [&](const JsonCursor& rank) { participant.rank = decode_axes(rank, 0); });
  in.finish();
  return participant;
}

}  // namespace

void DocumentCodec<Topology>::encode(JsonWriter& out, const Topology& topology, bool with_header) {
  out.begin_object();
  out.key("participants");
  encode_list(out, topology.participants, [](JsonWriter& list, const Participant& participant) {
    list.begin_object();
    list.key("id").string(participant.id.text());
    list.key("rank");
    encode_axes(list, participant.rank);
    list.end_object();
  });
  encode_schema(out, kSchema, with_header);
  out.key("sizes");
  encode_axes(out, topology.sizes);
  encode_version(out, with_header);
  out.end_object();
}

Topology DocumentCodec<Topology>::decode_fields(ObjectReader& in) {
  Topology topology;
  in.required("participants",
              [&](const JsonCursor& list) { topology.participants = decode_list(list, decode_participant); });
  in.required("sizes", [&](const JsonCursor& sizes) { topology.sizes = decode_axes(sizes, 1); });
  return topology;
}

}  // namespace crossdock
