#include "executor/recording/completion_json.h"

#include "base/overloaded.h"
#include "executor/recording/message_json.h"
#include "executor/recording/values_json.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr std::array<std::string_view, 8> kResultKinds = {"nothing", "receipt",  "transaction", "found",
                                                          "report",  "checksum", "message",     "binding"};
static_assert(kResultKinds.size() == std::variant_size_v<decltype(Completion::result)>);
constexpr std::array<std::string_view, 3> kPhaseNames = {"open", "committed", "aborted"};

void encode_receipt(JsonWriter& out, const PutReceipt& receipt) {
  out.key("bytes").number(receipt.bytes);
  out.key("kind").string("receipt");
  out.key("object");
  encode_text(out, receipt.object.text());
  out.key("path_quiet").boolean(receipt.path_quiet);
  if (receipt.stored) {
    out.key("stored");
    encode_stored_object(out, *receipt.stored);
  }
  out.key("txn");
  encode_text(out, receipt.txn.text());
  out.key("writer");
  encode_text(out, receipt.writer);
}

PutReceipt decode_receipt(ObjectReader& in) {
  PutReceipt receipt;
  receipt.bytes = in.number("bytes");
  receipt.object = RegionId(text_field(in, "object"));
  receipt.path_quiet = bool_field(in, "path_quiet");
  in.optional("stored", [&](const JsonCursor& stored) { receipt.stored = decode_stored_object(stored); });
  receipt.txn = TxnId(text_field(in, "txn"));
  receipt.writer = text_field(in, "writer");
  return receipt;
}

void encode_transaction(JsonWriter& out, const TxnState& state) {
  out.key("kind").string("transaction");
  out.key("phase").string(enum_name(state.phase, kPhaseNames));
  out.key("reason");
  encode_text(out, state.reason);
  if (state.sequence) out.key("sequence").number(*state.sequence);
  out.key("txn");
  encode_text(out, state.txn.text());
}

TxnState decode_transaction(ObjectReader& in) {
  TxnState state;
  state.phase = enum_field<TxnPhase>(in, "phase", kPhaseNames);
  state.reason = text_field(in, "reason");
  state.sequence = in.optional_number("sequence");
  state.txn = TxnId(text_field(in, "txn"));
  return state;
}

void encode_found_object(JsonWriter& out, const FoundObject& found) {
  out.begin_object();
  out.key("number").number(found.number.value());
  out.key("object");
  encode_stored_object(out, found.object);
  out.end_object();
}

FoundObject decode_found_object(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  FoundObject found;
  found.number = ObjectNumber(in.number("number"));
  in.required("object", [&](const JsonCursor& object) { found.object = decode_stored_object(object); });
  in.finish();
  return found;
}

void encode_found(JsonWriter& out, const Found& found, DocumentNamer& namer) {
  out.key("kind").string("found");
  out.key("lease").number(found.lease.value());
  out.key("lease_end_ns");
  encode_ns(out, found.lease_end.ns());
  if (found.manifest != nullptr) out.key("manifest").string(namer.name(found.manifest).hex());
  out.key("objects");
  encode_list(out, found.objects, encode_found_object);
  out.key("pages");
  encode_list(out, found.pages, encode_page_object_key);
}

Found decode_found(ObjectReader& in, KnownDocuments& documents) {
  Found found;
  found.lease = LeaseId(in.number("lease"));
  found.lease_end = TimePoint::from_ns(ns_field(in, "lease_end_ns"));
  in.optional("manifest", [&](const JsonCursor& digest) {
    if (const auto manifest = documents.find<StoreManifest>(digest.digest())) found.manifest = AnyManifest(manifest);
  });
  in.required("objects", [&](const JsonCursor& list) { found.objects = decode_list(list, decode_found_object); });
  in.required("pages", [&](const JsonCursor& list) { found.pages = decode_list(list, decode_page_object_key); });
  return found;
}

void encode_report(JsonWriter& out, const GetReport& report) {
  out.key("bytes").number(report.bytes);
  out.key("bytes_read").number(report.bytes_read);
  out.key("chunks_read").number(report.chunks_read);
  out.key("kind").string("report");
}

GetReport decode_report(ObjectReader& in) {
  GetReport report;
  report.bytes = in.number("bytes");
  report.bytes_read = in.number("bytes_read");
  report.chunks_read = in.number("chunks_read");
  return report;
}

void encode_result(JsonWriter& out, const decltype(Completion::result)& result, DocumentNamer& namer) {
  out.begin_object();
  std::visit(Overloaded{
                 [&](std::monostate) { CHECK(false); },  // nothing is not written
                 [&](const PutReceipt& receipt) { encode_receipt(out, receipt); },
                 [&](const TxnState& state) { encode_transaction(out, state); },
                 [&](const Found& found) { encode_found(out, found, namer); },
                 [&](const GetReport& report) { encode_report(out, report); },
                 [&](const StepsChecksum& checksum) {
                   out.key("crc32c").number(checksum.crc32c);
                   out.key("kind").string("checksum");
                 },
                 [&](const Message& message) {
                   out.key("kind").string("message");
                   out.key("message");
                   encode_message(out, message, namer);
                 },
                 [&](const AnyBinding& binding) {
                   if (binding != nullptr) out.key("binding").string(namer.name(binding).hex());
                   out.key("kind").string("binding");
                 },
             },
             result);
  out.end_object();
}

decltype(Completion::result) decode_result(const JsonCursor& cursor, KnownDocuments& documents) {
  ObjectReader in(cursor);
  decltype(Completion::result) result;
  const std::string kind =
      in.choice("kind", std::vector<std::string_view>(kResultKinds.begin() + 1, kResultKinds.end()));
  if (kind == "receipt") result = decode_receipt(in);
  if (kind == "transaction") result = decode_transaction(in);
  if (kind == "found") result = decode_found(in, documents);
  if (kind == "report") result = decode_report(in);
  if (kind == "checksum") result = StepsChecksum{uint32_field(in, "crc32c")};
  if (kind == "message")
    in.required("message", [&](const JsonCursor& message) { result = decode_message(message, documents); });
  if (kind == "binding") {
    AnyBinding binding;
    in.optional("binding",
                [&](const JsonCursor& digest) { binding = documents.find<RuntimeBinding>(digest.digest()); });
    result = std::move(binding);
  }
  in.finish();
  return result;
}

}  // namespace

std::string_view result_kind(const decltype(Completion::result)& result) { return kResultKinds[result.index()]; }

void encode_completion(JsonWriter& out, const Completion& completion, DocumentNamer& namer) {
  out.begin_object();
  out.key("op").number(completion.op.value());
  out.key("posted").boolean(completion.posted);
  if (!std::holds_alternative<std::monostate>(completion.result)) {
    out.key("result");
    encode_result(out, completion.result, namer);
  }
  out.key("status");
  encode_status(out, completion.status);
  out.end_object();
}

Completion decode_completion(const JsonCursor& cursor, KnownDocuments& documents) {
  ObjectReader in(cursor);
  Completion completion;
  completion.op = OpId(in.number("op"));
  completion.posted = bool_field(in, "posted");
  in.optional("result", [&](const JsonCursor& result) { completion.result = decode_result(result, documents); });
  in.required("status", [&](const JsonCursor& status) { completion.status = decode_status(status); });
  in.finish();
  return completion;
}

}  // namespace crossdock
