// Names of protocol events, for which faults wait (WhenSpec::event): what a protocol posts, what completes, and which
// state it enters.
#pragma once

#include <string>
#include <string_view>

namespace crossdock {

inline std::string post_event(std::string_view operation) { return "post " + std::string(operation); }
inline std::string done_event(std::string_view operation) { return "done " + std::string(operation); }
inline std::string state_event(std::string_view state) { return "state " + std::string(state); }

}  // namespace crossdock
