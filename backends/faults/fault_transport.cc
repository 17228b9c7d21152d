#include "backends/faults/fault_transport.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/rng.h"

namespace crossdock {

// Cut into about eight pieces for each step, so that a copy of a single step can be partial too.
StepSpan some_of(const StepSpan& steps, uint64_t seed) {
  if (steps.steps().empty()) return steps;
  Rng rng(seed);
  auto work = std::make_shared<CopyWork>();
  work->source_regions = steps.work().source_regions;
  work->target_regions = steps.work().target_regions;
  std::vector<CopyStep> pieces;
  StepSplit split;
  split.bytes_max = std::max<uint64_t>(1, steps.total_bytes() / 8);
  for (const CopyStep& step : steps.steps()) CHECK(append_split(step, split, pieces));
  const uint64_t left_out = rng.below(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    if (i != left_out && rng.chance(1, 2)) work->steps.push_back(pieces[i]);
  return StepSpan(std::move(work));
}

// Each round takes what has come and looks again: one completion from inside may free another, or be held back. It
// returns 0 only when the inside did so at the caller's deadline, which keeps R8.
size_t FaultQueue::wait(std::span<Completion> out, TimePoint deadline) {
  std::array<Completion, 64> taken;
  while (true) {
    state_.end_stalls();
    state_.release_stuck();
    if (const size_t count = state_.take(out); count > 0) return count;
    const TimePoint until = std::min(deadline, state_.stall_end());
    const size_t count = inside_.wait(std::span(taken).first(std::min(taken.size(), out.size())), until);
    if (count == 0 && until == deadline) return 0;
    for (size_t i = 0; i < count; ++i) state_.arrived(std::move(taken[i]));
  }
}

Status FaultTransport::post_copy(OpId op, const Grant& grant, const StepSpan& steps) {
  const PortFault* fault = state_.next(PortCall::kCopy);
  TRY_STATUS(state_.post(
      fault, PortCall::kCopy, op, [&] { return inside_.post_copy(op, grant, steps); },
      [&] { return inside_.post_copy(op, grant, some_of(steps, state_.seed() + op.value())); }));
  if (fault == nullptr || fault->kind != PortFaultKind::kFlip || steps.steps().empty()) return Status();
  CHECK(flip_bit_ != nullptr);
  // The first byte that the copy writes. Flipped after it has landed, so the sender's checksum is right and the
  // receiver's is not.
  const CopyStep& step = steps.steps().front();
  state_.when_done(op, [flip = flip_bit_, key = steps.work().target_regions[step.target_region],
                        offset = step.target_offset] { flip(key, offset); });
  return Status();
}

Status FaultTransport::post_checksum(OpId op, const StepSpan& steps, StepEnd end) {
  return state_.post(
      state_.next(PortCall::kChecksum), PortCall::kChecksum, op, [&] { return inside_.post_checksum(op, steps, end); },
      nullptr);
}

Status FaultTransport::post_grant(OpId op, const GrantRequest& request) {
  return state_.post(
      state_.next(PortCall::kGrant), PortCall::kGrant, op, [&] { return inside_.post_grant(op, request); }, nullptr);
}

Status FaultTransport::post_revoke(OpId op, const RevokeRequest& request) {
  return state_.post(
      state_.next(PortCall::kRevoke), PortCall::kRevoke, op, [&] { return inside_.post_revoke(op, request); }, nullptr);
}

FaultyTransportPorts::FaultyTransportPorts(const Ports& inside, PortFaultPlan plan, FlipBit flip_bit)
    : state_(std::move(plan), *inside.queue),
      queue_(*inside.queue, state_),
      transport_(*inside.transport, state_, std::move(flip_bit)),
      ports_(inside) {
  ports_.queue = &queue_;
  ports_.transport = &transport_;
}

}  // namespace crossdock
