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
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr std::array<std::string_view, 5> kProtocolNames = {"coordinator", "restore", "target", "upload", "writer"};

void encode_field(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  encode_text(out, text);
}

void encode_duration(JsonWriter& out, std::string_view name, Duration duration) {
  out.key(name);
  encode_ns(out, duration.ns());
}

void encode_participants(JsonWriter& out, const std::vector<ParticipantId>& participants) {
  encode_list(out, participants, [](JsonWriter& list, const ParticipantId& each) { encode_text(list, each.text()); });
}

std::vector<ParticipantId> participants_field(ObjectReader& in) {
  std::vector<ParticipantId> participants;
  in.required("participants", [&](const JsonCursor& list) {
    participants = decode_list(list, [](const JsonCursor& each) { return ParticipantId(decode_text(each)); });
  });
  return participants;
}

void encode_addresses(JsonWriter& out, const std::vector<PeerAddress>& addresses) {
  encode_list(out, addresses, [](JsonWriter& list, const PeerAddress& each) {
    list.begin_object();
    encode_field(list, "participant", each.participant.text());
    encode_field(list, "peer", each.peer.text());
    list.end_object();
  });
}

std::vector<PeerAddress> addresses_field(ObjectReader& in, std::string_view name) {
  std::vector<PeerAddress> addresses;
  in.required(name, [&](const JsonCursor& list) {
    addresses = decode_list(list, [](const JsonCursor& cursor) {
      ObjectReader fields(cursor);
      PeerAddress address{ParticipantId(text_field(fields, "participant")), PeerId(text_field(fields, "peer"))};
      fields.finish();
      return address;
    });
  });
  return addresses;
}

void encode_context(JsonWriter& out, const KvTransfer& context, DocumentNamer& namer) {
  out.begin_object();
  out.key("documents");
  encode_transfer_documents(out, context.documents, namer);
  out.key("lower");
  encode_lower(out, context.lower);
  out.key("plan");
  encode_plan_options(out, context.plan);
  out.end_object();
}

KvTransfer context_field(ObjectReader& in, KnownDocuments& documents) {
  KvTransfer context;
  in.required("job", [&](const JsonCursor& cursor) {
    ObjectReader fields(cursor);
    context.documents = transfer_documents_field(fields, "documents", documents);
    context.lower = lower_field(fields, "lower");
    context.plan = plan_options_field(fields, "plan");
    fields.finish();
  });
  return context;
}

void encode_options(JsonWriter& out, const ParticipantRecord& record, DocumentNamer& namer) {
  const ParticipantOptions& options = record.options;
  out.key("batch");
  encode_batch(out, options.batch);
  encode_field(out, "coordinator", options.coordinator.text());
  encode_duration(out, "decision_wait_ns", options.decision_wait);
  encode_duration(out, "drain_ns", options.drain);
  out.key("job");
  encode_context(out, record.context, namer);
  encode_duration(out, "linger_ns", options.linger);
  encode_field(out, "operation", options.operation.text());
  encode_field(out, "participant", options.participant.text());
  out.key("resend");
  encode_retry(out, options.resend);
  out.key("retry");
  encode_retry(out, options.retry);
  out.key("seed").number(options.seed);
  out.key("split");
  encode_split(out, options.split);
  encode_duration(out, "timeout_ns", options.timeout);
  out.key("window");
  encode_window(out, options.window);
}

ParticipantRecord decode_participant(ObjectReader& in, Role role, KnownDocuments& documents) {
  ParticipantRecord record;
  record.role = role;
  ParticipantOptions& options = record.options;
  options.batch = batch_field(in, "batch");
  options.coordinator = PeerId(text_field(in, "coordinator"));
  options.decision_wait = duration_field(in, "decision_wait_ns");
  options.drain = duration_field(in, "drain_ns");
  record.context = context_field(in, documents);
  options.linger = duration_field(in, "linger_ns");
  options.operation = OperationId(text_field(in, "operation"));
  options.participant = ParticipantId(text_field(in, "participant"));
  options.resend = retry_field(in, "resend");
  options.retry = retry_field(in, "retry");
  options.seed = in.number("seed");
  options.split = split_field(in, "split");
  options.timeout = duration_field(in, "timeout_ns");
  options.window = window_field(in, "window");
  return record;
}

