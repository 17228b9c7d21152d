#include "sim/world/operation_faults.h"

#include <algorithm>
#include <array>

namespace crossdock {
namespace {

struct OperationFault {
  FaultKind kind;
  void (*apply)(const FaultSpec& fault, OperationEffects& effects);
};

PartialWrite part_of(const FaultSpec& fault, std::optional<Duration> rest) {
  return PartialWrite{std::min<uint64_t>(fault.percent, 99), rest};  // all of it would be a lost reply
}

// A table, so that the compiler refuses a new kind of fault without an effect.
constexpr auto kOperationFaults = std::to_array<OperationFault>({
    {FaultKind::kRefused, [](const FaultSpec&, OperationEffects& effects) { effects.is_refused = true; }},
    {FaultKind::kFailed, [](const FaultSpec&, OperationEffects& effects) { effects.fails = true; }},
    {FaultKind::kReplyLost, [](const FaultSpec&, OperationEffects& effects) { effects.loses_reply = true; }},
    {FaultKind::kTornWrite,
     [](const FaultSpec& fault, OperationEffects& effects) { effects.torn = part_of(fault, std::nullopt); }},
    {FaultKind::kLateWrite,
     [](const FaultSpec& fault, OperationEffects& effects) { effects.late = part_of(fault, fault.delay); }},
    {FaultKind::kSlowOperation,
     [](const FaultSpec& fault, OperationEffects& effects) { effects.starts_later = fault.delay; }},
    {FaultKind::kBitFlip, [](const FaultSpec&, OperationEffects& effects) { effects.flips_bit = true; }},
    {FaultKind::kShortRead, [](const FaultSpec&, OperationEffects& effects) { effects.shortens_read = true; }},
    {FaultKind::kMessageLost, [](const FaultSpec&, OperationEffects& effects) { effects.loses_message = true; }},
    {FaultKind::kMessageDelayed,
     [](const FaultSpec& fault, OperationEffects& effects) { effects.message_later = fault.delay; }},
    {FaultKind::kMessageDoubled, [](const FaultSpec&, OperationEffects& effects) { effects.doubles_message = true; }},
});
static_assert(has_every_fault_kind(kOperationFaults, FaultScope::kOperation),
              "a kind of fault of operations has no effect here");

}  // namespace

OperationEffects effects_of(std::span<const FaultSpec* const> faults) {
  OperationEffects effects;
  for (const FaultSpec* fault : faults)
    for (const OperationFault& row : kOperationFaults)
      if (row.kind == fault->kind) row.apply(*fault, effects);
  return effects;
}

}  // namespace crossdock
