#include "cli/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "cli/command.h"
#include "sim/scenario_run.h"

namespace crossdock::cli {
namespace {

constexpr uint64_t kScenarioBytesMax = uint64_t{64} << 20;
constexpr uint64_t kEventsBefore = 20;  // that a replay line shows
constexpr uint64_t kEventsAfter = 12;

}  // namespace

std::optional<Scenario> load_scenario(const std::string& path) {
  const Result<std::string> text = read_file(path, kScenarioBytesMax);
  if (!text.ok()) {
    fail(kBadInput, text.status().message());
    return std::nullopt;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Faults faults("scenario");
  std::optional<Scenario> scenario = read_scenario(
      text.value(),
      [&](const std::string& name) -> std::optional<std::string> {
        if (name.empty() || name.find('/') != std::string::npos) return std::nullopt;
        for (const std::filesystem::path& beside : {folder / "clusters", folder / ".." / "clusters"}) {
          Result<std::string> cluster = read_file((beside / (name + ".json")).string(), kScenarioBytesMax);
          if (cluster.ok()) return std::move(cluster).value();
        }
        return std::nullopt;
      },
      "scenario", faults);
  if (!scenario) fail(path, faults);
  return scenario;
}

std::string summary_text(const Scenario& scenario, uint64_t seed) {
  const Result<RunReport> report = run_scenario(scenario, ScenarioOptions{seed, false});
  if (report.ok()) return to_json(summary_of(report.value()));
  RunSummary broken;
  broken.scenario = scenario.name;
  broken.error = report.status().message();
  return to_json(broken);
}

RunSummary summary_from(const Scenario& scenario, uint64_t seed, const Result<std::string>& said) {
  std::optional<RunSummary> summary;
  if (said.ok()) summary = read_summary(said.value());
  if (summary) return std::move(*summary);
  RunSummary failed;
  failed.scenario = scenario.name;
  failed.seed = seed;
  failed.error = said.ok() ? "the run said nothing that can be read" : said.status().message();
  return failed;
}

unsigned worker_count() { return std::max(1u, std::thread::hardware_concurrency()); }

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
