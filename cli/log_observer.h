// Logs what protocols do: each change of state (info), each round with its posts (debug).
#pragma once

#include <memory>
#include <string>

#include "executor/protocol.h"

namespace crossdock::cli {

// An observer that logs under this name and forwards all calls to `inner`, which may be null. Returns null when logging
// is off and `inner` is null.
std::unique_ptr<ProtocolObserver> logged(std::string name, std::unique_ptr<ProtocolObserver> inner);

}  // namespace crossdock::cli
