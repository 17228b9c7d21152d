#include "executor/message.h"

#include <fmt/format.h>

#include <algorithm>

namespace crossdock {

MessageBody::MessageBody() = default;
MessageBody::MessageBody(const MessageBody&) = default;
MessageBody::MessageBody(MessageBody&&) noexcept = default;
MessageBody& MessageBody::operator=(const MessageBody&) = default;
MessageBody& MessageBody::operator=(MessageBody&&) noexcept = default;
MessageBody::~MessageBody() = default;

std::string PeerIdentity::to_text() const {
  return fmt::format("'{}' (instance '{}', generation {})", participant.text(), instance.text(), generation);
}

// With the role: one participant may be a source and a target of one transfer.
std::string member_text(Role role, const ParticipantId& participant) {
  return fmt::format("{} '{}'", role == Role::kSource ? "source" : "target", participant.text());
}

// Messages must stay short with thousands of participants.
std::string first_few(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace crossdock
