#include "sim/sim_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/local/synthetic.h"
#include "base/crc32c.h"
#include "executor/transfer_job.h"

namespace crossdock {
namespace {

constexpr uint64_t kForeignContent = 0x5eed;  // added to a content's seed: what a page holds that somebody else got

// Calls visit(source region bytes, target region bytes, piece) ... for the pieces within bytes [begin, end) of a step,
// in its order.
template <class Visit>
void for_each_piece(const CopyStep& step, uint64_t begin, uint64_t end, Visit visit) {
  ByteRanges pieces(step);
  uint64_t at = 0;
  for (ByteCopy piece; at < end && pieces.next(piece); at += piece.bytes) {
    const uint64_t first = std::max(begin, at);
    const uint64_t last = std::min(end, at + piece.bytes);
    if (first >= last) continue;
    visit(piece.source_offset + (first - at), piece.target_offset + (first - at), last - first);
  }
}

}  // namespace

Status SimMemory::add(SimMember& member, bool carries_bytes) {
  const bool is_source = member.role == Role::kSource;
  member.shadow = std::make_unique<Shadow>(member.binding, member.schema, is_source ? member.content : 0);
  if (!carries_bytes) return Status();
  member.memory.emplace();
  TRY_STATUS(member.memory->add(*member.binding));
  fill_guards(*member.memory);
  if (is_source) write_synthetic(*member.binding, **member.schema, member.content, *member.memory);
  return Status();
}

Status SimMemory::grant(SimMember& member) {
  for (const RegionKey& key : region_keys(**member.binding)) {
    const bool is_new = grants_.try_emplace(key, Grant{&member}).second;
    checks_.check(Invariant::kI3, now_(),
                  is_new ? "" : fmt::format("region {} is registered a second time under its epoch", key.to_text()));
    if (!is_new) {
      grants_[key] = Grant{&member};
      registry_.remove(key);
    }
    if (member.memory) TRY_STATUS(registry_.add(key, member.memory->find(key)));
  }
  return Status();
}

Status SimMemory::usable(const RegionKey& key) const {
  const auto found = grants_.find(key);
  if (found == grants_.end()) return Status(Code::kNotFound, fmt::format("region {} is not registered", key.to_text()));
  if (found->second.is_revoked) return Status(Code::kConflict, fmt::format("region {} was revoked", key.to_text()));
  return Status();
}

SimMember* SimMemory::owner(const RegionKey& key) const {
  const auto found = grants_.find(key);
  return found == grants_.end() ? nullptr : found->second.member;
}

Status SimMemory::revoke(const RegionKey& key) {
  const auto found = grants_.find(key);
  if (found == grants_.end()) return Status(Code::kNotFound, fmt::format("region {} is not registered", key.to_text()));
  found->second.is_revoked = true;
  return found->second.member->memory ? registry_.revoke(key) : Status();
}

void SimMemory::check_target(const SimMember& member) {
  std::string wrong;
  if (member.is_released) wrong = fmt::format("bytes land in '{}' after its pages were given back", member.name);
  if (member.is_active) wrong = fmt::format("bytes land in '{}' after it was activated", member.name);
  checks_.check(Invariant::kI3, now_(), wrong);
}

void SimMemory::land(const StepSpan& steps, uint64_t begin, uint64_t end, bool flip) {
  const CopyWork* work = steps.steps().empty() ? nullptr : &steps.work();
  uint64_t at = 0;
  for (const CopyStep& step : steps.steps()) {
    const uint64_t total = step.total_bytes();
    const uint64_t first = std::max(begin, at) - at;
    const uint64_t last = end <= at ? 0 : std::min(end - at, total);
    const uint64_t before = at;
    at += total;
    if (first >= last || before >= end) continue;
    const RegionKey& target_key = work->target_regions[step.target_region];
    const RegionKey& source_key = work->source_regions[step.source_region];
    SimMember* const target = owner(target_key);
    SimMember* const source = owner(source_key);
    if (source == nullptr || target == nullptr || !usable(target_key).ok()) continue;  // fenced off
    check_target(*target);
    landed_[{source->name, target->name}] += last - first;
    const auto number = static_cast<size_t>(&step - work->steps.data());
    std::string wrong;
    const bool flips = std::exchange(flip, false);
    if (last == total && !flips)
      wrong = ShadowCopier::land(*work, number, number + 1, *source->shadow, *target->shadow);
    else
      wrong = ShadowCopier::tear(*work, number, *source->shadow, *target->shadow);
    checks_.check(Invariant::kI1, now_(), wrong);
    if (!target->memory || !source->memory) continue;
    const std::span<const std::byte> from = source->memory->find(source_key);
    const std::span<std::byte> to = target->memory->find(target_key);
    bool flip_byte = flips;
    for_each_piece(step, first, last, [&](uint64_t source_offset, uint64_t target_offset, uint64_t bytes) {
      std::memcpy(to.subspan(target_offset, bytes).data(), from.subspan(source_offset, bytes).data(), bytes);
      if (std::exchange(flip_byte, false)) to[target_offset] ^= std::byte{0x10};
    });
  }
}

uint32_t SimMemory::checksum(const StepSpan& steps, StepEnd end) const {
  uint32_t sum = 0;
  if (steps.steps().empty()) return sum;
  const bool of_source = end == StepEnd::kSource;
  const CopyWork& work = steps.work();
  const CopyStep& first = steps.steps().front();
  SimMember* const member =
      owner(of_source ? work.source_regions[first.source_region] : work.target_regions[first.target_region]);
  CHECK(member != nullptr);
  if (!member->memory) return member->shadow->checksum(steps, end);
  for (const CopyStep& step : steps.steps()) {
    const std::span<const std::byte> bytes = member->memory->find(of_source ? work.source_regions[step.source_region]
                                                                            : work.target_regions[step.target_region]);
    for_each_piece(step, 0, step.total_bytes(), [&](uint64_t source_offset, uint64_t target_offset, uint64_t length) {
      sum = crc32c(bytes.subspan(of_source ? source_offset : target_offset, length), sum);
    });
  }
  return sum;
}

void SimMemory::check_store_write(const StepSpan& steps) {
  for (const CopyStep& step : steps.steps()) {
    const RegionKey& key = steps.work().target_regions[step.target_region];
    if (const SimMember* const target = owner(key); target != nullptr && usable(key).ok()) check_target(*target);
  }
}

void SimMemory::overwrite(SimMember& member) {
  member.was_overwritten = true;
  member.shadow->overwrite_all(member.content + kForeignContent);
  if (member.memory)
    write_synthetic(*member.binding, **member.schema, member.content + kForeignContent, *member.memory);
}

std::string SimMemory::take_content(SimMember& member, std::optional<bool> exactly_once) {
  if (member.memory) {
    if (const auto wrong = take_synthetic(*member.binding, **member.schema, member.content, *member.memory))
      return *wrong;
    if (const auto wrong = check_guards(*member.memory)) return *wrong;
  }
  return exactly_once ? member.shadow->check(member.content, *exactly_once) : "";
}

uint64_t SimMemory::landed_bytes(const std::string& source, const std::string& target) const {
  const auto found = landed_.find({source, target});
  return found == landed_.end() ? 0 : found->second;
}

}  // namespace crossdock
