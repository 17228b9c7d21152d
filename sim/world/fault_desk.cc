#include "sim/world/fault_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crossdock {

bool matches_pattern(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= text.size(); ++at)
    if (matches_pattern(rest, text.substr(at))) return true;
  return false;
}

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

bool FaultDesk::counts(Armed& armed, std::string_view peer, std::string_view event) const {
  const WhenSpec& when = *armed.fault->when;
  if (!matches_pattern(when.event, event) || !matches_pattern(when.peer, peer)) return false;
  return ++armed.seen >= when.nth;
}

MetFaults FaultDesk::meet(std::string_view peer, std::string_view event, TimePoint now) {
  std::vector<const FaultSpec*> met;
  for (Armed& armed : armed_) {
    const FaultSpec& fault = *armed.fault;
    if (!is_operation_fault(fault.kind) || armed.hits >= fault.count) continue;
    if (fault.at && now < origin_ + *fault.at) continue;
    if (fault.at && fault.lasts > Duration() && now >= origin_ + *fault.at + fault.lasts) continue;
    if (!counts(armed, peer, event)) continue;
    ++armed.hits;
    met.push_back(&fault);
  }
  return MetFaults(std::move(met));
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