void encode_options(JsonWriter& out, const CoordinatorRecord& record, DocumentNamer& namer) {
  const CoordinatorOptions& options = record.options;
  out.key("checksum").boolean(options.checksum);
  encode_duration(out, "done_wait_ns", options.done_wait);
  out.key("job");
  encode_context(out, record.transfer, namer);
  encode_field(out, "operation", options.operation.text());
  encode_duration(out, "report_wait_ns", options.report_wait);
  out.key("resend");
  encode_retry(out, options.resend);
  out.key("seed").number(options.seed);
  out.key("sources");
  encode_addresses(out, options.sources);
  out.key("targets");
  encode_addresses(out, options.targets);
  encode_duration(out, "timeout_ns", options.timeout);
}

CoordinatorRecord decode_coordinator(ObjectReader& in, KnownDocuments& documents) {
  CoordinatorRecord record;
  CoordinatorOptions& options = record.options;
  options.checksum = bool_field(in, "checksum");
  options.done_wait = duration_field(in, "done_wait_ns");
  record.transfer = context_field(in, documents);
  options.operation = OperationId(text_field(in, "operation"));
  options.report_wait = duration_field(in, "report_wait_ns");
  options.resend = retry_field(in, "resend");
  options.seed = in.number("seed");
  options.sources = addresses_field(in, "sources");
  options.targets = addresses_field(in, "targets");
  options.timeout = duration_field(in, "timeout_ns");
  return record;
}

void encode_upload_what(JsonWriter& out, const UploadRecord& record, DocumentNamer& namer) {
  const UploadOptions& options = record.options;
  const KvUpload& upload = record.upload;
  out.begin_object();
  out.key("layout").string(namer.name(upload.documents.layout).hex());
  if (upload.page_keys) {
    out.key("page_keys");
    encode_page_keys(out, *upload.page_keys);
  }
  out.key("snapshot").string(namer.name(upload.documents.snapshot).hex());
  out.key("source").string(namer.name(upload.documents.source).hex());
  if (options.ttl) encode_duration(out, "ttl_ns", *options.ttl);
  out.end_object();
}

void upload_what_field(ObjectReader& in, UploadRecord& record, KnownDocuments& documents) {
  KvUpload& upload = record.upload;
  in.required("what", [&](const JsonCursor& cursor) {
    ObjectReader fields(cursor);
    upload.documents.layout = documents.find<StoreLayout>(fields.digest("layout"));
    fields.optional("page_keys", [&](const JsonCursor& list) { upload.page_keys = decode_page_keys(list); });
    upload.documents.snapshot = documents.find<SnapshotDescriptor>(fields.digest("snapshot"));
    upload.documents.source = documents.find<PlacementManifest>(fields.digest("source"));
    fields.optional("ttl_ns", [&](const JsonCursor& ttl) { record.options.ttl = Duration::from_ns(decode_ns(ttl)); });
    fields.finish();
  });
}

void encode_options(JsonWriter& out, const UploadRecord& record, DocumentNamer& namer) {
  const UploadOptions& options = record.options;
  encode_duration(out, "drain_ns", options.drain);
  encode_duration(out, "lease_ns", options.lease);
  out.key("lower");
  encode_lower(out, record.upload.lower);
  out.key("participants");
  encode_participants(out, options.participants);
  out.key("plan");
  encode_plan_options(out, record.upload.plan);
  out.key("put_round_count_max").number(options.put_round_count_max);
  out.key("retry");
  encode_retry(out, options.retry);
  out.key("seed").number(options.seed);
  encode_field(out, "tenant", options.tenant);
  encode_duration(out, "timeout_ns", options.timeout);
  encode_field(out, "txn", options.txn.text());
  out.key("what");
  encode_upload_what(out, record, namer);
  out.key("window");
  encode_window(out, options.window);
}

