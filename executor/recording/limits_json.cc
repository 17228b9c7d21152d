#include "executor/recording/limits_json.h"

#include <array>
#include <utility>

#include "executor/recording/values_json.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr std::array<std::string_view, 2> kSelectionNames = {"deterministic", "balanced"};

// Reads an object with decode_fields(ObjectReader&), which returns what it holds.
template <class Decode>
auto object_field(ObjectReader& in, std::string_view name, Decode decode_fields) {
  decltype(decode_fields(in)) value;
  in.required(name, [&](const JsonCursor& cursor) {
    ObjectReader fields(cursor);
    value = decode_fields(fields);
    fields.finish();
  });
  return value;
}

void encode_ends(JsonWriter& out, const std::vector<PlanEnd>& ends) {
  encode_list(out, ends, [](JsonWriter& list, const PlanEnd& end) { encode_text(list, end.text()); });
}

std::vector<PlanEnd> ends_field(ObjectReader& in, std::string_view name) {
  std::vector<PlanEnd> ends;
  in.required(name, [&](const JsonCursor& list) {
    ends = decode_list(list, [](const JsonCursor& end) { return PlanEnd(decode_text(end)); });
  });
  return ends;
}

void encode_nic(JsonWriter& out, const NicGroup& nic) {
  out.begin_object();
  out.key("name");
  encode_text(out, nic.name);
  out.key("participants");
  encode_ends(out, nic.participants);
  out.end_object();
}

NicGroup decode_nic(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  NicGroup nic;
  nic.name = text_field(in, "name");
  nic.participants = ends_field(in, "participants");
  in.finish();
  return nic;
}

}  // namespace

void encode_window(JsonWriter& out, const WindowLimits& window) {
  out.begin_object();
  out.key("bytes_max").number(window.bytes_max);
  out.key("operation_count_max").number(window.operation_count_max);
  out.end_object();
}

WindowLimits window_field(ObjectReader& in, std::string_view name) {
  return object_field(in, name, [](ObjectReader& fields) {
    WindowLimits window;
    window.bytes_max = fields.number("bytes_max", 1);
    window.operation_count_max = fields.number("operation_count_max", 1);
    return window;
  });
}

void encode_retry(JsonWriter& out, const RetryOptions& retry) {
  out.begin_object();
  out.key("attempt_count_max").number(retry.attempt_count_max);
  out.key("backoff_first_ns");
  encode_ns(out, retry.backoff_first.ns());
  out.key("backoff_max_ns");
  encode_ns(out, retry.backoff_max.ns());
  out.end_object();
}

RetryOptions retry_field(ObjectReader& in, std::string_view name) {
  return object_field(in, name, [](ObjectReader& fields) {
    RetryOptions retry;
    retry.attempt_count_max = uint32_field(fields, "attempt_count_max");
    retry.backoff_first = duration_field(fields, "backoff_first_ns");
    retry.backoff_max = duration_field(fields, "backoff_max_ns");
    return retry;
  });
}

void encode_split(JsonWriter& out, const StepSplit& split) {
  out.begin_object();
  out.key("bytes_max").number(split.bytes_max);
  out.key("range_count_max").number(split.range_count_max);
  out.key("source_registration_bytes").number(split.source_registration_bytes);
  out.key("step_count_max").number(split.step_count_max);
  out.key("target_registration_bytes").number(split.target_registration_bytes);
  out.end_object();
}

StepSplit split_field(ObjectReader& in, std::string_view name) {
  return object_field(in, name, [](ObjectReader& fields) {
    StepSplit split;
    split.bytes_max = fields.number("bytes_max", 1);
    split.range_count_max = fields.number("range_count_max", 1);
    split.source_registration_bytes = fields.number("source_registration_bytes", 1);
    split.step_count_max = fields.number("step_count_max", 1);
    split.target_registration_bytes = fields.number("target_registration_bytes", 1);
    return split;
  });
}

