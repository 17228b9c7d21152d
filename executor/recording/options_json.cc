#include "executor/recording/options_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/overloaded.h"
#include "executor/recording/limits_json.h"
#include "executor/recording/prefix_json.h"
#include "executor/recording/values_json.h"
#include "executor/target.h"
#include "executor/writer.h"

// What a protocol was made of: its options, and what its planner was made of. A planner is an interface, so it is
// recognised by its type; of another resource than KV cache nothing is known that could be written.
// Every option that has an effect on posts is written. An option that is added to a protocol has to be added here, or a
// replay would run with its default (I7).
namespace crossdock {
namespace {

constexpr std::array<std::string_view, 5> kProtocolNames = {"coordinator", "restore", "target", "upload", "writer"};

constexpr auto kPeerAddress = form::object([](auto& fields, auto& address) {
  fields.required("participant", address.participant, form::kText);
  fields.required("peer", address.peer, form::kText);
});

// The options of each protocol; the documents that they name are read with KnownDocuments, and written with a
// DocumentNamer.
template <class Documents>
// A writer and a target do not plan, but their jobs are made again by a planner; its documents go into the header with
// them.
auto participant_options(Documents& documents) {
  return [&documents](auto& fields, auto& record) {
    auto& options = record.options;
    fields.required("attempt", options.attempt, form::kText);
    fields.required("batch", options.batch, form::kBatch);
    fields.required("coordinator", options.coordinator, form::kText);
    fields.required("decision_wait_ns", options.decision_wait, form::kNanoseconds);
    fields.required("drain_ns", options.drain, form::kNanoseconds);
    fields.required("job", record.context, form::job_context(documents));
    fields.required("linger_ns", options.linger, form::kNanoseconds);
    fields.required("operation", options.operation, form::kText);
    fields.required("participant", options.participant, form::kText);
    fields.required("resend", options.resend, form::kRetry);
    fields.required("retry", options.retry, form::kRetry);
    fields.required("seed", options.seed, form::number());
    fields.required("split", options.split, form::kSplit);
    fields.required("timeout_ns", options.timeout, form::kNanoseconds);
    fields.required("window", options.window, form::kWindow);
  };
}

template <class Documents>
auto coordinator_options(Documents& documents) {
  return [&documents](auto& fields, auto& record) {
    auto& options = record.options;
    fields.required("attempt", options.attempt, form::kText);
    fields.required("checksum", options.checksum, form::kBoolean);
    fields.required("done_wait_ns", options.done_wait, form::kNanoseconds);
    fields.required("instance", options.instance, form::kText);
    fields.required("job", record.transfer, form::job_context(documents));
    fields.required("operation", options.operation, form::kText);
    fields.required("reply_to", options.reply_to, form::kText);
    fields.required("report_wait_ns", options.report_wait, form::kNanoseconds);
    fields.required("resend", options.resend, form::kRetry);
    fields.required("seed", options.seed, form::number());
    fields.required("sources", options.sources, form::list_of(kPeerAddress));
    fields.required("takes_over", options.takes_over, form::kBoolean);
    fields.required("targets", options.targets, form::list_of(kPeerAddress));
    fields.required("term", options.term, form::number());
    fields.required("timeout_ns", options.timeout, form::kNanoseconds);
  };
}

template <class Documents>
auto upload_what(Documents& documents) {
  return form::object([&documents](auto& fields, auto& record) {
    auto& upload = record.upload;
    fields.required("layout", upload.documents.layout, form::named_by(documents));
    fields.optional("page_keys", upload.page_keys, form::kPageKeys);
    fields.required("snapshot", upload.documents.snapshot, form::named_by(documents));
    fields.required("source", upload.documents.source, form::named_by(documents));
    fields.optional("ttl_ns", record.options.ttl, form::kNanoseconds);
  });
}

template <class Documents>
auto upload_options(Documents& documents) {
  return [&documents](auto& fields, auto& record) {
    auto& options = record.options;
    auto& upload = record.upload;
    fields.required("drain_ns", options.drain, form::kNanoseconds);
    fields.required("lease_ns", options.lease, form::kNanoseconds);
    fields.required("lower", upload.lower, form::kLower);
    fields.required("participants", options.participants, form::list_of(form::kText));
    fields.required("plan", upload.plan, form::kPlanOptions);
    fields.required("put_round_count_max", options.put_round_count_max, form::kUint32);
    fields.required("retry", options.retry, form::kRetry);
    fields.required("seed", options.seed, form::number());
    fields.required("tenant", options.tenant, form::kText);
    fields.required("timeout_ns", options.timeout, form::kNanoseconds);
    fields.required("txn", options.txn, form::kText);
    fields.required("what", record, upload_what(documents));
    fields.required("window", options.window, form::kWindow);
  };
}

constexpr auto kLease = form::object([](auto& fields, auto& lease) {
  fields.required("duration_ns", lease.duration, form::kNanoseconds);
  fields.required("holder", lease.holder, form::kText);
  fields.required("request", lease.request, form::kText);
});

template <class Documents>
auto restore_options(Documents& documents) {
  return [&documents](auto& fields, auto& record) {
    auto& options = record.options;
    auto& restore = record.restore;
    using Prefix = std::shared_ptr<const PrefixRestore>;
    const bool is_prefix = std::holds_alternative<Prefix>(restore.what);
    fields.required("attempt", options.attempt, form::kText);
    fields.required("drain_ns", options.drain, form::kNanoseconds);
    fields.required("get_bytes_max", restore.limits.get_bytes_max, form::number());
    fields.required("lease", options.lease, kLease);
    fields.required("lower", restore.lower, form::kLower);
    fields.required("operation", options.operation, form::kText);
    fields.required("participants", options.participants, form::list_of(form::kText));
    fields.required("plan", restore.plan, form::kPlanOptions);
    const bool has_prefix =
        fields.given("prefix", is_prefix, restore.what, form::held<Prefix>(form::prefix_with(documents)));
    fields.required("retry", options.retry, form::kRetry);
    fields.required("seed", options.seed, form::number());
    const bool has_snapshot = fields.given("snapshot", !is_prefix, restore.what, form::held<SnapshotId>(form::kDigest));
    // Two fields of one choice: the form alone cannot say that exactly one of them is there.
    fields.check(has_prefix != has_snapshot, Rule::kFieldMissing,
                 "one of 'prefix' and 'snapshot' says what is restored");
    fields.required("target", restore.target, form::named_by(documents));
    fields.required("timeout_ns", options.timeout, form::kNanoseconds);
    fields.required("window", options.window, form::kWindow);
  };
}

// Writes the options of the protocol that they are of.
// The protocol's name is a field of the header, beside the options: a reader needs it first, to know which form to
// read.
struct OptionsWriter {
  DocumentNamer& namer;

