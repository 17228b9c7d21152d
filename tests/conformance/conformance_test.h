// What the suites have in common: a backend, its participants, memory with guards, and copies written out naively.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/conformance/backend.h"
#include "tests/conformance/participant.h"

namespace crossdock::testing {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(Rng& rng, uint64_t count);
// CRC-32C, bit by bit: reflected, polynomial 0x1EDC6F41, start and final exclusive or 0xffffffff.
uint32_t naive_crc32c(std::span<const std::byte> bytes);

// Calls visit(source offset, target offset) for each byte of the step, in the order of planner/copy/steps.h.
template <class Visit>
void for_each_byte(const CopyStep& step, Visit visit) {
  uint64_t count = 1;
  for (const CopyAxis& axis : step.axes()) count *= axis.extent;
  for (uint64_t number = 0; number < count; ++number) {
    uint64_t source = step.source_offset;
    uint64_t target = step.target_offset;
    uint64_t rest = number;
    for (size_t k = step.axis_count; k-- > 0;) {
      const CopyAxis& axis = step.axis_list[k];
      source += rest % axis.extent * axis.source_stride_bytes;
      target += rest % axis.extent * axis.target_stride_bytes;
      rest /= axis.extent;
    }
    for (uint64_t i = 0; i < step.bytes; ++i) visit(source + i, target + i);
  }
}

// A step with up to three axes in any order of strides, within these windows; each at least one byte.
CopyStep random_step(Rng& rng, Range source, Range target);
// Steps of which no two share a target byte.
std::vector<CopyStep> random_steps(Rng& rng, uint64_t source_bytes, uint64_t target_bytes, uint64_t count);
// One step of `bytes` without axes.
CopyStep plain_step(uint64_t source_offset, uint64_t target_offset, uint64_t bytes);

// Three times 5 bytes; with a stride of 2^63 the end of its span is that of a much smaller one, modulo 2^64.
CopyStep wrapping_step(uint64_t source_stride_bytes, uint64_t target_stride_bytes);

// Registered memory with guards around it.
struct Region {
  static constexpr uint64_t kGuardBytes = 64;
  static constexpr std::byte kFill{0xa5};  // of guards, and of bytes at first

  Region(RegionKey region_key, uint64_t bytes) : key(std::move(region_key)), memory(bytes + 2 * kGuardBytes, kFill) {}
  std::span<std::byte> bytes() { return std::span(memory).subspan(kGuardBytes, memory.size() - 2 * kGuardBytes); }
  Bytes copy() { return Bytes(bytes().begin(), bytes().end()); }

  RegionKey key;
  Bytes memory;
};

RegionKey region_key(const std::string& name, uint64_t epoch = 1);
// Steps from a region to a region, and from either to an object.
StepSpan steps_between(const std::vector<RegionKey>& sources, const std::vector<RegionKey>& targets,
                       std::vector<CopyStep> steps);

using Bodies = std::vector<std::function<void()>>;  // Backend::run_together()

// Where some of them wait for each other, once.
class Meeting {
 public:
  Meeting(Backend& backend, size_t count) : backend_(backend), missing_(count) {}
  void arrive() { --missing_; }
  void wait() {
    while (missing_ > 0) backend_.pause();
  }
  void arrive_and_wait() {
    arrive();
    wait();
  }

 private:
  Backend& backend_;
  std::atomic<size_t> missing_;
};

class ConformanceTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override { open({}); }
  // Another backend instead, before anything else.
  void open(const BackendOptions& options);
  Participant& join(const std::string& name);
  Region& region(const std::string& name, uint64_t bytes, uint64_t epoch = 1);
  // The grant of these regions as a whole, to writers of every region here; given when it is asked for first, which is
  // not within run_together().
  std::shared_ptr<const Grant> grant(const std::vector<RegionKey>& keys);
  // Posts under the grant of the steps' target regions, and of a region alone.
  CopyPost copy_of(const StepSpan& steps) { return CopyPost{grant(targets_of(steps)), steps}; }
  RevokePost revoke_of(const RegionKey& key) { return RevokePost{{grant({key})->id}}; }
  static std::vector<RegionKey> targets_of(const StepSpan& steps) {
    return steps.steps().empty() ? std::vector<RegionKey>() : steps.work().target_regions;
  }
  // Every guard of every region is as it was.
  void expect_guards() const;
  // Revokes of memory that is held: as many as keep all workers busy, until the holds are gone. Empty where nothing
  // can be held.
  struct Blocked {
    std::vector<std::shared_ptr<void>> holds;
    std::vector<OpId> revokes;
  };
  Blocked block_workers(Participant& participant, size_t worker_count);

  std::deque<Region> regions_;  // outlive the backend
  std::unique_ptr<Backend> backend_;
  std::deque<Participant> participants_;
  Participant* granter_ = nullptr;
  std::map<std::vector<RegionKey>, std::shared_ptr<const Grant>> grants_;
};

}  // namespace crossdock::testing
