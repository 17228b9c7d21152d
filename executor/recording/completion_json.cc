#include "executor/recording/completion_json.h"

#include "executor/recording/message_json.h"
#include "executor/recording/values_json.h"

// One description of each value serves reading and writing (model/wire/describe.h). Everything that a protocol may see
// of a completion is written, since a replay feeds it the same values (I7). The forms are templates over the documents:
// KnownDocuments to read, DocumentNamer to write; both are instantiated below.
namespace crossdock {
namespace {

// In the order of Completion::result.
constexpr std::array<std::string_view, 9> kResultKinds = {"nothing",  "receipt", "transaction", "found", "report",
                                                          "checksum", "message", "binding",     "grant"};
static_assert(kResultKinds.size() == std::variant_size_v<CompletionResult::Variant>);
constexpr std::array<std::string_view, 3> kPhaseNames = {"open", "committed", "aborted"};

}  // namespace

std::string_view result_kind(const CompletionResult& result) { return kResultKinds[result.index()]; }

namespace form {
namespace {

// Fields of each form are in the order of their names, as canonical text has them.
constexpr auto kPutReceipt = [](auto& fields, auto& receipt) {
  fields.required("bytes", receipt.bytes, number());
  fields.required("object", receipt.object, kText);
  fields.optional("stored", receipt.stored, kStoredObject);
  fields.required("txn", receipt.txn, kText);
  fields.required("writer", receipt.writer, kText);
};

constexpr auto kTransaction = [](auto& fields, auto& state) {
  fields.required("phase", state.phase, choice<TxnPhase>(kPhaseNames));
  fields.required("reason", state.reason, kText);
  fields.optional("sequence", state.sequence, number());
  fields.required("txn", state.txn, kText);
};

constexpr auto kFoundObject = object([](auto& fields, auto& found) {
  fields.required("number", found.number, number());
  fields.required("object", found.object, kStoredObject);
});

constexpr auto kReport = [](auto& fields, auto& report) {
  fields.required("bytes", report.bytes, number());
  fields.required("bytes_read", report.bytes_read, number());
  fields.required("chunks_read", report.chunks_read, number());
};

constexpr auto kChecksum = [](auto& fields, auto& checksum) { fields.required("crc32c", checksum.crc32c, kUint32); };

template <class Documents>
// A manifest is there for a snapshot and absent for pages, whose keys are then in `pages`.
auto found_with(Documents& documents) {
  return [&documents](auto& fields, auto& found) {
    fields.required("lease", found.lease, number());
    fields.required("lease_end_ns", found.lease_end, kNanoseconds);
    fields.given("manifest", found.manifest != nullptr, found.manifest, named_by(documents));
    fields.required("objects", found.objects, list_of(kFoundObject));
    fields.required("pages", found.pages, list_of(kPageObjectKey));
  };
}

template <class Documents>
auto result_with(Documents& documents) {
  return object([&documents](auto& fields, auto& result) {
    const auto message = [&documents](auto& inside, auto& received) {
      inside.required("message", received, message_with(documents));
    };
    const auto binding = [&documents](auto& inside, auto& answer) {
      inside.given("binding", answer != nullptr, answer, named_by(documents));
    };
    const auto granted = [](auto& inside, auto& answer) { inside.required("grant", answer, kGrant); };
    describe_variant(
        fields, result, alternative<PutReceipt>(kResultKinds[1], kPutReceipt),
        alternative<TxnState>(kResultKinds[2], kTransaction),
        alternative<Found>(kResultKinds[3], found_with(documents)), alternative<GetReport>(kResultKinds[4], kReport),
        alternative<StepsChecksum>(kResultKinds[5], kChecksum), alternative<Message>(kResultKinds[6], message),
        alternative<AnyBinding>(kResultKinds[7], binding), alternative<Grant>(kResultKinds[8], granted));
  });
}

template <class Documents>
auto completion_fields(Documents& documents) {
  return [&documents](auto& fields, auto& completion) {
    // An absent field is "nothing"; no alternative of its own is written for it.
    const bool has_result = !std::holds_alternative<std::monostate>(completion.result);
    fields.required("op", completion.op, number());
    fields.required("posted", completion.posted, kBoolean);
    fields.given("result", has_result, completion.result, result_with(documents));
    fields.required("status", completion.status, kStatus);
  };
}

}  // namespace

template <class Documents>
void CompletionForm<Documents>::read(const JsonCursor& cursor, Completion& completion) const {
  read_fields(cursor, completion, completion_fields(documents));
}

template <class Documents>
void CompletionForm<Documents>::write(JsonWriter& out, const Completion& completion) const {
  write_fields(out, completion, completion_fields(documents));
}

template void CompletionForm<KnownDocuments>::read(const JsonCursor&, Completion&) const;
template void CompletionForm<DocumentNamer>::write(JsonWriter&, const Completion&) const;

}  // namespace form
}  // namespace crossdock
