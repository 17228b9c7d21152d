#include "executor/recording/post_json.h"

#include <fmt/format.h>

#include <iterator>

#include "base/overloaded.h"
#include "executor/recording/message_json.h"
#include "executor/recording/values_json.h"

// A post as text, so that a replay compares what it posts byte for byte. Steps would make most of a recording; they are
// named by a digest over all that a transport is given: regions with their epochs, offsets, strides.
namespace crossdock {
namespace {

constexpr std::array<std::string_view, 2> kStepEndNames = {"source", "target"};
constexpr std::array<std::string_view, 3> kCancelNames = {"transport", "store", "messenger"};

// Posts are never read, so these forms only write.
constexpr auto kRegion = form::object([](FieldWriter& fields, const RegionKey& key) {
  fields.optional("address", key.address, form::number());
  fields.required("epoch", key.epoch, form::number());
  fields.required("owner", key.owner, form::kText);
  fields.required("region", key.id, form::kText);
});

constexpr auto kGrantRange = form::object([](FieldWriter& fields, const GrantRange& range) {
  fields.required("bytes", range.bytes, form::kInterval);
  fields.required("region", range.region, kRegion);
});

constexpr auto kGrantRequest = form::object([](FieldWriter& fields, const GrantRequest& request) {
  fields.required("id", request.id, form::kText);
  fields.required("ranges", request.ranges, form::list_of(kGrantRange));
  fields.required("writers", request.writers, form::list_of(form::kText));
});

constexpr auto kRevoke = form::object([](FieldWriter& fields, const RevokeRequest& request) {
  fields.required("grant", request.id, form::kText);
  fields.required("is_clean", request.is_clean, form::kBoolean);
});

constexpr auto kHold = form::object([](FieldWriter& fields, const HoldId& hold) {
  fields.required("attempt", hold.attempt, form::kText);
  fields.required("operation", hold.operation, form::kText);
  fields.required("participant", hold.participant, form::kText);
});

std::string regions_text(const std::vector<RegionKey>& regions) {
  JsonWriter out;
  form::list_of(kRegion).write(out, regions);
  return out.take();
}

// Count and bytes are there for people; the digest alone decides.
constexpr auto kSteps = form::object([](FieldWriter& fields, const StepSpan& span) {
  fields.required("bytes", span.total_bytes(), form::number());
  fields.required("digest", steps_digest(span), form::kDigest);
  fields.required("steps", span.steps().size(), form::number());
});

constexpr auto kBegin = form::object([](FieldWriter& fields, const BeginPost& begin) {
  fields.required("lease_ns", begin.target.lease, form::kNanoseconds);
  fields.optional("snapshot", begin.target.content, form::kDigest);
  fields.required("tenant", begin.target.tenant, form::kText);
  fields.required("txn", begin.txn, form::kText);
});

constexpr auto kPut = form::object([](FieldWriter& fields, const PutPost& put) {
  fields.required("object", put.step.object, form::kText);
  fields.required("object_bytes", put.step.object_bytes, form::number());
  fields.required("payload_bytes", put.step.payload_bytes, form::number());
  fields.required("steps", put.step.steps, kSteps);
  fields.required("txn", put.txn, form::kText);
  fields.required("writer", put.step.writer, form::kText);
});

constexpr auto kPageEntry = form::object([](FieldWriter& fields, const PageEntry& entry) {
  fields.required("key", entry.key, form::kPageObjectKey);
  fields.required("object", entry.object, form::kStoredObject);
});

// A manifest is named by digest, like any document; page entries have no document of their own.
auto commit_with(DocumentNamer& namer) {
  return form::object([&namer](FieldWriter& fields, const CommitPost& commit) {
    const auto& content = commit.publication.content;
    if (const auto* manifest = std::get_if<AnyManifest>(&content))
      fields.required("manifest", *manifest, form::named_by(namer));
    else
      fields.required("pages", std::get<std::vector<PageEntry>>(content), form::list_of(kPageEntry));
    fields.optional("ttl_ns", commit.publication.ttl, form::kNanoseconds);
    fields.required("txn", commit.txn, form::kText);
  });
}

constexpr auto kLookup = form::object([](FieldWriter& fields, const Lookup& lookup) {
  fields.required("holder", lookup.lease.holder, form::kText);
  fields.required("lease_ns", lookup.lease.duration, form::kNanoseconds);
  fields.required("request", lookup.lease.request, form::kText);
  if (const auto* content = std::get_if<ContentId>(&lookup.key))
    fields.required("snapshot", *content, form::kDigest);
  else
    fields.required("wanted", std::get<std::vector<PageObjectKey>>(lookup.key), form::list_of(form::kPageObjectKey));
});

constexpr auto kFoundObject = form::object([](FieldWriter& fields, const FoundObject& found) {
  fields.required("id", found.object.id, form::kText);
  fields.required("number", found.number, form::number());
});

constexpr auto kGet = form::object([](FieldWriter& fields, const GetStep& step) {
  fields.required("grant", step.grant, form::kText);
  fields.required("lease", step.lease, form::number());
  fields.required("object", *step.object, kFoundObject);
  fields.required("steps", step.steps, kSteps);
  fields.required("within", step.within, form::kInterval);
});

auto send_with(DocumentNamer& namer) {
  return form::object([&namer](FieldWriter& fields, const SendPost& send) {
    fields.required("message", send.message, form::message_with(namer));
    fields.required("to", send.to, form::kText);
  });
}

// The fields after "call" and "op".
// One lambda for each call, so a call that is added to Post and forgotten here does not compile.
void describe_call(FieldWriter& fields, const Post& post, DocumentNamer& namer) {
  std::visit(Overloaded{
                 [&](const CopyPost& copy) {
                   fields.required("steps", copy.steps, kSteps);
                   fields.required("under", copy.grant->id, form::kText);
                 },
                 [&](const ChecksumPost& sum) {
                   fields.required("side", sum.end, form::choice<StepEnd>(kStepEndNames));
                   fields.required("steps", sum.steps, kSteps);
                 },
                 [&](const GrantPost& grant) { fields.required("request", grant.request, kGrantRequest); },
                 [&](const RevokePost& revoke) { fields.required("revoke", revoke.request, kRevoke); },
                 [&](const BeginPost& begin) { fields.required("target", begin, kBegin); },
                 [&](const PutPost& put) { fields.required("put", put, kPut); },
                 [&](const CommitPost& commit) { fields.required("publication", commit, commit_with(namer)); },
                 [&](const AbortPost& abort) { fields.required("txn", abort.txn, form::kText); },
                 [&](const LookupPost& lookup) { fields.required("query", lookup.lookup, kLookup); },
                 [&](const GetPost& get) { fields.required("read", get.step, kGet); },
                 [&](const ReleaseLeasePost& release) { fields.required("release", release.lease, form::number()); },
                 [&](const SendPost& send) { fields.required("send", send, send_with(namer)); },
                 [](const RecvPost&) {},
                 [&](const RuntimePost& runtime) {
                   fields.required("page_hold", runtime.hold, kHold);
                   fields.required("runtime", runtime.call, form::choice<RuntimeCall>(kRuntimeCallNames));
                 },
                 [&](const CancelPost& cancel) {
                   fields.required("where", cancel.where, form::choice<CancelWhere>(kCancelNames));
                 },
             },
             post.call);
}

}  // namespace

// The text is hashed piece by piece and never held as a whole: a batch may have thousands of steps.
Sha256Digest steps_digest(const StepSpan& span) {
  // An empty span may have no work behind it.
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
  write_fields(out, post, [&namer](FieldWriter& fields, const Post& each) {
    fields.required("call", std::string(each.name()), form::kString);
    fields.required("op", each.op, form::number());
    describe_call(fields, each, namer);
  });
  return out.take();
}

}  // namespace crossdock
