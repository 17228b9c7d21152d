#include "executor/mailbox.h"

#include <algorithm>
#include <string>

// Reliable delivery is not promised here, only repetition: a message is sent again until its sender says stop(), which
// it does when an answer shows that it arrived. Topics bound the memory: there is one message for each (peer, topic),
// and a newer one replaces it.
namespace crossdock {

void Mailbox::open(std::vector<Post>& posts) {
  CHECK(!receive_ && !closing_);
  receive_ = ops_.next();
  posts.push_back(Post{*receive_, RecvPost{}});
}

// A completion of the receive always ends it, failed or not (R1), so advance() may post the next one.
bool Mailbox::complete(const Completion& completion, std::vector<Message>& messages) {
  if (receive_ == completion.op) {
    receive_ = std::nullopt;
    failed_ = !completion.status.ok();
    receive_failures_ = failed_ ? receive_failures_ + 1 : 0;
    // A message that comes while closing is dropped: its sender repeats it or gives up by its own deadline.
    if (!failed_ && !closing_) messages.push_back(std::get<Message>(completion.result));
    return true;
  }
  const auto found = sends_.find(completion.op);
  if (found == sends_.end()) return false;
  const auto topic = repeated_.find(found->second);
  // The topic may have been stopped, or given a new message, while this send was under way.
  if (topic != repeated_.end() && topic->second.under_way == completion.op) {
    Repeated& entry = topic->second;
    entry.under_way = std::nullopt;
    // A success only says that the message was taken, not that it was read; for the last word of a protocol that has to
    // do.
    if (entry.until_sent && (completion.status.ok() || entry.attempt >= kOnceAttemptsMax)) repeated_.erase(topic);
  }
  sends_.erase(found);
  return true;
}

// The earliest time there is: due at the next advance(). A send of the old message that is under way goes on.
void Mailbox::repeat(const PeerId& to, std::string topic, Message message) {
  Repeated& entry = repeated_[{to, std::move(topic)}];
  entry.message = std::move(message);
  entry.next = TimePoint::from_ns(std::numeric_limits<int64_t>::min());
  entry.attempt = 0;
}

void Mailbox::once(const PeerId& to, Message message) {
  const std::string topic = "once " + std::to_string(++once_count_);
  repeat(to, topic, std::move(message));
  repeated_.at({to, topic}).until_sent = true;
}

void Mailbox::stop_all() {
  std::erase_if(repeated_, [](const auto& each) { return !each.second.until_sent; });
}

void Mailbox::readdress(const PeerId& from, const PeerId& to) {
  if (from == to) return;
  std::map<Topic, Repeated> moved;
  for (auto each = repeated_.begin(); each != repeated_.end();) {
    if (each->first.first != from) {
      ++each;
      continue;
    }
    Repeated entry = std::move(each->second);
    // A send to the first peer that is under way is none of the second's.
    entry.under_way = std::nullopt;
    entry.next = TimePoint::from_ns(std::numeric_limits<int64_t>::min());
    moved.emplace(Topic(to, each->first.second), std::move(entry));
    each = repeated_.erase(each);
  }
  repeated_.merge(moved);
}

void Mailbox::advance(TimePoint now, std::vector<Post>& posts) {
  if (!receive_ && !closing_) {
    if (failed_) {
      failed_ = false;
      // Without a wait, a messenger that fails at once would be asked in a busy loop.
      receive_at_ = now + backoff(resend_, receive_failures_, rng_);
    }
    if (receive_at_ <= now || receive_failures_ == 0) open(posts);
  }
  for (auto& [topic, entry] : repeated_) {
    // One send of a topic at a time: a slow messenger is not flooded by repetitions.
    if (entry.next > now || entry.under_way) continue;
    entry.under_way = ops_.next();
    posts.push_back(Post{*entry.under_way, SendPost{topic.first, entry.message}});
    sends_.emplace(*entry.under_way, topic);
    entry.next = now + backoff(resend_, ++entry.attempt, rng_);
  }
}

TimePoint Mailbox::wake_at() const {
  TimePoint wake = TimePoint::never();
  if (!receive_ && !closing_) wake = receive_at_;
  for (const auto& [topic, entry] : repeated_)
    if (!entry.under_way) wake = std::min(wake, entry.next);
  return wake;
}

// R5: the cancel is a hint; closed() waits for the completion of the receive.
void Mailbox::close(std::vector<Post>& posts) {
  if (closing_) return;
  closing_ = true;
  stop_all();
  if (receive_) posts.push_back(Post{*receive_, CancelPost{CancelWhere::kMessenger}});
}

std::vector<OpId> Mailbox::under_way() const {
  std::vector<OpId> ops;
  if (receive_) ops.push_back(*receive_);
  for (const auto& [op, topic] : sends_) ops.push_back(op);
  return ops;
}

}  // namespace crossdock
