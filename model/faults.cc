#include "model/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace crossdock {

const std::vector<RuleInfo>& rule_table() {
  static const std::vector<RuleInfo> table = {
#define CROSSDOCK_RULE(constant, name, summary) {Rule::constant, name, summary},
#include "model/rules.inc"
#undef CROSSDOCK_RULE
  };
  return table;
}

std::string_view rule_name(Rule rule) { return rule_table()[static_cast<size_t>(rule)].name; }

std::string Fault::to_line() const {
  const std::string where = place.empty() ? document : fmt::format("{} {}", document, place);
  return printable(fmt::format("{}: {} [{}]", where, message, rule_name(rule)));
}

void Faults::add(Rule rule, std::string place, std::string message) {
  ++total_;
  if (!full()) kept_.push_back(Fault{rule, document_, std::move(place), std::move(message)});
}

void Faults::take(const Faults& other) {
  total_ += other.total_;
  for (const Fault& fault : other.kept_)
    if (!full()) kept_.push_back(fault);
}

bool Faults::has(Rule rule) const {
  return std::any_of(kept_.begin(), kept_.end(), [rule](const Fault& fault) { return fault.rule == rule; });
}

Status Faults::to_status() const {
  CHECK(!empty());
  std::string message = kept_.empty() ? document_ : kept_.front().to_line();
  if (total_ > 1) message += fmt::format(" (and {} more)", total_ - 1);
  return Status(Code::kInvalidArgument, std::move(message));
}

}  // namespace crossdock
