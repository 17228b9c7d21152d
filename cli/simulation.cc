#include "cli/simulation.h"

#include <fmt/format.h>

#include "base/file.h"
#include "cli/output.h"
#include "sim/scenario/scenario_files.h"

namespace crossdock::cli {
namespace {

constexpr uint64_t kScenarioBytesMax = uint64_t{64} << 20;
constexpr uint64_t kEventsBefore = 20;  // the violation, in a replay line
constexpr uint64_t kEventsAfter = 12;

}  // namespace

std::optional<Scenario> load_scenario(const std::string& path) {
  const Result<std::string> text = read_file(path, kScenarioBytesMax);
  if (!text.ok()) {
    fail(kBadInput, text.status().message());
    return std::nullopt;
  }
  Diagnostics diagnostics("scenario");
  std::optional<Scenario> scenario = read_scenario(text.value(), clusters_beside(path), "scenario", diagnostics);
  if (!scenario) fail(path, diagnostics);
  return scenario;
}

std::string milliseconds(uint64_t ns) { return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6); }

std::string replay_line(const std::string& path, uint64_t seed, const Violation* violation) {
  std::string line = fmt::format("crossdock simulate --scenario {} --seed {}", path, seed);
  if (violation != nullptr) {
    const uint64_t begin = violation->event > kEventsBefore ? violation->event - kEventsBefore : 0;
    line += fmt::format(" --trace op:{}-{}", begin, violation->event + kEventsAfter);
  }
  return line;
}

}  // namespace crossdock::cli
