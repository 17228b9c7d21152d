// The parts that options of several protocols share. Part of executor/recording/options_json.h. Fields that end in _ns
// are nanoseconds, in _bytes or bytes_max bytes.
#pragma once

#include <array>
#include <string_view>

#include "executor/recording/recorded_documents.h"
#include "executor/recording/values_json.h"
#include "executor/retry.h"
#include "executor/store_jobs.h"
#include "executor/transfer_job.h"
#include "executor/window.h"
#include "model/wire/describe.h"

namespace crossdock::form {

inline constexpr std::array<std::string_view, 3> kSelectionNames = {"deterministic", "balanced", "by_page"};

inline constexpr auto kWindow = object([](auto& fields, auto& window) {
  fields.required("bytes_max", window.bytes_max, number(1));
  fields.required("operation_count_max", window.operation_count_max, number(1));
});

inline constexpr auto kRetry = object([](auto& fields, auto& retry) {
  fields.required("attempt_count_max", retry.attempt_count_max, kUint32);
  fields.required("backoff_first_ns", retry.backoff_first, kNanoseconds);
  fields.required("backoff_max_ns", retry.backoff_max, kNanoseconds);
});

inline constexpr auto kSplit = object([](auto& fields, auto& split) {
  fields.required("bytes_max", split.bytes_max, number(1));
  fields.required("range_count_max", split.range_count_max, number(1));
  fields.required("source_registration_bytes", split.source_registration_bytes, number(1));
  fields.required("step_count_max", split.step_count_max, number(1));
  fields.required("target_registration_bytes", split.target_registration_bytes, number(1));
});

inline constexpr auto kBatch = object([](auto& fields, auto& batch) {
  fields.required("bytes_max", batch.bytes_max, number(1));
  fields.required("step_count_max", batch.step_count_max, number(1));
});

inline constexpr auto kLower = object([](auto& fields, auto& lower) {
  fields.required("bytes_max", lower.bytes_max, number());
  fields.required("page_piece_count_max", lower.page_piece_count_max, number());
  fields.required("pattern_count_max", lower.pattern_count_max, number());
  fields.required("step_count_max", lower.step_count_max, number());
  fields.required("work_max", lower.work_max, number());
});

inline constexpr auto kNic = object([](auto& fields, auto& nic) {
  fields.required("name", nic.name, kText);
  fields.required("participants", nic.participants, list_of(kText));
});

inline constexpr auto kPlanOptions = object([](auto& fields, auto& plan) {
  fields.required("nics", plan.nics, list_of(kNic));
  fields.required("selection", plan.selection, choice<SourceSelection>(kSelectionNames));
  fields.required("selection_page_tokens", plan.selection_page_tokens, number());
  fields.optional("snapshot_tokens", plan.snapshot_tokens, kInterval);
  fields.optional("source_dp", plan.source_dp, number());
  fields.required("sources", plan.sources, list_of(kText));
  fields.optional("target_dp", plan.target_dp, number());
  fields.required("targets", plan.targets, list_of(kText));
  fields.required("tokens", plan.tokens, kInterval);
});

// What jobs are made from: of a JobContext, or of options that have the same members.
template <class Documents>
// Reads with KnownDocuments, writes with a DocumentNamer.
auto job_context(Documents& documents) {
  return object([&documents](auto& fields, auto& context) {
    const auto kDocuments = object([&documents](auto& inside, auto& named_documents) {
      inside.required("snapshot", named_documents.snapshot, named_by(documents));
      inside.required("source", named_documents.source, named_by(documents));
      inside.required("target", named_documents.target, named_by(documents));
    });
    fields.required("documents", context.documents, kDocuments);
    fields.required("lower", context.lower, kLower);
    fields.required("plan", context.plan, kPlanOptions);
  });
}

}  // namespace crossdock::form
