#include "tests/support/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/rng.h"

namespace crossdock::testing {
namespace {

constexpr std::array<std::string_view, kFaultCallCount> kCallNames = {
    "copy", "checksum", "revoke", "begin", "put", "commit", "abort", "lookup", "get", "release", "send", "recv"};
constexpr std::array<std::string_view, kFaultKindCount> kKindNames = {
    "fail-before", "fail-after", "partial", "late", "held", "refuse", "lose", "double", "reorder"};

constexpr uint64_t kCountMax = 4;

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

bool is_possible(FaultCall call, FaultKind kind) {
  switch (kind) {
    case FaultKind::kPartial: return call == FaultCall::kCopy || call == FaultCall::kGet;
    case FaultKind::kLose:
    case FaultKind::kDouble:
    case FaultKind::kReorder: return call == FaultCall::kSend;
    default: return true;
  }
}

std::string FaultPlan::to_text() const {
  std::string text = fmt::format("seed {}", seed);
  for (size_t i = 0; i < faults.size(); ++i)
    text += fmt::format("{} {} {} {} {}", i == 0 ? ":" : ",", kCallNames[static_cast<size_t>(faults[i].call)],
                        faults[i].nth, kKindNames[static_cast<size_t>(faults[i].kind)], faults[i].count);
  return text;
}

std::optional<FaultPlan> FaultPlan::from_text(std::string_view text) {
  FaultPlan plan;
  if (take_word(text) != "seed" || !take_number(text, plan.seed)) return std::nullopt;
  while (!text.empty()) {
    Fault fault;
    if (!take_name(text, kCallNames, fault.call) || !take_number(text, fault.nth) ||
        !take_name(text, kKindNames, fault.kind) || !take_number(text, fault.count) ||
        !is_possible(fault.call, fault.kind))
      return std::nullopt;
    plan.faults.push_back(fault);
  }
  return plan;
}

FaultPlan draw_faults(uint64_t seed, uint64_t operation_count, uint64_t chance) {
  Rng rng(seed);
  FaultPlan plan;
  plan.seed = seed;
  for (size_t call_number = 0; call_number < kFaultCallCount; ++call_number) {
    const auto call = static_cast<FaultCall>(call_number);
    std::vector<FaultKind> kinds;
    for (size_t kind_number = 0; kind_number < kFaultKindCount; ++kind_number) {
      const auto kind = static_cast<FaultKind>(kind_number);
      const bool is_on = rng.chance(1, 2);
      if (is_on && kind != FaultKind::kHeld && is_possible(call, kind)) kinds.push_back(kind);
    }
    for (uint64_t nth = 0; nth < operation_count && !kinds.empty(); ++nth) {
      if (!rng.chance(chance, 1000)) continue;
      const FaultKind kind = kinds[rng.below(kinds.size())];
      plan.faults.push_back(Fault{call, nth, kind, 1 + rng.below(kCountMax)});
    }
  }
  return plan;
}

}  // namespace crossdock::testing
