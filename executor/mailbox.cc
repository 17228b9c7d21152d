#include "executor/mailbox.h"

#include <algorithm>

namespace crossdock {

void Mailbox::open(std::vector<Post>& posts) {
  CHECK(!receive_ && !closing_);
  receive_ = ops_.next();
  posts.push_back(Post{*receive_, RecvPost{}});
}

bool Mailbox::complete(const Completion& completion, std::vector<Message>& messages) {
  if (receive_ == completion.op) {
    receive_ = std::nullopt;
    failed_ = !completion.status.ok();
    receive_failures_ = failed_ ? receive_failures_ + 1 : 0;
    if (!failed_ && !closing_) messages.push_back(std::get<Message>(completion.result));
    return true;
  }
  const auto found = sends_.find(completion.op);
  if (found == sends_.end()) return false;
  if (found->second) {
    const auto topic = repeated_.find(*found->second);
    if (topic != repeated_.end() && topic->second.under_way == completion.op)
      topic->second.under_way = std::nullopt;
  }
  sends_.erase(found);
  return true;
}

void Mailbox::repeat(const PeerId& to, std::string topic, Message message) {
  Repeated& entry = repeated_[{to, std::move(topic)}];
  entry.message = std::move(message);
  entry.next = TimePoint::from_ns(std::numeric_limits<int64_t>::min());
  entry.attempt = 0;
}

void Mailbox::once(const PeerId& to, Message message) { once_.emplace_back(to, std::move(message)); }

void Mailbox::advance(TimePoint now, std::vector<Post>& posts) {
  if (closing_) return;
  if (!receive_) {
    if (failed_) {
      failed_ = false;
      receive_at_ = now + backoff(resend_, receive_failures_, rng_);
    }
    if (receive_at_ <= now || receive_failures_ == 0) open(posts);
  }
  const auto send = [&](const PeerId& to, const Message& message, std::optional<Topic> topic) {
    const OpId op = ops_.next();
    posts.push_back(Post{op, SendPost{to, message}});
    sends_.emplace(op, std::move(topic));
    return op;
  };
  for (auto& [to, message] : once_) send(to, message, std::nullopt);
  once_.clear();
  for (auto& [topic, entry] : repeated_) {
    if (entry.next > now || entry.under_way) continue;
    entry.under_way = send(topic.first, entry.message, topic);
    entry.next = now + backoff(resend_, ++entry.attempt, rng_);
  }
}

TimePoint Mailbox::wake_at() const {
  TimePoint wake = TimePoint::never();
  if (closing_) return wake;
  if (!receive_) wake = receive_at_;
  for (const auto& [topic, entry] : repeated_)
    if (!entry.under_way) wake = std::min(wake, entry.next);
  return wake;
}

void Mailbox::close(std::vector<Post>& posts) {
  if (closing_) return;
  closing_ = true;
  repeated_.clear();
  once_.clear();
  if (receive_) posts.push_back(Post{*receive_, CancelPost{CancelWhere::kMessenger}});
}

std::vector<OpId> Mailbox::under_way() const {
  std::vector<OpId> ops;
  if (receive_) ops.push_back(*receive_);
  for (const auto& [op, topic] : sends_) ops.push_back(op);
  return ops;
}

}  // namespace crossdock
