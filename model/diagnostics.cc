#include "model/diagnostics.h"

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

std::string Diagnostic::to_line() const {
  const std::string where = place.empty() ? document : fmt::format("{} {}", document, place);
  return printable(fmt::format("{}: {} [{}]", where, message, rule_name(rule)));
}

void Diagnostics::add(Rule rule, std::string place, std::string message) {
  ++total_;
  if (!full()) kept_.push_back(Diagnostic{rule, document_, std::move(place), std::move(message)});
}

void Diagnostics::take(const Diagnostics& other) {
  total_ += other.total_;
  for (const Diagnostic& diagnostic : other.kept_)
    if (!full()) kept_.push_back(diagnostic);
}

bool Diagnostics::has(Rule rule) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [rule](const Diagnostic& diagnostic) { return diagnostic.rule == rule; });
}

Status Diagnostics::to_status() const {
  CHECK(!empty());
  std::string message = kept_.empty() ? document_ : kept_.front().to_line();
  if (total_ > 1) message += fmt::format(" (and {} more)", total_ - 1);
  return Status(Code::kInvalidArgument, std::move(message));
}

}  // namespace crossdock
