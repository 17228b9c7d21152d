// Runs of scenarios in child processes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sim/run/isolated.h"
#include "sim/run/play.h"

namespace crossdock::testing {

// `prepare` is called in the child before the run.
inline RunSummary play_alone(
    const Scenario& scenario, const ScenarioOptions& options, const std::function<void()>& prepare = [] {}) {
  const Result<std::string> said = run_isolated(
      [&] {
        prepare();
        return play(scenario, options);
      },
      Duration::from_s(120));
  return summary_of_play(scenario.name, options.seed, said);
}

inline RunSummary play_alone(const Scenario& scenario, uint64_t seed) {
  return play_alone(scenario, ScenarioOptions{seed});
}

// For scenarios that name no cluster.
inline std::optional<std::string> no_cluster(const std::string&) { return std::nullopt; }

inline std::string violations_of(const RunSummary& summary) {
  std::string text = summary.error;
  for (const Violation& each : summary.violations) text += violation_text(each, TimePoint()) + "\n";
  return text;
}

// A scenario on a small cluster: `rest` has its works, faults and so on.
inline Scenario scenario_of(const std::string& rest) {
  const std::string cluster = R"({"schema":"crossdock.cluster","version":1,"name":"small","source":"for tests",
    "machine_count":3,"machine":{"gpu_count":2,"hbm_gbyte_per_s":2000,"nvlink":{"gbyte_per_s":400,"latency_us":1},
    "pcie":{"gbyte_per_s":50,"latency_us":1},"dram_gbyte_per_s":100,
    "ssd":{"read_gbyte_per_s":12,"write_gbyte_per_s":6,"latency_us":20},"nics":[{"gbit_per_s":400,"gpus":[0,1]}]},
    "fabric":{"machines_per_leaf":2,"rail_optimized":false,"oversubscription":1,"nic_latency_us":2,"leaf_latency_us":1},
    "costs":{"post_us":2,"descriptor_ns":50,"registration_us":10,"registration_us_per_gbyte":100,"message_us":5,
    "queue_depth":64}})";
  const std::string text = R"({"schema":"crossdock.scenario","version":1,"name":"test","shows":"For a test.",
    "bytes_scale":65536,"cluster":)" +
                           cluster + R"(,
    "model":[{"layers":2,"components":[{"name":"key","heads":4,"dim":2,"item_bytes":1},
    {"name":"value","heads":4,"dim":2,"item_bytes":1}]}],)" +
                           rest + "}";
  Diagnostics diagnostics("scenario");
  std::optional<Scenario> scenario = read_scenario(
      text, [](const std::string&) { return std::nullopt; }, "scenario", diagnostics);
  for (const Diagnostic& fault : diagnostics.kept()) ADD_FAILURE() << fault.to_line();
  return scenario ? *scenario : Scenario();
}

}  // namespace crossdock::testing
