#include "tests/support/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/rng.h"

namespace crossdock::testing {
namespace {

constexpr std::array<std::string_view, kPortCallCount> kCallNames = {
    "copy", "checksum", "grant", "revoke", "begin", "put",     "commit",   "abort",    "lookup",
    "get",  "release",  "send",  "recv",   "pin",   "reserve", "validate", "activate", "release-hold"};
constexpr std::array<std::string_view, kPortFaultKindCount> kKindNames = {
    "fail-before", "fail-after", "partial", "late",  "held",  "refuse",
    "lose",        "double",     "reorder", "break", "stall", "flip"};

constexpr uint64_t kCountMax = 4;
constexpr size_t kDrawnKindCount = 9;  // the first

// Takes a word off the front of the text, and one separator after it.
std::string_view take_word(std::string_view& text) {
  const size_t length = std::min(text.find_first_of(" :,"), text.size());
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  while (!text.empty() && std::string_view(" :,").find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  return word;
}

bool take_number(std::string_view& text, uint64_t& number) {
  const std::string_view word = take_word(text);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

template <class Value, size_t kCount>
bool take_name(std::string_view& text, const std::array<std::string_view, kCount>& names, Value& value) {
  const auto found = std::find(names.begin(), names.end(), take_word(text));
  value = static_cast<Value>(found - names.begin());
  return found != names.end();
}

}  // namespace

std::string to_text(const PortFaultPlan& plan) {
  std::string text = fmt::format("seed {}", plan.seed);
  for (size_t i = 0; i < plan.faults.size(); ++i)
    text += fmt::format("{} {} {} {} {}", i == 0 ? ":" : ",", kCallNames[static_cast<size_t>(plan.faults[i].call)],
                        plan.faults[i].nth, kKindNames[static_cast<size_t>(plan.faults[i].kind)], plan.faults[i].count);
  return text;
}

std::optional<PortFaultPlan> fault_plan_from_text(std::string_view text) {
  PortFaultPlan plan;
  if (take_word(text) != "seed" || !take_number(text, plan.seed)) return std::nullopt;
  while (!text.empty()) {
    PortFault fault;
    if (!take_name(text, kCallNames, fault.call) || !take_number(text, fault.nth) ||
        !take_name(text, kKindNames, fault.kind) || !take_number(text, fault.count) ||
        !is_possible(fault.call, fault.kind))
      return std::nullopt;
    plan.faults.push_back(fault);
  }
  return plan;
}

PortFaultPlan draw_faults(uint64_t seed, uint64_t operation_count, uint64_t chance) {
  Rng rng(seed);
  PortFaultPlan plan;
  plan.seed = seed;
  for (size_t call_number = 0; call_number < kPortCallCount; ++call_number) {
    const auto call = static_cast<PortCall>(call_number);
    std::vector<PortFaultKind> kinds;
    for (size_t kind_number = 0; kind_number < kDrawnKindCount; ++kind_number) {
      const auto kind = static_cast<PortFaultKind>(kind_number);
      const bool is_on = rng.chance(1, 2);
      if (is_on && kind != PortFaultKind::kHeld && is_possible(call, kind)) kinds.push_back(kind);
    }
    for (uint64_t nth = 0; nth < operation_count && !kinds.empty(); ++nth) {
      if (!rng.chance(chance, 1000)) continue;
      const PortFaultKind kind = kinds[rng.below(kinds.size())];
      plan.faults.push_back(PortFault{call, nth, kind, 1 + rng.below(kCountMax)});
    }
  }
  return plan;
}

}  // namespace crossdock::testing
