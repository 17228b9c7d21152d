// Mailbox: one receive posted at all times, and messages that are sent again until the receiver has answered them.
// Messages are unordered and may be lost or doubled, so participants answer by their state, and no handler counts
// messages.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "executor/message.h"
#include "executor/protocol.h"
#include "executor/retry.h"

namespace crossdock {

class Mailbox {
 public:
  // `resend`: the waits between two sends of the same message; it is sent until it is stopped, whatever
  // attempt_count_max says.
  Mailbox(OpIds& ops, const RetryOptions& resend, uint64_t seed) : ops_(ops), resend_(resend), rng_(seed) {}

  // From now on messages are received.
  void open(std::vector<Post>& posts);
  // True when the completion was one of the mailbox's; a message that came with it is appended.
  bool complete(const Completion& completion, std::vector<Message>& messages);

  // Sends the message now and again until stop(to, topic); a new one takes the place of one with the same topic.
  void repeat(const PeerId& to, std::string topic, Message message);
  // Sends it until a send of it succeeds, a few times at most; also while the mailbox is being closed.
  void once(const PeerId& to, Message message);
  void stop(const PeerId& to, const std::string& topic) { repeated_.erase({to, topic}); }
  void stop_all();
  // What is repeated to the one peer is repeated to the other from now on.
  void readdress(const PeerId& from, const PeerId& to);

  // Posts what is due.
  void advance(TimePoint now, std::vector<Post>& posts);
  TimePoint wake_at() const;

  // Nothing more is received or repeated; closed() once what is under way has completed.
  void close(std::vector<Post>& posts);
  bool closed() const { return closing_ && !receive_ && sends_.empty() && repeated_.empty(); }
  std::vector<OpId> under_way() const;

 private:
  struct Repeated {
    Message message;
    TimePoint next;
    uint32_t attempt = 0;
    std::optional<OpId> under_way;
    bool until_sent = false;
  };
  using Topic = std::pair<PeerId, std::string>;
  static constexpr uint32_t kOnceAttemptsMax = 8;

  OpIds& ops_;
  RetryOptions resend_;
  Rng rng_;
  bool closing_ = false;
  bool failed_ = false;  // the last receive did not bring anything: post the next one a little later
  TimePoint receive_at_;
  std::optional<OpId> receive_;
  uint32_t receive_failures_ = 0;
  std::map<Topic, Repeated> repeated_;
  uint64_t once_count_ = 0;
  std::map<OpId, Topic> sends_;
};

}  // namespace crossdock
