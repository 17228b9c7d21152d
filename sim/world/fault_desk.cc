#include "sim/world/fault_desk.h"

#include <fmt/format.h>

#include "sim/scenario/name_pattern.h"

namespace crossdock {

// Counts every event that matches; from the nth on each one is a hit, up to the fault's count.
bool FaultDesk::counts(Armed& armed, std::string_view peer, std::string_view event) const {
  const WhenSpec& when = *armed.fault->when;
  if (!matches_pattern(when.event, event) || !matches_pattern(when.peer, peer)) return false;
  return ++armed.seen >= when.nth;
}

std::vector<const FaultSpec*> FaultDesk::meet(std::string_view peer, std::string_view event, TimePoint now) {
  std::vector<const FaultSpec*> met;
  for (Armed& armed : armed_) {
    const FaultSpec& fault = *armed.fault;
    if (!is_operation_fault(fault.kind) || armed.hits >= fault.count) continue;
    // Before counts(): what happens outside of its time does not count towards `nth`.
    if (fault.at && now < origin_ + *fault.at) continue;
    if (fault.at && fault.lasts > Duration() && now >= origin_ + *fault.at + fault.lasts) continue;
    if (!counts(armed, peer, event)) continue;
    ++armed.hits;
    met.push_back(&fault);
  }
  return met;
}

std::vector<const FaultSpec*> FaultDesk::triggered_by(std::string_view peer, std::string_view event) {
  std::vector<const FaultSpec*> met;
  for (Armed& armed : armed_) {
    const FaultSpec& fault = *armed.fault;
    if (is_operation_fault(fault.kind) || !fault.when || armed.hits >= fault.count) continue;
    if (!counts(armed, peer, event)) continue;
    ++armed.hits;
    met.push_back(&fault);
  }
  return met;
}

std::vector<std::string> FaultDesk::unmet() const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < armed_.size(); ++i) {
    const FaultSpec& fault = *armed_[i].fault;
    if (!fault.when || armed_[i].hits > 0) continue;
    texts.push_back(fmt::format("faults[{}] {}: '{}' came {} times to '{}', not {}", i, fault_kind_name(fault.kind),
                                fault.when->peer, armed_[i].seen, fault.when->event, fault.when->nth));
  }
  return texts;
}

}  // namespace crossdock
