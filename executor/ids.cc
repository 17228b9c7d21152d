#include "executor/ids.h"

#include <fmt/format.h>

namespace crossdock {

std::string HoldId::to_text() const {
  return fmt::format("'{}' for operation '{}', attempt '{}'", participant.text(), operation.text(), attempt.text());
}

}  // namespace crossdock
