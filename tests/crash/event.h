// The events that a workload reports before and after each step, in process or as lines of text through a pipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace crossdock::testing {

enum class StepKind {
  kOpen,
  kUpload,       // begin, put, commit
  kAbort,        // begin, put some, abort
  kAbandon,      // begin, put some
  kRemove,       // a snapshot
  kPin,          // a snapshot
  kUnpin,        // a snapshot
  kRead,         // a snapshot: every byte of it
  kPages,        // begin, put, commit
  kRemovePages,  // a publication of pages
  kReadPages,    // all pages of the thread
  kCollect,
};

struct Event {
  uint32_t thread = 0;
  StepKind kind = StepKind::kOpen;
  bool done = false;      // else it begins
  Code code = Code::kOk;  // when it is done
  std::string txn;
  std::string name;             // of a snapshot
  bool expires = false;         // a short time after its commit
  uint64_t sequence = 0;        // of a publication
  std::vector<uint64_t> pages;  // kReadPages, when it is done: those that were found
  std::string digest;           // of what was published or read
};

// One line, short enough for one atomic write to a pipe.
std::string to_line(const Event& event);
std::optional<Event> from_line(const std::string& line);
// For messages of a failed test.
std::string to_text(const Event& event);

}  // namespace crossdock::testing
