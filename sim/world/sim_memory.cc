#include "sim/world/sim_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/memory/step_checksum.h"
#include "backends/memory/strided_copy.h"
#include "backends/memory/synthetic.h"
#include "executor/transfer_job.h"

namespace crossdock {
namespace {

constexpr uint64_t kForeignContent =
    0x5eed;  // added to a content's seed: content of a page that was given to another owner

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

Status not_registered(const RegionKey& key) {
  return Status(Code::kNotFound, fmt::format("region {} is not registered", key.to_text()));
}

}  // namespace

// With bytes the same content is kept twice, as bytes and in the shadow, and each checks the other (I1).
Status SimMemory::add(SimMember& member, bool carries_bytes) {
  const bool is_source = member.role == Role::kSource;
  member.shadow = std::make_unique<Shadow>(member.binding, member.schema, is_source ? member.content : 0);
  if (!carries_bytes) return Status();
  member.memory.emplace();
  TRY_STATUS(member.memory->add(**member.binding));
  fill_guards(*member.memory);
  if (is_source) write_synthetic(*member.binding, **member.schema, member.content, *member.memory);
  return Status();
}

Status SimMemory::register_regions(SimMember& member) {
  for (const Region& region : (*member.binding)->regions) {
    const RegionKey key = RegionKey::of(**member.binding, region);
    Registered registered{&member, region.bytes, std::nullopt};
    if (member.memory) registered.memory = member.memory->find(key);
    const bool is_new = regions_.insert_or_assign(key, registered).second;
    // An epoch that comes twice would let a late write of the first operation land in the second one's pages.
    checks_.check(Invariant::kI3, now_(),
                  is_new ? "" : fmt::format("region {} is registered a second time under its epoch", key.to_text()));
    if (!is_new) registry_.remove(key);
    if (registered.memory) TRY_STATUS(registry_.add(key, *registered.memory));
  }
  return Status();
}

Status SimMemory::add_region(SimMember& member, const RegionKey& key, std::span<std::byte> bytes) {
  TRY_STATUS(registry_.add(key, bytes));
  regions_[key] = Registered{&member, bytes.size(), bytes};
  return Status();
}

void SimMemory::remove_region(const RegionKey& key) {
  registry_.remove(key);
  regions_.erase(key);
}

const SimMemory::Registered* SimMemory::find(const RegionKey& key) const {
  const auto found = regions_.find(key);
  return found == regions_.end() ? nullptr : &found->second;
}

SimMember* SimMemory::owner(const RegionKey& key) const {
  const Registered* const registered = find(key);
  return registered == nullptr ? nullptr : registered->member;
}

// The same rules as the registry's, which has the regions only where bytes are carried.
Status SimMemory::grant(const GrantRequest& request) {
  bool has_bytes = !request.ranges.empty();
  for (const GrantRange& range : request.ranges) {
    const Registered* const registered = find(range.region);
    if (registered == nullptr) return not_registered(range.region);
    if (range.bytes.end() > registered->bytes)
      return Status(Code::kInvalidArgument, fmt::format("a grant ends at byte {} of region {} of {} bytes",
                                                        range.bytes.end(), range.region.to_text(), registered->bytes));
    has_bytes &= registered->memory.has_value();
  }
  const auto [entry, is_new] = grants_.try_emplace(request.id, Granted{request, false});
  if (entry->second.is_revoked)
    return Status(Code::kConflict, fmt::format("grant '{}' was revoked", request.id.text()));
  if (!is_new && entry->second.request != request)
    return Status(Code::kConflict, fmt::format("grant '{}' was given for something else", request.id.text()));
  return has_bytes ? registry_.grant(request) : Status();
}

// At once; that what is under way is stopped first is the work of SimWorld::revoke().
Status SimMemory::revoke(const GrantId& grant) {
  grants_[grant].is_revoked = true;
  return registry_.revoke(grant);
}

bool SimMemory::is_live(const GrantId& grant) const {
  const auto found = grants_.find(grant);
  return found != grants_.end() && !found->second.is_revoked;
}

Status SimMemory::check_copy(const GrantId& grant, const StepSpan& steps) const {
  if (!is_live(grant))
    return Status(Code::kConflict, fmt::format("grant '{}' is not given, or was revoked", grant.text()));
  const GrantRequest& request = grants_.at(grant).request;
  for (const CopyStep& step : steps.steps()) {
    const RegionKey& source = steps.work().source_regions[step.source_region];
    const RegionKey& target = steps.work().target_regions[step.target_region];
    if (find(source) == nullptr) return not_registered(source);
    if (find(target) == nullptr) return not_registered(target);
    const auto range = std::find_if(request.ranges.begin(), request.ranges.end(),
                                    [&](const GrantRange& each) { return each.region == target; });
    if (range == request.ranges.end() ||
        !std::binary_search(request.writers.begin(), request.writers.end(), source.owner))
      return Status(Code::kConflict, fmt::format("grant '{}' does not let '{}' write into region {}", grant.text(),
                                                 source.owner.text(), target.to_text()));
    if (!fits(step, find(source)->bytes, range->bytes.end()) || step.target_offset < range->bytes.begin())
      return Status(Code::kInvalidArgument,
                    fmt::format("a step of {} bytes from region {} to region {} leaves one of them", step.total_bytes(),
                                source.to_text(), target.to_text()));
  }
  return Status();
}

// Called when bytes land and not when a copy is posted: a write may be posted in time and land late (I3).
void SimMemory::check_target(const SimMember& member) {
  std::string wrong;
  if (member.is_released) wrong = fmt::format("bytes land in '{}' after its pages were given back", member.name);
  if (member.is_active) wrong = fmt::format("bytes land in '{}' after it was activated", member.name);
  checks_.check(Invariant::kI3, now_(), wrong);
}

// Where the world does what a network interface does: bytes land as long as the grant is live, whatever the runtime has
// done with the pages meanwhile. The check of I3 then finds what would be silent corruption on a real machine.
Status SimMemory::land(const GrantId& grant, const StepSpan& steps, uint64_t begin, uint64_t end, bool flip) {
  if (begin < end && !is_live(grant)) return Status(Code::kConflict, "a grant ended before all had landed");
  Status status;
  const CopyWork* work = steps.steps().empty() ? nullptr : &steps.work();
  uint64_t at = 0;
  for (const CopyStep& step : steps.steps()) {
    const uint64_t total = step.total_bytes();
    // `first` and `last` count in the step. A step that [begin, end) does not touch has first >= last, or lies behind
    // `end`.
    const uint64_t first = std::max(begin, at) - at;
    const uint64_t last = end <= at ? 0 : std::min(end - at, total);
    const uint64_t before = at;
    at += total;
    if (first >= last || before >= end) continue;
    const Registered* const target = find(work->target_regions[step.target_region]);
    const Registered* const source = find(work->source_regions[step.source_region]);
    if (source == nullptr || target == nullptr) {
      status = Status(Code::kNotFound, "a region is not registered any more");
      continue;
    }
    check_target(*target->member);
    landed_[{source->member->name, target->member->name}] += last - first;
    // The first byte of all is wrong, so the flip is used up by the first step that lands.
    bool flips = std::exchange(flip, false);
    const auto number = static_cast<size_t>(&step - work->steps.data());
    // A step of which the last byte has landed is whole: what came before had been noted as torn and is written over by
    // now. Else its cells hold unknown content, since the shadow does not know single bytes of a step.
    check_content(*work, number, last == total && !flips, *source->member, *target->member);
    if (!target->memory || !source->memory) continue;
    for_each_piece(step, first, last, [&](uint64_t source_offset, uint64_t target_offset, uint64_t bytes) {
      const std::span<std::byte> to = target->memory->subspan(target_offset, bytes);
      std::memcpy(to.data(), source->memory->subspan(source_offset, bytes).data(), bytes);
      if (std::exchange(flips, false)) to[0] ^= std::byte{0x10};
    });
  }
  return status;
}

void SimMemory::check_content(const CopyWork& work, size_t step, bool is_whole, const SimMember& source,
                              SimMember& target) {
  if (source.shadow == nullptr || target.shadow == nullptr) return;
  checks_.check(Invariant::kI1, now_(),
                is_whole ? ShadowCopier::land(work, step, step + 1, *source.shadow, *target.shadow)
                         : ShadowCopier::tear(work, step, *source.shadow, *target.shadow));
}

Result<uint32_t> SimMemory::checksum(const StepSpan& steps, StepEnd end) const {
  if (steps.steps().empty()) return 0u;
  const bool of_source = end == StepEnd::kSource;
  const auto& regions = of_source ? steps.work().source_regions : steps.work().target_regions;
  const Registered* region_of = nullptr;
  for (const CopyStep& step : steps.steps()) {
    const RegionKey& key = regions[of_source ? step.source_region : step.target_region];
    region_of = find(key);
    if (region_of == nullptr) return not_registered(key);
    if (!fits(step, of_source ? region_of->bytes : UINT64_MAX, of_source ? UINT64_MAX : region_of->bytes))
      return Status(Code::kInvalidArgument, fmt::format("a step leaves region {}", key.to_text()));
  }
  // All regions of one end belong to one member, so the last one says whether bytes are carried.
  if (!region_of->memory) return region_of->member->shadow->checksum(steps, end);
  return checksum_steps(steps, end, [&](uint32_t region) -> Result<std::span<const std::byte>> {
    return std::span<const std::byte>(*find(regions[region])->memory);
  });
}

// A store writes through the registry and not through land(), so I3 is asked for here. Under a grant that is revoked
// the registry refuses, and nothing lands.
void SimMemory::check_store_write(const GetStep& step) {
  if (!is_live(step.grant)) return;
  for (const CopyStep& each : step.steps.steps())
    if (const SimMember* const target = owner(step.steps.work().target_regions[each.target_region]))
      check_target(*target);
}

void SimMemory::overwrite(SimMember& member) {
  member.shadow->overwrite_all(member.content + kForeignContent);
  if (member.memory)
    write_synthetic(*member.binding, **member.schema, member.content + kForeignContent, *member.memory);
}

// Bytes first: where both are there, their message names the exact byte.
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
