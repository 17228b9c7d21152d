// Protocol: a pure state machine. Completions go in, posts come out; it does no I/O, reads no clock and owns no thread.
// The same protocols run on real backends and in simulation; drive() connects one to the ports of its participant.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "executor/ports.h"

namespace crossdock {

// What can be posted; each is one call of a port.
struct CopyPost {
  std::shared_ptr<const Grant> grant;  // not null
  StepSpan steps;
};
struct ChecksumPost {
  StepSpan steps;
  StepEnd end = StepEnd::kSource;
};
struct GrantPost {
  GrantRequest request;
};
struct RevokePost {
  RevokeRequest request;
};
struct BeginPost {
  TxnId txn;
  UploadTarget target;
};
struct PutPost {
  TxnId txn;
  PutStep step;
};
struct CommitPost {
  TxnId txn;
  Publication publication;
};
struct AbortPost {
  TxnId txn;
};
struct LookupPost {
  Lookup lookup;
};
struct GetPost {
  GetStep step;
};
struct ReleaseLeasePost {
  LeaseId lease;
};
struct SendPost {
  PeerId to;
  Message message;
};
struct RecvPost {};
enum class RuntimeCall { kPin, kReserve, kValidate, kActivate, kRelease };
inline constexpr std::array<std::string_view, 5> kRuntimeCallNames = {"pin", "reserve", "validate", "activate",
                                                                      "release"};
struct RuntimePost {
  RuntimeCall call = RuntimeCall::kPin;
  HoldId hold;
};
// Not an operation of its own: a hint about the operation `op`, of the port that the posts of its kind go to.
enum class CancelWhere { kTransport, kStore, kMessenger };
struct CancelPost {
  CancelWhere where = CancelWhere::kTransport;
};

// Its special members are compiled once, in protocol.cc, and not in each source that moves a post.
struct PostCall : std::variant<CopyPost, ChecksumPost, GrantPost, RevokePost, BeginPost, PutPost, CommitPost, AbortPost,
                               LookupPost, GetPost, ReleaseLeasePost, SendPost, RecvPost, RuntimePost, CancelPost> {
  using Variant = variant;
  using Variant::Variant;
  using Variant::operator=;
  PostCall();
  PostCall(const PostCall&);
  PostCall(PostCall&&) noexcept;
  PostCall& operator=(const PostCall&);
  PostCall& operator=(PostCall&&) noexcept;
  ~PostCall();
};

// Data: it can be recorded, compared, and posted later or never.
struct Post {
  OpId op;
  PostCall call;

  // "copy", "revoke", ...
  std::string_view name() const;
};

class Protocol {
 public:
  virtual ~Protocol() = default;
  // Takes what happened and appends what is to be posted now. Called first without completions, then whenever there are
  // some or the time of wake_at() has come. Posts that a port refuses come back as completions with posted = false.
  virtual void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) = 0;
  // When advance() wants to be called although nothing happened.
  virtual TimePoint wake_at() const = 0;
  // Nothing of it is under way any more, and nothing will be posted.
  // Once true it stays true.
  virtual bool finished() const = 0;
  // The name of its state, for people.
  virtual std::string state() const = 0;
};

// Calls the port. A refused post is a completion with posted = false in `refused`.
// The port that the call needs is not null.
void post(const Post& post, const Ports& ports, std::vector<Completion>& refused);

// Sees all that goes in and out of a protocol, in the thread that drives it.
class ProtocolObserver {
 public:
  virtual ~ProtocolObserver() = default;
  // Before each advance(); may ask the protocol for something, for example to abort.
  virtual void advancing(Protocol& protocol) = 0;
  // After each advance(), before anything is posted. The spans are valid during the call.
  virtual void advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                        const Protocol& protocol) = 0;
};

// Runs a protocol to its end. The only call in it that blocks is queue->wait().
void drive(Protocol& protocol, const Ports& ports, std::span<ProtocolObserver* const> observers = {});

}  // namespace crossdock
