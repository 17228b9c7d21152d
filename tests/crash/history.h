// A store directory through several crashes, and its expected content after each.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/crash/audit.h"
#include "tests/crash/child.h"
#include "tests/crash/expected.h"

namespace crossdock::testing {

// Numbers that a caller of the tests may set: CROSSDOCK_CRASH_SEED and CROSSDOCK_CRASH_KILLS.
uint64_t number_from_environment(const char* name, uint64_t otherwise);
inline uint64_t crash_seed() { return number_from_environment("CROSSDOCK_CRASH_SEED", 1); }
// The line that runs the current test again.
std::string replay_line();

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class History {
 public:
  explicit History(uint64_t seed, rocksdb::Env* env = nullptr);

  uint64_t seed() const { return seed_; }
  uint32_t run() const { return run_; }
  const RocksDbOptions& tables() const { return tables_; }
  Expected& expected() { return expected_; }

  // The next run, in a child: it ends by itself, at its crash point ("" for none), or at the kill time.
  struct ChildRun {
    uint32_t thread_count = 1;
    uint32_t step_count = 0;
    std::string point;
    uint64_t passing = 0;  // it is killed at this one
    std::optional<KillTime> kill_time;
  };
  ChildEnd run_child(const ChildRun& run);
  // Opens the store in children that are killed while it recovers.
  void kill_recoveries(Rng& rng);
  // Opens the store after a run that reported `events`, and checks everything; then the next run may begin. False, with
  // the replay line, when a test has failed.
  bool check(const std::vector<Event>& events, const std::string& what);

 private:
  bool report(const Findings& findings, const std::vector<Event>& events, const std::string& what) const;

  uint64_t seed_;
  TemporaryDirectory directory_;
  RocksDbOptions tables_;
  Expected expected_;
  uint32_t run_ = 0;
};

}  // namespace crossdock::testing
