// Control messages between the participants of one transfer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "executor/ids.h"
#include "model/any_binding.h"

namespace crossdock {

struct TransferJob;  // executor/transfer_job.h

// The sender: one life of one process. A message of an earlier life is stale and changes nothing.
struct PeerIdentity {
  ParticipantId participant;
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

// Coordinator to participant: the plan with all that it refers to.
struct JobBody {
  std::shared_ptr<const TransferJob> job;
};

// Source to target: all that this writer had to write to you has landed, and nothing of it is under way.
struct WriterReceipt {
  PeerIdentity target;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the bytes in the order of the pair's steps, where the job asks for it
  // False: writes of this writer may still be under way; no target accepts such a receipt.
  bool path_quiet = true;

  friend bool operator==(const WriterReceipt&, const WriterReceipt&) = default;
};

// Participant to coordinator: it cannot be done, and why.
struct FailureBody {
  Role role = Role::kSource;
  Status cause;
};

// Target to coordinator: every expected writer's receipt is there, writing is fenced off, the runtime agrees.
// `bytes`: what the target's writers reported together.
struct ReadyBody {
  uint64_t bytes = 0;
};

// Coordinator to all participants.
struct DecisionBody {
  bool activate = false;
  std::string reason;  // of an abort
};

// Participant to coordinator: the decision was carried out; for a target that was activated, `activated`.
struct DoneBody {
  Role role = Role::kSource;
  bool activated = false;
};

// Its special members are compiled once, in message.cc, and not in each source that moves a message.
struct MessageBody : std::variant<ExportBody, JobBody, WriterReceipt, FailureBody, ReadyBody, DecisionBody, DoneBody> {
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

// Repeated and doubled messages are usual: each handler must be able to take the same one twice.
struct Message {
  OperationId operation;
  PeerIdentity identity;  // empty from the coordinator
  MessageBody body;

  // "export", "job", ...: what it is about.
  std::string_view kind() const;
};

// In the order of Message::body.
inline constexpr std::array<std::string_view, 7> kMessageKinds = {"export", "job",      "receipt", "failure",
                                                                  "ready",  "decision", "done"};
static_assert(kMessageKinds.size() == std::variant_size_v<MessageBody::Variant>);
inline std::string_view Message::kind() const { return kMessageKinds[body.index()]; }

}  // namespace crossdock
