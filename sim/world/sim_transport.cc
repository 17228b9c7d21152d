#include "sim/world/sim_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/world/engine.h"
#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

Duration us(double value) { return Duration::from_ns(static_cast<int64_t>(value * 1e3)); }

const RegionKey& source_key(const StepSpan& steps) {
  return steps.work().source_regions[steps.steps().front().source_region];
}
const RegionKey& target_key(const StepSpan& steps) {
  return steps.work().target_regions[steps.steps().front().target_region];
}

}  // namespace

// Modelled: the time to post descriptors, one flow for all bytes of a copy, bytes that land in the order of the steps,
// a flow that ends early with the bytes that it has moved. Not modelled: two flows for one copy, reordering within a
// copy, and a rate that depends on the size of the pieces.
Status SimTransport::post_copy(OpId op, const Grant& grant, const StepSpan& steps) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects, node_.accept(op, "copy", true));
  uint64_t ranges = 0;
  for (const CopyStep& step : steps.steps()) ranges += step.range_count();
  const CostSpec& costs = world.cluster().costs;
  const TimePoint start = node_.next_start(costs.post_us + static_cast<double>(ranges) * costs.descriptor_ns / 1e3);
  if (effects.fails) {
    ++failed_copy_count_;
    node_.complete_after(start - world.now(), op, completion_of(Status(Code::kUnavailable, "made to fail")));
    return Status();
  }
  const auto copy = std::make_shared<Copy>();
  copy->op = op;
  copy->grant = grant.id;
  copy->steps = steps;
  copy->bytes = steps.total_bytes();
  // One thing goes wrong with a copy: of a lost reply, a flipped bit, a late and a torn write, the first.
  copy->flips_bit = effects.flips_bit && !effects.loses_reply;
  if (effects.loses_reply)
    copy->fails_after = PartialWrite{100, std::nullopt};
  else if (!effects.flips_bit)
    copy->fails_after = effects.late ? effects.late : effects.torn;
  copies_[op] = copy;
  world.engine().at(start + effects.starts_later, [this, copy] { begin(copy); });
  return Status();
}

// Also goes on with a copy that was paused; it may have been ended since.
void SimTransport::begin(const CopyPointer& copy) {
  if (copy->is_over || copy->is_flowing) return;
  if (copy->bytes == 0) return end(copy, Status());
  // Looked at when the copy begins and not when it is posted: a revoke in between has to refuse it (R6).
  if (Status status = node_.world().memory().check_copy(copy->grant, copy->steps); !status.ok())
    return end(copy, std::move(status));
  flow(copy);
}

void SimTransport::flow(const CopyPointer& copy) {
  SimWorld& world = node_.world();
  const SimMember* const source = world.memory().owner(source_key(copy->steps));
  const SimMember* const target = world.memory().owner(target_key(copy->steps));
  // After a pause the flow carries what is left.
  copy->flow_begin = copy->landed;
  copy->is_flowing = true;
  copy->flow = world.start_flow(source->place, target->place, copy->bytes - copy->landed,
                                [this, copy](const FlowResult& result) { flow_ended(copy, result); });
}

Status SimTransport::land(Copy& copy, uint64_t to) {
  if (to <= copy.landed) return Status();
  const bool flips = std::exchange(copy.flips_bit, false);
  return node_.world().memory().land(copy.grant, copy.steps, std::exchange(copy.landed, to), to, flips);
}

void SimTransport::land_later(const CopyPointer& copy, Duration delay) {
  node_.world().engine().after(delay, [this, copy] { (void)land(*copy, copy->bytes); });
}

void SimTransport::flow_ended(const CopyPointer& copy, const FlowResult& result) {
  SimWorld& world = node_.world();
  copy->is_flowing = false;
  const uint64_t moved = result.moved_bytes / world.options().bytes_scale;
  const bool is_done = result.end == FlowEnd::kDone;
  // A flow of scaled bytes that ends early has moved whole bytes of content, rounded down.
  const uint64_t reached = is_done ? copy->bytes : std::min(copy->flow_begin + moved, copy->bytes);
  const Stop why = std::exchange(copy->stop, Stop::kNone);
  // All bytes crossed the links, and less of them lands: the failure is at the receiver's end.
  if (is_done && copy->fails_after) {
    (void)land(*copy, std::max(copy->landed, copy->bytes * copy->fails_after->percent / 100));
    if (copy->fails_after->rest) land_later(copy, *copy->fails_after->rest);
    end(copy, Status(Code::kUnavailable, "made to fail after some of it had landed"));
  } else if (is_done) {
    end(copy, land(*copy, copy->bytes));
  } else {
    (void)land(*copy, reached);
    switch (why) {
      case Stop::kPause: break;  // interrupt_reads() starts it again
      case Stop::kRevoke: end(copy, Status(Code::kConflict, "a grant was revoked")); break;
      case Stop::kCancel: end(copy, Status(Code::kCancelled, "cancelled")); break;
      case Stop::kDeath:
        if (copy->fate == Fate::kLate) land_later(copy, copy->late_after);
        end(copy, Status(Code::kCancelled, "its poster died"));
        break;
      case Stop::kNone: end(copy, Status(Code::kUnavailable, "the way to the target broke")); break;
    }
  }
  for (const auto& stopped : std::exchange(copy->stopped, {})) stopped();
}

