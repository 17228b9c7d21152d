// What a store has to hold after the steps that it answered, for either outcome of the steps that it did not.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash/crash_store.h"
#include "tests/crash/event.h"

namespace crossdock::testing {

// Faults that a check found, in words.
using Findings = std::vector<std::string>;

class Expected {
 public:
  explicit Expected(uint64_t seed) : seed_(seed) {}

  // The events of one run, in the order in which they were reported. An answer that contradicts an earlier one is a
  // finding.
  void take(const std::vector<Event>& events, Findings& findings);
  // Checks every name after kShortIsOver: I2. A step that was under way when the run ended happened in full or not at
  // all; what the store holds settles which.
  void check(StoreCore& core, Findings& findings);

  // Publications that hold something, by their content.
  size_t snapshot_count() const;

 private:
  struct Snapshot {
    bool stored = false;
    bool expires = false;
    bool pinned = false;

    bool stays() const { return stored && (!expires || pinned); }
    friend bool operator==(const Snapshot&, const Snapshot&) = default;
  };
  struct State {
    std::map<std::string, Snapshot> snapshots;
    std::map<uint64_t, uint64_t> page_owners;  // the publication through which each page is found
  };
  // Results of lookups of every name of a thread.
  struct Seen {
    std::map<std::string, std::pair<bool, bool>> snapshots;  // stored, pinned
    std::set<uint64_t> pages;
    friend bool operator==(const Seen&, const Seen&) = default;
  };

  static void apply(const Event& event, State& state);
  void judge(const Event& event, Findings& findings) const;
  Seen look(StoreCore& core, Findings& findings) const;
  static Seen expected_of(const State& state);
  void check_txn(StoreCore& core, const Event& event, bool happened, Findings& findings) const;

  uint64_t seed_;
  State state_;
  std::set<uint32_t> threads_;
  std::vector<Event> run_;               // of the last run
  std::map<uint32_t, Event> under_way_;  // by thread
};

}  // namespace crossdock::testing
