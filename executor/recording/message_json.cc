#include "executor/recording/message_json.h"

#include "executor/recording/values_json.h"

// Jobs and bindings are named by digest: each is in a line of its own, once, however often its message was repeated.
namespace crossdock::form {
namespace {

// Fields of each form are in the order of their names, as canonical text has them.
constexpr auto kReceipt = [](auto& fields, auto& body) {
  fields.required("bytes", body.bytes, number());
  fields.required("crc32c", body.crc32c, kUint32);
  fields.required("job", body.job, kDigest);
  fields.required("target", body.target, kIdentity);
};

constexpr auto kGrant = [](auto& fields, auto& body) {
  fields.required("grant", body.grant, form::kGrant);
  fields.required("job", body.job, kDigest);
  fields.required("writer", body.writer, kIdentity);
};

constexpr auto kFailure = [](auto& fields, auto& body) {
  fields.required("cause", body.cause, kStatus);
  fields.required("role", body.role, kRole);
  fields.required("waited", body.waited, kBoolean);
};

constexpr auto kReady = [](auto& fields, auto& body) {
  fields.required("bytes", body.bytes, number());
  fields.required("job", body.job, kDigest);
};

constexpr auto kDecision = [](auto& fields, auto& body) {
  fields.required("activate", body.activate, kBoolean);
  fields.required("reason", body.reason, kText);
  fields.required("reply_to", body.reply_to, kText);
};

constexpr auto kDone = [](auto& fields, auto& body) {
  fields.required("pages", body.pages, choice<PagesEnd>(kPagesEndNames));
  fields.required("role", body.role, kRole);
};

constexpr auto kQuery = [](auto& fields, auto& body) { fields.required("reply_to", body.reply_to, kText); };

constexpr auto kKnown = [](auto& fields, auto& body) {
  fields.required("decision", body.decision, object(kDecision));
  fields.optional("done", body.done, object(kDone));
  fields.optional("failure", body.failure, kStatus);
  fields.required("is_decided", body.is_decided, kBoolean);
  fields.required("role", body.role, kRole);
};

constexpr auto kAck = [](auto& fields, auto& body) {
  fields.required("of", body.kind, kText);
  fields.required("role", body.role, kRole);
  fields.required("sender", body.sender, kIdentity);
};

// The kinds in the order of Message::body.
template <class Documents>
auto body_with(Documents& documents) {
  return object([&documents](auto& fields, auto& body) {
    const auto export_body = [&documents](auto& inside, auto& sent) {
      inside.given("binding", sent.binding != nullptr, sent.binding, named_by(documents));
      inside.required("role", sent.role, kRole);
    };
    const auto job_body = [&documents](auto& inside, auto& sent) {
      inside.required("job", sent.job, named_by(documents));
    };
    describe_variant(
        fields, body, alternative<ExportBody>(kMessageKinds[0], export_body),
        alternative<JobBody>(kMessageKinds[1], job_body), alternative<GrantBody>(kMessageKinds[2], kGrant),
        alternative<WriterReceipt>(kMessageKinds[3], kReceipt), alternative<FailureBody>(kMessageKinds[4], kFailure),
        alternative<ReadyBody>(kMessageKinds[5], kReady), alternative<DecisionBody>(kMessageKinds[6], kDecision),
        alternative<DoneBody>(kMessageKinds[7], kDone), alternative<QueryBody>(kMessageKinds[8], kQuery),
        alternative<KnownBody>(kMessageKinds[9], kKnown), alternative<AckBody>(kMessageKinds[10], kAck));
  });
}

template <class Documents>
auto message_fields(Documents& documents) {
  return [&documents](auto& fields, auto& message) {
    fields.required("attempt", message.attempt, kText);
    fields.required("body", message.body, body_with(documents));
    fields.required("identity", message.identity, kIdentity);
    fields.required("operation", message.operation, kText);
  };
}

}  // namespace

template <class Documents>
void MessageForm<Documents>::read(const JsonCursor& cursor, Message& message) const {
  read_fields(cursor, message, message_fields(documents));
}

template <class Documents>
void MessageForm<Documents>::write(JsonWriter& out, const Message& message) const {
  write_fields(out, message, message_fields(documents));
}

template void MessageForm<KnownDocuments>::read(const JsonCursor&, Message&) const;
template void MessageForm<DocumentNamer>::write(JsonWriter&, const Message&) const;

}  // namespace crossdock::form
