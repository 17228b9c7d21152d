// Regions and objects as lists of bytes: tests fill the sources, run the steps of a plan, and compare the targets with
// what they wrote into a second world by formulas of their own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"
#include "base/status.h"
#include "model/kv/binding.h"
#include "planner/kv/lower.h"
#include "planner/kv/store_geometry.h"

namespace crossdock::testing {

// One item of a cache. Its value is a hash of these fields, so that no two places hold the same by design.
struct Item {
  std::string_view component;
  uint64_t layer = 0;
  uint64_t head = 0;
  uint64_t token = 0;
  uint64_t dim = 0;
};

// The bytes of one region or object. A byte that was never written is a guard.
class Memory {
 public:
  static constexpr uint8_t kGuard = 0xa5;

  explicit Memory(uint64_t byte_count = 0) : bytes_(byte_count, kGuard), write_counts_(byte_count, 0) {}

  // The item's value, little-endian. item_bytes is at most 8, and all of them lie within the memory.
  void put(uint64_t offset, uint64_t item_bytes, const Item& item);
  void write(uint64_t offset, uint8_t byte);

  uint64_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  uint8_t write_count(uint64_t offset) const { return write_counts_.at(offset); }
  // How many bytes of the range were written at least once.
  uint64_t written_bytes(Range range) const;

 private:
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> write_counts_;  // stay at 255
};

// By "instance/region", or the id of an object.
using World = std::map<std::string, Memory>;

World world_of(const std::vector<RuntimeBinding>& bindings);
World world_of(const std::vector<ObjectShape>& objects);

// One byte at a time. Not OK when a step leaves a region, or reads bytes that were never written.
Status run_steps(const LoweredPlan& lowered, const LoweredPair& pair, const World& source, World& target);
Status run_steps(const LoweredPlan& lowered, const World& source, World& target);  // of all pairs

// The first byte that differs, or that was written more or less often; empty when there is none.
std::string difference(const World& actual, const World& expected);

}  // namespace crossdock::testing
