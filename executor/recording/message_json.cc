#include "executor/recording/message_json.h"

#include "base/overloaded.h"
#include "executor/recording/values_json.h"

namespace crossdock {
namespace {

void encode_role(JsonWriter& out, Role role) { out.key("role").string(enum_name(role, kRoleNames)); }

// The fields of one kind; `kind` among them, at its place in the sorted order.
void encode_fields(JsonWriter& out, const Message& message, std::string_view kind, DocumentNamer& namer) {
  std::visit(Overloaded{
                 [&](const ExportBody& body) {
                   if (body.binding != nullptr) out.key("binding").string(namer.name(body.binding).hex());
                   out.key("kind").string(kind);
                   encode_role(out, body.role);
                 },
                 [&](const JobBody& body) {
                   CHECK(body.job != nullptr);
                   out.key("job").string(namer.name(body.job).hex());
                   out.key("kind").string(kind);
                 },
                 [&](const WriterReceipt& body) {
                   out.key("bytes").number(body.bytes);
                   out.key("crc32c").number(body.crc32c);
                   out.key("kind").string(kind);
                   out.key("path_quiet").boolean(body.path_quiet);
                   out.key("target");
                   encode_identity(out, body.target);
                 },
                 [&](const FailureBody& body) {
                   out.key("cause");
                   encode_status(out, body.cause);
                   out.key("kind").string(kind);
                   encode_role(out, body.role);
                 },
                 [&](const ReadyBody& body) {
                   out.key("bytes").number(body.bytes);
                   out.key("kind").string(kind);
                 },
                 [&](const DecisionBody& body) {
                   out.key("activate").boolean(body.activate);
                   out.key("kind").string(kind);
                   out.key("reason");
                   encode_text(out, body.reason);
                 },
                 [&](const DoneBody& body) {
                   out.key("activated").boolean(body.activated);
                   out.key("kind").string(kind);
                   encode_role(out, body.role);
                 },
             },
             message.body);
}

Role role_field(ObjectReader& in) { return enum_field<Role>(in, "role", kRoleNames); }

ExportBody decode_export(ObjectReader& in, KnownDocuments& documents) {
  ExportBody body;
  in.optional("binding",
              [&](const JsonCursor& digest) { body.binding = documents.find<RuntimeBinding>(digest.digest()); });
  body.role = role_field(in);
  return body;
}

WriterReceipt decode_receipt(ObjectReader& in) {
  WriterReceipt body;
  body.bytes = in.number("bytes");
  body.crc32c = uint32_field(in, "crc32c");
  body.path_quiet = bool_field(in, "path_quiet");
  in.required("target", [&](const JsonCursor& target) { body.target = decode_identity(target); });
  return body;
}

FailureBody decode_failure(ObjectReader& in) {
  FailureBody body;
  in.required("cause", [&](const JsonCursor& cause) { body.cause = decode_status(cause); });
  body.role = role_field(in);
  return body;
}

DecisionBody decode_decision(ObjectReader& in) {
  DecisionBody body;
  body.activate = bool_field(in, "activate");
  body.reason = text_field(in, "reason");
  return body;
}

DoneBody decode_done(ObjectReader& in) {
  DoneBody body;
  body.activated = bool_field(in, "activated");
  body.role = role_field(in);
  return body;
}

decltype(Message::body) decode_body(const JsonCursor& cursor, KnownDocuments& documents) {
  ObjectReader in(cursor);
  decltype(Message::body) body;
  const std::string kind = in.choice("kind", std::vector<std::string_view>(kMessageKinds.begin(), kMessageKinds.end()));
  if (kind == "export") body = decode_export(in, documents);
  if (kind == "job") body = JobBody{documents.find_job(in.digest("job"))};
  if (kind == "receipt") body = decode_receipt(in);
  if (kind == "failure") body = decode_failure(in);
  if (kind == "ready") body = ReadyBody{in.number("bytes")};
  if (kind == "decision") body = decode_decision(in);
  if (kind == "done") body = decode_done(in);
  in.finish();
  return body;
}

}  // namespace

void encode_message(JsonWriter& out, const Message& message, DocumentNamer& namer) {
  out.begin_object();
  out.key("body").begin_object();
  encode_fields(out, message, message.kind(), namer);
  out.end_object();
  out.key("identity");
  encode_identity(out, message.identity);
  out.key("operation");
  encode_text(out, message.operation.text());
  out.end_object();
}

Message decode_message(const JsonCursor& cursor, KnownDocuments& documents) {
  ObjectReader in(cursor);
  Message message;
  in.required("body", [&](const JsonCursor& body) { message.body = decode_body(body, documents); });
  in.required("identity", [&](const JsonCursor& identity) { message.identity = decode_identity(identity); });
  message.operation = OperationId(text_field(in, "operation"));
  in.finish();
  return message;
}

}  // namespace crossdock