UploadRecord decode_upload(ObjectReader& in, KnownDocuments& documents) {
  UploadRecord record;
  UploadOptions& options = record.options;
  options.drain = duration_field(in, "drain_ns");
  options.lease = duration_field(in, "lease_ns");
  record.upload.lower = lower_field(in, "lower");
  options.participants = participants_field(in);
  record.upload.plan = plan_options_field(in, "plan");
  options.put_round_count_max = uint32_field(in, "put_round_count_max");
  options.retry = retry_field(in, "retry");
  options.seed = in.number("seed");
  options.tenant = text_field(in, "tenant");
  options.timeout = duration_field(in, "timeout_ns");
  options.txn = TxnId(text_field(in, "txn"));
  upload_what_field(in, record, documents);
  options.window = window_field(in, "window");
  return record;
}

void encode_options(JsonWriter& out, const RestoreRecord& record, DocumentNamer& namer) {
  const RestoreOptions& options = record.options;
  const KvRestore& restore = record.restore;
  encode_duration(out, "drain_ns", options.drain);
  out.key("get_bytes_max").number(restore.limits.get_bytes_max);
  out.key("lease").begin_object();
  encode_duration(out, "duration_ns", options.lease.duration);
  encode_field(out, "holder", options.lease.holder);
  out.end_object();
  out.key("lower");
  encode_lower(out, restore.lower);
  encode_field(out, "operation", options.operation.text());
  out.key("participants");
  encode_participants(out, options.participants);
  out.key("plan");
  encode_plan_options(out, restore.plan);
  const auto* prefix = std::get_if<std::shared_ptr<const PrefixRestore>>(&restore.what);
  if (prefix != nullptr) {
    out.key("prefix");
    encode_prefix(out, **prefix, namer);
  }
  out.key("retry");
  encode_retry(out, options.retry);
  out.key("seed").number(options.seed);
  if (prefix == nullptr) out.key("snapshot").string(std::get<SnapshotId>(restore.what).hex());
  out.key("target").string(namer.name(restore.target).hex());
  encode_duration(out, "timeout_ns", options.timeout);
  out.key("window");
  encode_window(out, options.window);
}

RestoreRecord decode_restore(const JsonCursor& cursor, ObjectReader& in, KnownDocuments& documents) {
  RestoreRecord record;
  RestoreOptions& options = record.options;
  KvRestore& restore = record.restore;
  options.drain = duration_field(in, "drain_ns");
  restore.limits.get_bytes_max = in.number("get_bytes_max");
  in.required("lease", [&](const JsonCursor& lease) {
    ObjectReader fields(lease);
    options.lease.duration = duration_field(fields, "duration_ns");
    options.lease.holder = text_field(fields, "holder");
    fields.finish();
  });
  restore.lower = lower_field(in, "lower");
  options.operation = OperationId(text_field(in, "operation"));
  options.participants = participants_field(in);
  restore.plan = plan_options_field(in, "plan");
  int what_count = 0;
  in.optional("prefix", [&](const JsonCursor& prefix) {
    restore.what = decode_prefix(prefix, documents);
    ++what_count;
  });
  options.retry = retry_field(in, "retry");
  options.seed = in.number("seed");
  in.optional("snapshot", [&](const JsonCursor& snapshot) {
    restore.what = snapshot.digest();
    ++what_count;
  });
  if (what_count != 1) cursor.refuse(Rule::kFieldMissing, "one of 'prefix' and 'snapshot' says what is restored");
  restore.target = documents.find<PlacementManifest>(in.digest("target"));
  options.timeout = duration_field(in, "timeout_ns");
  options.window = window_field(in, "window");
  return record;
}

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
  out.begin_object();
  out.key("options").begin_object();
  std::visit([&](const auto& each) { encode_options(out, each, namer); }, options);
  out.end_object();
  out.key("protocol").string(protocol_name(options));
  encode_schema(out, kRecordingSchema, true);
  encode_version(out, true);
  out.end_object();
  return out.take();
}

RecordedOptions decode_options(const JsonCursor& cursor, std::string_view protocol, KnownDocuments& documents) {
  CHECK(is_protocol_name(protocol));
  ObjectReader in(cursor);
  RecordedOptions options;
  if (protocol == "writer") options = decode_participant(in, Role::kSource, documents);
  if (protocol == "target") options = decode_participant(in, Role::kTarget, documents);
  if (protocol == "coordinator") options = decode_coordinator(in, documents);
  if (protocol == "upload") options = decode_upload(in, documents);
  if (protocol == "restore") options = decode_restore(cursor, in, documents);
  in.finish();
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
