#include "tests/support/byte_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace crossdock::testing {
namespace {

uint64_t value_of(const Item& item) {
  uint64_t state = 0;
  for (const char letter : item.component) state = state * 131 + static_cast<unsigned char>(letter);
  for (const uint64_t field : {item.layer, item.head, item.token, item.dim}) {
    state ^= field;
    state = splitmix64(state);
  }
  return state;
}

std::string region_name(const BoundRegion& region) {
  return region.instance.empty() ? region.id.text() : region.instance.text() + "/" + region.id.text();
}

// All indices of the axes from `depth` on, by recursion.
class StepRunner {
 public:
  StepRunner(const CopyStep& step, const Memory& source, Memory& target)
      : step_(step), source_(source), target_(target) {}

  Status run(size_t depth, uint64_t from, uint64_t to) {
    if (depth == step_.axis_count) return copy(from, to);
    const CopyAxis& axis = step_.axis_list[depth];
    for (uint64_t i = 0; i < axis.extent; ++i)
      TRY_STATUS(run(depth + 1, from + i * axis.source_stride_bytes, to + i * axis.target_stride_bytes));
    return Status();
  }

 private:
  Status copy(uint64_t from, uint64_t to) {
    for (uint64_t i = 0; i < step_.bytes; ++i) {
      if (from + i >= source_.size() || to + i >= target_.size())
        return Status(Code::kInvalidArgument, fmt::format("byte {} of {} goes to byte {} of {}", from + i,
                                                          source_.size(), to + i, target_.size()));
      if (source_.write_count(from + i) == 0)
        return Status(Code::kInvalidArgument, fmt::format("byte {} is read, and nobody wrote it", from + i));
      target_.write(to + i, source_.bytes()[from + i]);
    }
    return Status();
  }

  const CopyStep& step_;
  const Memory& source_;
  Memory& target_;
};

}  // namespace

void Memory::put(uint64_t offset, uint64_t item_bytes, const Item& item) {
  CHECK(item_bytes <= 8);
  const uint64_t value = value_of(item);
  for (uint64_t i = 0; i < item_bytes; ++i) write(offset + i, static_cast<uint8_t>(value >> (8 * i)));
}

void Memory::write(uint64_t offset, uint8_t byte) {
  CHECK(offset < bytes_.size());
  bytes_[offset] = byte;
  if (write_counts_[offset] < 255) ++write_counts_[offset];
}

uint64_t Memory::written_bytes(Range range) const {
  uint64_t count = 0;
  for (uint64_t offset = range.begin(); offset < range.end(); ++offset)
    if (write_counts_.at(offset) > 0) ++count;
  return count;
}

World world_of(const std::vector<RuntimeBinding>& bindings) {
  World world;
  for (const RuntimeBinding& binding : bindings)
    for (const Region& region : binding.regions)
      world.emplace(binding.instance.text() + "/" + region.id.text(), Memory(region.bytes));
  return world;
}

World world_of(const std::vector<ObjectShape>& objects) {
  World world;
  for (const ObjectShape& object : objects) CHECK(world.emplace(object.id.text(), Memory(object.bytes)).second);
  return world;
}

Status run_steps(const LoweredPlan& lowered, const LoweredPair& pair, const World& source, World& target) {
  Status status;
  lowered.for_each_step(pair, [&](const CopyStep& step) {
    const auto from = source.find(region_name(lowered.source_regions().at(step.source_region)));
    const auto to = target.find(region_name(lowered.target_regions().at(step.target_region)));
    if (!status.ok()) return;
    if (from == source.end() || to == target.end())
      status = Status(Code::kNotFound, "a step names a region that does not exist");
    else if (status = StepRunner(step, from->second, to->second).run(0, step.source_offset, step.target_offset);
             !status.ok())
      status = Status(status.code(), fmt::format("'{}' to '{}': {}", from->first, to->first, status.message()));
  });
  return status;
}

Status run_steps(const LoweredPlan& lowered, const World& source, World& target) {
  for (const LoweredPair& pair : lowered.pairs()) TRY_STATUS(run_steps(lowered, pair, source, target));
  return Status();
}

std::string difference(const World& actual, const World& expected) {
  for (const auto& [name, memory] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end()) return fmt::format("'{}' is missing", name);
    if (found->second.size() != memory.size())
      return fmt::format("'{}' has {} bytes, not {}", name, found->second.size(), memory.size());
    for (uint64_t i = 0; i < memory.size(); ++i)
      if (found->second.bytes()[i] != memory.bytes()[i] || found->second.write_count(i) != memory.write_count(i))
        return fmt::format("byte {} of '{}' is {:#04x}, written {} times, not {:#04x}, written {} times", i, name,
                           found->second.bytes()[i], found->second.write_count(i), memory.bytes()[i],
                           memory.write_count(i));
  }
  for (const auto& [name, memory] : actual)
    if (!expected.contains(name)) return fmt::format("'{}' should not exist", name);
  return "";
}

}  // namespace crossdock::testing
