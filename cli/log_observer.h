// Logs what protocols do: each change of state (info), each round with its posts (debug).
#pragma once

#include <memory>
#include <string>

#include "executor/protocol.h"

namespace crossdock::cli {

// An observer that logs under this name and passes everything on to `inner`, which may be null. Null itself when there
// is neither anything to log nor an inner one.
std::unique_ptr<ProtocolObserver> logged(std::string name, std::unique_ptr<ProtocolObserver> inner);

}  // namespace crossdock::cli
