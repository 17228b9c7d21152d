#include "executor/protocol.h"

#include <array>
#include <iterator>

#include "base/check.h"
#include "base/overloaded.h"

namespace crossdock {
namespace {

// Bounds what one call of advance() has to handle; what is left comes with the next wait().
constexpr size_t kCompletionsMax = 64;  // taken from the queue at once

void cancel(OpId op, CancelWhere where, const Ports& ports) {
  switch (where) {
    case CancelWhere::kTransport: return ports.transport->cancel(op);
    case CancelWhere::kStore: return ports.store->cancel(op);
    case CancelWhere::kMessenger: return ports.messenger->cancel(op);
  }
}

Status post_runtime(OpId op, const RuntimePost& call, Runtime& runtime) {
  switch (call.call) {
    case RuntimeCall::kPin: return runtime.post_pin(op, call.hold);
    case RuntimeCall::kReserve: return runtime.post_reserve(op, call.hold);
    case RuntimeCall::kValidate: return runtime.post_validate(op, call.hold);
    case RuntimeCall::kActivate: return runtime.post_activate(op, call.hold);
    case RuntimeCall::kRelease: return runtime.post_release(op, call.hold);
  }
  check_failed("a known runtime call", __FILE__, __LINE__);
}

}  // namespace

PostCall::PostCall() = default;
PostCall::PostCall(const PostCall&) = default;
PostCall::PostCall(PostCall&&) noexcept = default;
PostCall& PostCall::operator=(const PostCall&) = default;
PostCall& PostCall::operator=(PostCall&&) noexcept = default;
PostCall::~PostCall() = default;

std::string_view Post::name() const {
  constexpr std::array<std::string_view, 15> kNames = {"copy",          "checksum", "grant",   "revoke",  "begin",
                                                       "put",           "commit",   "abort",   "lookup",  "get",
                                                       "release-lease", "send",     "receive", "runtime", "cancel"};
  static_assert(std::variant_size_v<PostCall::Variant> == kNames.size());
  return kNames[call.index()];
}

// R1: a refused post has no completion of its own, so one is made here. A protocol then sees exactly one completion for
// each post, and needs no second way to handle failures (I6).
void post(const Post& post, const Ports& ports, std::vector<Completion>& refused) {
  const OpId op = post.op;
  const Status status =
      std::visit(Overloaded{
                     [&](const CopyPost& call) { return ports.transport->post_copy(op, *call.grant, call.steps); },
                     [&](const ChecksumPost& call) { return ports.transport->post_checksum(op, call.steps, call.end); },
                     [&](const GrantPost& call) { return ports.transport->post_grant(op, call.request); },
                     [&](const RevokePost& call) { return ports.transport->post_revoke(op, call.request); },
                     [&](const BeginPost& call) { return ports.store->post_begin(op, call.txn, call.target); },
                     [&](const PutPost& call) { return ports.store->post_put(op, call.txn, call.step); },
                     [&](const CommitPost& call) { return ports.store->post_commit(op, call.txn, call.publication); },
                     [&](const AbortPost& call) { return ports.store->post_abort(op, call.txn); },
                     [&](const LookupPost& call) { return ports.store->post_lookup(op, call.lookup); },
                     [&](const GetPost& call) { return ports.store->post_get(op, call.step); },
                     [&](const ReleaseLeasePost& call) { return ports.store->post_release(op, call.lease); },
                     [&](const SendPost& call) { return ports.messenger->post_send(op, call.to, call.message); },
                     [&](const RecvPost&) { return ports.messenger->post_recv(op); },
                     [&](const RuntimePost& call) { return post_runtime(op, call, *ports.runtime); },
                     [&](const CancelPost& call) {
                       cancel(op, call.where, ports);
                       return Status();
                     },
                 },
                 post.call);
  if (!status.ok()) refused.push_back(Completion{op, status, std::monostate(), false});
}

// The only blocking call is wait(). R7: it may unwind this frame, and destructors clean up all there is.
void drive(Protocol& protocol, const Ports& ports, std::span<ProtocolObserver* const> observers) {
  std::array<Completion, kCompletionsMax> taken;
  std::vector<Completion> completions;
  std::vector<Post> posts;
  while (true) {
    const TimePoint now = ports.queue->now();
    posts.clear();
    for (ProtocolObserver* observer : observers) observer->advancing(protocol);
    protocol.advance(now, completions, posts);
    // Observed before they are posted: a recording has the last posts also when a post never returns.
    for (ProtocolObserver* observer : observers) observer->advanced(now, completions, posts, protocol);
    completions.clear();
    for (const Post& each : posts) post(each, ports, completions);
    if (protocol.finished()) return;
    // They are handed in at once: waiting first could wait for a completion that never comes.
    if (!completions.empty()) continue;  // refusals
    // R8: without completions the time of wake_at() has come, so advance() finds something to do and this is no busy
    // loop.
    const size_t count = ports.queue->wait(taken, protocol.wake_at());
    completions.assign(std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.begin() + count));
  }
}

}  // namespace crossdock