  void write(JsonWriter& out, const RecordedOptions& options) const {
    std::visit(Overloaded{
                   [&](const ParticipantRecord& each) { write_fields(out, each, participant_options(namer)); },
                   [&](const CoordinatorRecord& each) { write_fields(out, each, coordinator_options(namer)); },
                   [&](const UploadRecord& each) { write_fields(out, each, upload_options(namer)); },
                   [&](const RestoreRecord& each) { write_fields(out, each, restore_options(namer)); },
               },
               options);
  }
};

}  // namespace

std::optional<CoordinatorRecord> record_of(const CoordinatorOptions& options) {
  const auto* planner = dynamic_cast<const KvTransferPlanner*>(options.planner.get());
  if (planner == nullptr) return std::nullopt;
  return CoordinatorRecord{options, planner->transfer()};
}

std::optional<UploadRecord> record_of(const UploadOptions& options) {
  const auto* planner = dynamic_cast<const KvUploadPlanner*>(options.planner.get());
  if (planner == nullptr) return std::nullopt;
  return UploadRecord{options, planner->upload()};
}

std::optional<RestoreRecord> record_of(const RestoreOptions& options) {
  const auto* planner = dynamic_cast<const KvRestorePlanner*>(options.planner.get());
  if (planner == nullptr) return std::nullopt;
  return RestoreRecord{options, planner->restore()};
}

std::string_view protocol_name(const RecordedOptions& options) {
  return std::visit(Overloaded{
                        [](const ParticipantRecord& record) -> std::string_view {
                          return record.role == Role::kSource ? "writer" : "target";
                        },
                        [](const CoordinatorRecord&) -> std::string_view { return "coordinator"; },
                        [](const UploadRecord&) -> std::string_view { return "upload"; },
                        [](const RestoreRecord&) -> std::string_view { return "restore"; },
                    },
                    options);
}

bool is_protocol_name(std::string_view name) {
  return std::find(kProtocolNames.begin(), kProtocolNames.end(), name) != kProtocolNames.end();
}

std::string header_text(const RecordedOptions& options, DocumentNamer& namer) {
  JsonWriter out;
  write_fields(out, options, [&namer](FieldWriter& fields, const RecordedOptions& each) {
    fields.header(kRecordingSchema);
    fields.required("options", each, OptionsWriter{namer});
    fields.required("protocol", std::string(protocol_name(each)), form::kString);
  });
  return out.take();
}

// The caller has checked the name: a header comes from outside.
RecordedOptions decode_options(const JsonCursor& cursor, std::string_view protocol, KnownDocuments& documents) {
  CHECK(is_protocol_name(protocol));
  RecordedOptions options;
  if (protocol == "writer" || protocol == "target") {
    auto& record = options.emplace<ParticipantRecord>();
    record.role = protocol == "writer" ? Role::kSource : Role::kTarget;
    read_fields(cursor, record, participant_options(documents));
  }
  if (protocol == "coordinator")
    read_fields(cursor, options.emplace<CoordinatorRecord>(), coordinator_options(documents));
  if (protocol == "upload") read_fields(cursor, options.emplace<UploadRecord>(), upload_options(documents));
  if (protocol == "restore") read_fields(cursor, options.emplace<RestoreRecord>(), restore_options(documents));
  return options;
}

std::optional<std::string> abort_request_of(const Protocol& protocol) {
  if (const auto* coordinator = dynamic_cast<const Coordinator*>(&protocol)) return coordinator->abort_request();
  if (const auto* upload = dynamic_cast<const Upload*>(&protocol)) return upload->abort_request();
  if (const auto* restore = dynamic_cast<const Restore*>(&protocol)) return restore->abort_request();
  return std::nullopt;
}

bool request_abort(Protocol& protocol, const std::string& reason) {
  if (auto* coordinator = dynamic_cast<Coordinator*>(&protocol)) return coordinator->request_abort(reason), true;
  if (auto* upload = dynamic_cast<Upload*>(&protocol)) return upload->request_abort(reason), true;
  if (auto* restore = dynamic_cast<Restore*>(&protocol)) return restore->request_abort(reason), true;
  return false;
}

// A new planner without a shared cache: what a job holds does not depend on the cache, so the replay makes the same
// one.
std::unique_ptr<Protocol> make_protocol(const RecordedOptions& options) {
  return std::visit(Overloaded{
                        [](const ParticipantRecord& record) -> std::unique_ptr<Protocol> {
                          if (record.role == Role::kSource) return std::make_unique<Writer>(record.options);
                          return std::make_unique<Target>(record.options);
                        },
                        [](const CoordinatorRecord& record) -> std::unique_ptr<Protocol> {
                          CoordinatorOptions own = record.options;
                          own.planner = std::make_shared<const KvTransferPlanner>(record.transfer);
                          return std::make_unique<Coordinator>(std::move(own));
                        },
                        [](const UploadRecord& record) -> std::unique_ptr<Protocol> {
                          UploadOptions own = record.options;
                          own.planner = std::make_shared<const KvUploadPlanner>(record.upload);
                          return std::make_unique<Upload>(std::move(own));
                        },
                        [](const RestoreRecord& record) -> std::unique_ptr<Protocol> {
                          RestoreOptions own = record.options;
                          own.planner = std::make_shared<const KvRestorePlanner>(record.restore);
                          return std::make_unique<Restore>(std::move(own));
                        },
                    },
                    options);
}

}  // namespace crossdock