// Exactly once for each copy (I6): is_over and the removal from copies_ make sure that no other path ends it again.
void SimTransport::end(const CopyPointer& copy, Status status) {
  copy->is_over = true;
  copies_.erase(copy->op);
  if (!status.ok()) ++failed_copy_count_;
  node_.complete(copy->op, completion_of(std::move(status)));
}

void SimTransport::stop(const CopyPointer& copy, Stop why, std::function<void()> then) {
  if (copy->is_flowing) {
    // Two stops may meet one flow, a pause and a revoke for example; the stronger one decides, and both are told.
    copy->stop = std::max(copy->stop, why);
    if (then) copy->stopped.push_back(std::move(then));
    return node_.world().engine().cancel(copy->flow);
  }
  // Nothing of it has landed, and begin() will find is_over.
  // It has not begun.
  if (why != Stop::kPause) end(copy, Status(why == Stop::kRevoke ? Code::kConflict : Code::kCancelled, "never began"));
  if (then) then();
}

// A copy whose flow has begun goes on, as on real network interfaces.
void SimTransport::cancel(OpId op) {
  const auto found = copies_.find(op);
  if (found != copies_.end() && !found->second->is_flowing) stop(CopyPointer(found->second), Stop::kCancel, {});
}

void SimTransport::poster_died(Fate fate, Duration delay) {
  if (fate == Fate::kDone) return;
  // A copy, since stop() removes entries.
  const std::map<OpId, CopyPointer> all = copies_;
  for (const auto& [op, copy] : all) {
    copy->fate = fate;
    copy->late_after = delay;
    if (!copy->is_flowing && fate == Fate::kLate) land_later(copy, delay);
    stop(copy, Stop::kDeath, {});
  }
}

Status SimTransport::post_checksum(OpId op, const StepSpan& steps, StepEnd end) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects, node_.accept(op, "checksum", true));
  // At the speed at which the device reads its memory.
  const MachineSpec& machine = world.cluster().machine;
  const double rate = node_.place().kind == PlaceKind::kGpu ? machine.hbm_gbyte_per_s : machine.dram_gbyte_per_s;
  const double read_us = static_cast<double>(world.wire_bytes(steps.total_bytes())) / (rate * 1e3);
  const TimePoint done = node_.next_start(world.cluster().costs.post_us) + us(read_us) + effects.starts_later;
  const bool fails = effects.fails;
  world.engine().at(done, [this, op, steps, end, fails] {
    if (fails) return node_.complete(op, completion_of(Status(Code::kUnavailable, "made to fail")));
    const Result<uint32_t> sum = node_.world().memory().checksum(steps, end);
    if (!sum.ok()) return node_.complete(op, completion_of(sum.status()));
    node_.complete(op, completion_of(Result<StepsChecksum>(StepsChecksum{sum.value()})));
  });
  return Status();
}

// Of a control operation: it happens in full, and the caller gets kOutcomeUnknown where its reply is lost (R4).
Status SimTransport::post_grant(OpId op, const GrantRequest& request) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects, node_.accept(op, "grant", false));
  const TimePoint start = node_.next_start(world.cluster().costs.post_us) + effects.starts_later;
  world.engine().at(start, [this, op, request, effects] {
    if (effects.fails) return node_.complete(op, completion_of(Status(Code::kUnavailable, "made to fail")));
    Status status = node_.world().memory().grant(request);
    if (status.ok() && effects.loses_reply) status = Status(Code::kOutcomeUnknown, "the reply was lost");
    node_.complete(op, status.ok() ? completion_of(Result<Grant>(Grant{request.id, {}})) : completion_of(status));
  });
  return Status();
}

Status SimTransport::post_revoke(OpId op, const RevokeRequest& request) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects, node_.accept(op, "revoke", false));
  const TimePoint start = node_.next_start(world.cluster().costs.post_us) + effects.starts_later;
  world.engine().at(start, [this, op, grant = request.id, effects] {
    if (effects.fails) return node_.complete(op, completion_of(Status(Code::kUnavailable, "made to fail")));
    node_.world().revoke(grant, [this, op, effects](Status status) {
      if (effects.loses_reply && status.ok()) status = Status(Code::kOutcomeUnknown, "the reply was lost");
      node_.complete(op, completion_of(std::move(status)));
    });
  });
  return Status();
}

}  // namespace crossdock
