#include "executor/recording/post_json.h"

#include <fmt/format.h>

#include <iterator>

#include "base/overloaded.h"
#include "executor/recording/message_json.h"
#include "executor/recording/values_json.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr std::array<std::string_view, 2> kStepEndNames = {"source", "target"};
constexpr std::array<std::string_view, 3> kCancelNames = {"transport", "store", "messenger"};

void encode_region(JsonWriter& out, const RegionKey& key) {
  out.begin_object();
  if (key.address) out.key("address").number(*key.address);
  out.key("epoch").number(key.epoch);
  out.key("owner");
  encode_text(out, key.owner.text());
  out.key("region");
  encode_text(out, key.id.text());
  out.end_object();
}

std::string regions_text(const std::vector<RegionKey>& regions) {
  JsonWriter out;
  encode_list(out, regions, encode_region);
  return out.take();
}

void encode_steps(JsonWriter& out, const StepSpan& span) {
  out.begin_object();
  out.key("bytes").number(span.total_bytes());
  out.key("digest").string(steps_digest(span).hex());
  out.key("steps").number(span.steps().size());
  out.end_object();
}

void encode_name(JsonWriter& out, std::string_view key, std::string_view text) {
  out.key(key);
  encode_text(out, text);
}

void encode_begin(JsonWriter& out, const BeginPost& begin) {
  out.key("lease_ns");
  encode_ns(out, begin.target.lease.ns());
  if (begin.target.content) out.key("snapshot").string(begin.target.content->hex());
  encode_name(out, "tenant", begin.target.tenant);
  encode_name(out, "txn", begin.txn.text());
}

void encode_put(JsonWriter& out, const PutPost& put) {
  encode_name(out, "object", put.step.object.text());
  out.key("object_bytes").number(put.step.object_bytes);
  out.key("payload_bytes").number(put.step.payload_bytes);
  out.key("steps");
  encode_steps(out, put.step.steps);
  encode_name(out, "txn", put.txn.text());
  encode_name(out, "writer", put.step.writer);
}

void encode_page_entry(JsonWriter& out, const PageEntry& entry) {
  out.begin_object();
  out.key("key");
  encode_page_object_key(out, entry.key);
  out.key("object");
  encode_stored_object(out, entry.object);
  out.end_object();
}

void encode_commit(JsonWriter& out, const CommitPost& commit, DocumentNamer& namer) {
  const auto& content = commit.publication.content;
  if (const auto* manifest = std::get_if<AnyManifest>(&content)) {
    out.key("manifest").string(namer.name(*manifest).hex());
  } else {
    out.key("pages");
    encode_list(out, std::get<std::vector<PageEntry>>(content), encode_page_entry);
  }
  if (commit.publication.ttl) {
    out.key("ttl_ns");
    encode_ns(out, commit.publication.ttl->ns());
  }
  encode_name(out, "txn", commit.txn.text());
}

void encode_lookup(JsonWriter& out, const Lookup& lookup) {
  encode_name(out, "holder", lookup.lease.holder);
  out.key("lease_ns");
  encode_ns(out, lookup.lease.duration.ns());
  if (const auto* snapshot = std::get_if<SnapshotId>(&lookup.key)) {
    out.key("snapshot").string(snapshot->hex());
  } else {
    out.key("wanted");
    encode_list(out, std::get<std::vector<PageObjectKey>>(lookup.key), encode_page_object_key);
  }
}

void encode_get(JsonWriter& out, const GetStep& step) {
  out.key("lease").number(step.lease.value());
  out.key("object").begin_object();
  out.key("id");
  encode_text(out, step.object->object.id.text());
  out.key("number").number(step.object->number.value());
  out.end_object();
  out.key("steps");
  encode_steps(out, step.steps);
  out.key("within");
  encode(out, step.within);
}

// The fields after "call" and "op", sorted.
void encode_rest(JsonWriter& out, const Post& post, DocumentNamer& namer) {
  std::visit(Overloaded{
                 [&](const CopyPost& copy) {
                   out.key("steps");
                   encode_steps(out, copy.steps);
                 },
                 [&](const ChecksumPost& sum) {
                   out.key("side").string(enum_name(sum.end, kStepEndNames));
                   out.key("steps");
                   encode_steps(out, sum.steps);
                 },
                 [&](const RevokePost& revoke) {
                   out.key("region");
                   encode_region(out, revoke.key);
                 },
                 [&](const BeginPost& begin) {
                   out.key("target").begin_object();
                   encode_begin(out, begin);
                   out.end_object();
                 },
                 [&](const PutPost& put) {
                   out.key("put").begin_object();
                   encode_put(out, put);
                   out.end_object();
                 },
                 [&](const CommitPost& commit) {
                   out.key("publication").begin_object();
                   encode_commit(out, commit, namer);
                   out.end_object();
                 },
                 [&](const AbortPost& abort) { encode_name(out, "txn", abort.txn.text()); },
                 [&](const LookupPost& lookup) {
                   out.key("query").begin_object();
                   encode_lookup(out, lookup.lookup);
                   out.end_object();
                 },
                 [&](const GetPost& get) {
                   out.key("read").begin_object();
                   encode_get(out, get.step);
                   out.end_object();
                 },
                 [&](const ReleaseLeasePost& release) { out.key("release").number(release.lease.value()); },
                 [&](const SendPost& send) {
                   out.key("send").begin_object();
                   out.key("message");
                   encode_message(out, send.message, namer);
                   encode_name(out, "to", send.to.text());
                   out.end_object();
                 },
                 [](const RecvPost&) {},
                 [&](const RuntimePost& runtime) {
                   encode_name(out, "participant", runtime.participant.text());
                   out.key("runtime").string(enum_name(runtime.call, kRuntimeCallNames));
                 },
                 [&](const CancelPost& cancel) { out.key("where").string(enum_name(cancel.where, kCancelNames)); },
             },
             post.call);
}

}  // namespace

Sha256Digest steps_digest(const StepSpan& span) {
  static const std::vector<RegionKey> kNone;
  const bool is_empty = span.steps().empty();
  Sha256 sha;
  sha.update("{\"source_regions\":" + regions_text(is_empty ? kNone : span.work().source_regions) + ",\"steps\":[");
  std::string text;
  for (const CopyStep& step : span.steps()) {
    text += fmt::format("[{},{},{},{},{},[", step.source_region, step.target_region, step.source_offset,
                        step.target_offset, step.bytes);
    for (const CopyAxis& axis : step.axes())
      fmt::format_to(std::back_inserter(text), "{}[{},{},{}]", text.back() == '[' ? "" : ",", axis.extent,
                     axis.source_stride_bytes, axis.target_stride_bytes);
    text += "]]";
    sha.update(text);
    text = ",";
  }
  sha.update("],\"target_regions\":" + regions_text(is_empty ? kNone : span.work().target_regions) + "}");
  return sha.finish();
}

std::string post_text(const Post& post, DocumentNamer& namer) {
  JsonWriter out;
  out.begin_object();
  out.key("call").string(post.name());
  out.key("op").number(post.op.value());
  encode_rest(out, post, namer);
  out.end_object();
  return out.take();
}

}  // namespace crossdock
