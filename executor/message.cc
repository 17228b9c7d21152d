#include "executor/message.h"

#include <fmt/format.h>

namespace crossdock {

std::string PeerIdentity::to_text() const {
  return fmt::format("'{}' (instance '{}', generation {})", participant.text(), instance.text(), generation);
}

}  // namespace crossdock
