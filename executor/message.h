// Control messages between the participants of one transfer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "executor/grant.h"
#include "executor/ids.h"
#include "model/any_binding.h"

namespace crossdock {

struct TransferJob;  // executor/transfer_job.h

// The sender: one life of one process. An instance is named at random when it starts, so what an earlier life said is
// told apart from what this one says; the generation is for people, and orders lives that are heard of out of order.
// A coordinator is no participant: its generation is its term, and the highest term alone is heeded.
struct PeerIdentity {
  ParticipantId participant;  // empty: a coordinator
  InstanceId instance;
  uint64_t generation = 0;

  // "'p0-t0' (instance 'a', generation 3)"
  std::string to_text() const;

  friend auto operator<=>(const PeerIdentity&, const PeerIdentity&) = default;
};

enum class Role { kSource, kTarget };

// "source 'p0-t0'"
std::string member_text(Role role, const ParticipantId& participant);

// The first three of the names between commas, and how many more there are; empty without any.
std::string first_few(const std::vector<std::string>& names);

// Participant to coordinator: pinned or reserved, and this is where the bytes lie.
struct ExportBody {
  Role role = Role::kSource;
  AnyBinding binding;
};

// Coordinator to participant: the plan with all that it refers to. Everything later names it by its digest.
struct JobBody {
  std::shared_ptr<const TransferJob> job;
};

// Target to source: you may write what the job says.
struct GrantBody {
  Sha256Digest job;
  PeerIdentity writer;
  Grant grant;
};

// Source to target: all that this writer had to write to you has landed, and nothing of it is under way.
struct WriterReceipt {
  Sha256Digest job;
  PeerIdentity target;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the bytes in the order of the pair's steps, where the job asks for it

  friend bool operator==(const WriterReceipt&, const WriterReceipt&) = default;
};

// Participant to coordinator: it cannot be done, and why.
struct FailureBody {
  Role role = Role::kSource;
  Status cause;
  bool waited = false;  // its time was over while it waited for others: another one may be the cause
};

// Target to coordinator: every expected writer's receipt is there, writing is fenced off, the runtime agrees.
// `bytes`: what the target's writers reported together.
struct ReadyBody {
  Sha256Digest job;
  uint64_t bytes = 0;
};

// Coordinator to all participants.
struct DecisionBody {
  bool activate = false;
  std::string reason;    // of an abort
  PeerId reply_to = {};  // of a coordinator that took over
};

// Where a participant's pages are in the end.
enum class PagesEnd {
  kNone,         // none were pinned or reserved
  kReleased,     // given back
  kActive,       // a target's, in its runtime's hands
  kQuarantined,  // not given back: something may still read, write or use them
};
inline constexpr std::array<std::string_view, 4> kPagesEndNames = {"none", "released", "active", "quarantined"};

// Participant to coordinator: the decision was carried out, as far as it can be.
struct DoneBody {
  Role role = Role::kSource;
  PagesEnd pages = PagesEnd::kNone;

  friend bool operator==(const DoneBody&, const DoneBody&) = default;
};

// A coordinator that took over, to a participant: what do you know of the operation?
struct QueryBody {
  PeerId reply_to;
};

// The answer. From now on the participant heeds nothing of a coordinator with a lower term.
struct KnownBody {
  Role role = Role::kSource;
  bool is_decided = false;
  DecisionBody decision;          // where it is decided
  std::optional<DoneBody> done;   // where it was carried out
  std::optional<Status> failure;  // why it cannot be done
};

// The receiver took a message of that kind, so it need not come again. Every message but this one and the answer to a
// query is repeated until then.
struct AckBody {
  Role role = Role::kSource;  // of the participant that this is between
  std::string kind;           // of Message::kind()
  PeerIdentity sender = {};   // of what was taken: an earlier life's message was not this one's
};

// Its special members are compiled once, in message.cc, and not in each source that moves a message.
struct MessageBody : std::variant<ExportBody, JobBody, GrantBody, WriterReceipt, FailureBody, ReadyBody, DecisionBody,
                                  DoneBody, QueryBody, KnownBody, AckBody> {
  using Variant = variant;
  using Variant::Variant;
  using Variant::operator=;
  MessageBody();
  MessageBody(const MessageBody&);
  MessageBody(MessageBody&&) noexcept;
  MessageBody& operator=(const MessageBody&);
  MessageBody& operator=(MessageBody&&) noexcept;
  ~MessageBody();
};

// Repeated and doubled messages are usual: each handler must be able to take the same one twice. One of another
// operation, or of another attempt of it, counts for nothing.
struct Message {
  OperationId operation;
  AttemptId attempt;
  PeerIdentity identity;
  MessageBody body;

  // "export", "job", ...: what it is about.
  std::string_view kind() const;
};

// In the order of Message::body.
inline constexpr std::array<std::string_view, 11> kMessageKinds = {
    "export", "job", "grant", "receipt", "failure", "ready", "decision", "done", "query", "known", "ack"};
static_assert(kMessageKinds.size() == std::variant_size_v<MessageBody::Variant>);
inline std::string_view Message::kind() const { return kMessageKinds[body.index()]; }

}  // namespace crossdock
