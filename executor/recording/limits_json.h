// The parts that options of several protocols share. Part of executor/recording/options_json.h.
#pragma once

#include "executor/recording/recorded_documents.h"
#include "executor/retry.h"
#include "executor/store_jobs.h"
#include "executor/transfer_job.h"
#include "executor/window.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {

void encode_window(JsonWriter& out, const WindowLimits& window);
void encode_retry(JsonWriter& out, const RetryOptions& retry);
void encode_split(JsonWriter& out, const StepSplit& split);
void encode_batch(JsonWriter& out, const BatchLimits& batch);
void encode_lower(JsonWriter& out, const LowerLimits& lower);
void encode_plan_options(JsonWriter& out, const PlanOptions& plan);
void encode_transfer_documents(JsonWriter& out, const TransferDocuments& documents, DocumentNamer& namer);

// Each reads the required field of that name.
WindowLimits window_field(ObjectReader& in, std::string_view name);
RetryOptions retry_field(ObjectReader& in, std::string_view name);
StepSplit split_field(ObjectReader& in, std::string_view name);
BatchLimits batch_field(ObjectReader& in, std::string_view name);
LowerLimits lower_field(ObjectReader& in, std::string_view name);
PlanOptions plan_options_field(ObjectReader& in, std::string_view name);
TransferDocuments transfer_documents_field(ObjectReader& in, std::string_view name, KnownDocuments& documents);

}  // namespace crossdock