void encode_batch(JsonWriter& out, const BatchLimits& batch) {
  out.begin_object();
  out.key("bytes_max").number(batch.bytes_max);
  out.key("step_count_max").number(batch.step_count_max);
  out.end_object();
}

BatchLimits batch_field(ObjectReader& in, std::string_view name) {
  return object_field(in, name, [](ObjectReader& fields) {
    BatchLimits batch;
    batch.bytes_max = fields.number("bytes_max", 1);
    batch.step_count_max = fields.number("step_count_max", 1);
    return batch;
  });
}

void encode_lower(JsonWriter& out, const LowerLimits& lower) {
  out.begin_object();
  out.key("bytes_max").number(lower.bytes_max);
  out.key("page_piece_count_max").number(lower.page_piece_count_max);
  out.key("pattern_count_max").number(lower.pattern_count_max);
  out.key("step_count_max").number(lower.step_count_max);
  out.key("work_max").number(lower.work_max);
  out.end_object();
}

LowerLimits lower_field(ObjectReader& in, std::string_view name) {
  return object_field(in, name, [](ObjectReader& fields) {
    LowerLimits lower;
    lower.bytes_max = fields.number("bytes_max");
    lower.page_piece_count_max = fields.number("page_piece_count_max");
    lower.pattern_count_max = fields.number("pattern_count_max");
    lower.step_count_max = fields.number("step_count_max");
    lower.work_max = fields.number("work_max");
    return lower;
  });
}

void encode_plan_options(JsonWriter& out, const PlanOptions& plan) {
  out.begin_object();
  out.key("nics");
  encode_list(out, plan.nics, encode_nic);
  out.key("selection").string(enum_name(plan.selection, kSelectionNames));
  if (plan.snapshot_tokens) {
    out.key("snapshot_tokens");
    encode(out, *plan.snapshot_tokens);
  }
  if (plan.source_dp) out.key("source_dp").number(*plan.source_dp);
  out.key("sources");
  encode_ends(out, plan.sources);
  if (plan.target_dp) out.key("target_dp").number(*plan.target_dp);
  out.key("targets");
  encode_ends(out, plan.targets);
  out.key("tokens");
  encode(out, plan.tokens);
  out.end_object();
}

PlanOptions plan_options_field(ObjectReader& in, std::string_view name) {
  return object_field(in, name, [](ObjectReader& fields) {
    PlanOptions plan;
    fields.required("nics", [&](const JsonCursor& list) { plan.nics = decode_list(list, decode_nic); });
    plan.selection = enum_field<SourceSelection>(fields, "selection", kSelectionNames);
    fields.optional("snapshot_tokens", [&](const JsonCursor& range) { plan.snapshot_tokens = range.range(); });
    plan.source_dp = fields.optional_number("source_dp");
    plan.sources = ends_field(fields, "sources");
    plan.target_dp = fields.optional_number("target_dp");
    plan.targets = ends_field(fields, "targets");
    plan.tokens = fields.range("tokens");
    return plan;
  });
}

void encode_transfer_documents(JsonWriter& out, const TransferDocuments& documents, DocumentNamer& namer) {
  out.begin_object();
  out.key("snapshot").string(namer.name(documents.snapshot).hex());
  out.key("source").string(namer.name(documents.source).hex());
  out.key("target").string(namer.name(documents.target).hex());
  out.end_object();
}

TransferDocuments transfer_documents_field(ObjectReader& in, std::string_view name, KnownDocuments& known) {
  return object_field(in, name, [&known](ObjectReader& fields) {
    TransferDocuments documents;
    documents.snapshot = known.find<SnapshotDescriptor>(fields.digest("snapshot"));
    documents.source = known.find<PlacementManifest>(fields.digest("source"));
    documents.target = known.find<PlacementManifest>(fields.digest("target"));
    return documents;
  });
}

}  // namespace crossdock
