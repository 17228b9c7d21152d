// The ports of a simulated cluster. Bodies that run together are actors, and a store's clock is its own.
#pragma once

#include <functional>
#include <memory>

#include "tests/conformance/backend.h"

namespace crossdock::testing {

// Runs `body` as an actor of the simulation, of which a process has one; its backends can only be made and used inside.
// False when a participant waited for ever.
bool run_in_simulation(const std::function<void()>& body);

// Simulated time goes on until nothing of an earlier backend is under way.
std::unique_ptr<Backend> make_sim_backend(const BackendOptions& options);

}  // namespace crossdock::testing
