#include "sim/world/sim_runtime.h"

#include <fmt/format.h>

#include <utility>

#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

// Modelled: the time of registration, a call that fails, one whose reply is lost, pages that are held once and released
// once. Not modelled: a framework that runs out of pages, or that finds content invalid; validate is always OK.

constexpr double kCallUs = 5;  // of a call into the framework that registers nothing

}  // namespace

Status SimRuntime::post(OpId op, RuntimeCall what, const HoldId& hold, double cost_us, const Call& call) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects,
      node_.accept(op, std::string(kRuntimeCallNames[static_cast<size_t>(what)]), false));
  const TimePoint done = node_.next_start(cost_us) + effects.starts_later;
  world.engine().at(done, [this, op, what, hold, effects, call] {
    // The framework is part of the process and dies with it: the call does not happen.
    if (node_.is_dead()) return;
    if (effects.fails) {
      // Registration fails for good; other calls may pass the next time.
      const bool registers = what == RuntimeCall::kPin || what == RuntimeCall::kReserve;
      return node_.complete(
          op,
          completion_of(Status(registers ? Code::kIo : Code::kUnavailable,
                               fmt::format("the runtime cannot {}", kRuntimeCallNames[static_cast<size_t>(what)]))));
    }
    const auto found = members_.find(hold.participant);
    if (found == members_.end())
      return node_.complete(op, completion_of(Status(Code::kNotFound, "the runtime has no such participant")));
    SimMember& member = *found->second;
    // One hold for each member: its pages were made for one operation.
    if (member.hold && *member.hold != hold)
      return node_.complete(op, completion_of(Status(Code::kConflict, "another hold has these pages")));
    member.hold = hold;
    Completion completion = call(member);
    if (effects.loses_reply && completion.status.ok())
      completion = completion_of(Status(Code::kOutcomeUnknown, "the reply was lost"));
    node_.complete(op, std::move(completion));
  });
  return Status();
}

Status SimRuntime::take(OpId op, RuntimeCall what, const HoldId& hold) {
  SimWorld& world = node_.world();
  const CostSpec& costs = world.cluster().costs;
  double cost_us = kCallUs;
  if (const auto found = members_.find(hold.participant); found != members_.end())
    for (const Region& region : (*found->second->binding)->regions)
      cost_us += costs.registration_us +
                 costs.registration_us_per_gbyte * static_cast<double>(world.wire_bytes(region.bytes)) / 1e9;
  return post(op, what, hold, cost_us, [&world](SimMember& member) {
    Completion completion;
    completion.result = AnyBinding(member.binding);
    // Repeated (R4): the same answer, and the regions are registered.
    if (member.is_held) return completion;
    if (member.is_active || member.is_released)
      return completion_of(Status(Code::kConflict, "was activated or released before"));
    if (const Status added = world.memory().register_regions(member); !added.ok()) return completion_of(added);
    ++member.holds;
    member.is_held = true;
    return completion;
  });
}

Status SimRuntime::post_pin(OpId op, const HoldId& hold) { return take(op, RuntimeCall::kPin, hold); }
Status SimRuntime::post_reserve(OpId op, const HoldId& hold) { return take(op, RuntimeCall::kReserve, hold); }

Status SimRuntime::post_validate(OpId op, const HoldId& hold) {
  return post(op, RuntimeCall::kValidate, hold, kCallUs, [](SimMember& member) {
    return member.is_held ? Completion() : completion_of(Status(Code::kConflict, "is not reserved"));
  });
}

Status SimRuntime::post_activate(OpId op, const HoldId& hold) {
  return post(op, RuntimeCall::kActivate, hold, kCallUs, [this](SimMember& member) {
    if (member.is_active) return Completion();
    if (!member.is_held) return completion_of(Status(Code::kConflict, "is not reserved"));
    // Before the state changes: the check of I1 and I5 reads what the pages hold at this moment.
    if (hooks_ != nullptr) hooks_->activating(member);
    ++member.activations;
    member.is_held = false;
    member.is_active = true;
    member.active_since = node_.now();
    return Completion();
  });
}

Status SimRuntime::post_release(OpId op, const HoldId& hold) {
  return post(op, RuntimeCall::kRelease, hold, kCallUs, [this](SimMember& member) {
    if (member.is_active) return completion_of(Status(Code::kConflict, "is active"));
    // What was never held is never held afterwards.
    member.is_released = true;
    if (!member.is_held) return Completion();
    ++member.releases;
    member.is_held = false;
    if (hooks_ != nullptr) hooks_->released(member);
    return Completion();
  });
}

}  // namespace crossdock
