#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/number_text.h"
#include "base/thread_count.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/interrupt.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/simulation.h"
#include "cli/simulator.h"
#include "cli/table.h"
#include "model/wire/json_writer.h"
#include "sim/run/islands.h"
#include "sim/run/isolated.h"
#include "sim/run/play.h"

namespace crossdock::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string scenario;
  uint64_t seed = 1;
  std::string trace;
  std::string report;
  bool islands = false;
  bool json = false;
  bool quiet = false;
};

std::string duration_text(Duration duration) { return milliseconds(static_cast<uint64_t>(duration.ns())); }

// On the wire.
std::string rate_of(const WorkResult& work, uint64_t bytes_scale) {
  const auto ns = static_cast<double>((work.done - work.begin).ns());
  if (work.bytes == 0 || ns <= 0) return "";
  return fmt::format("{:.2f} GB/s", static_cast<double>(work.bytes) * static_cast<double>(bytes_scale) / ns);
}

std::string report_text(const RunReport& report, const std::string& path, uint64_t bytes_scale) {
  std::string text = fmt::format("{}: {}\n", printable(report.scenario), printable(report.shows));
  text += fmt::format("cluster {}, seed {}, {} of simulated time, digest {}\n\n", printable(report.cluster),
                      report.seed, duration_text(report.duration), report.digest);
  Table works({"work", "kind", "verdict", "begin", "took", "ended after", "content bytes", "rate"});
  for (const WorkResult& work : report.works)
    works.add({work.name, work.kind, work.verdict, duration_text(work.begin - report.origin),
               duration_text(work.done - work.begin), duration_text(work.end - work.begin), grouped(work.bytes),
               rate_of(work, bytes_scale)});
  text += works.text();
  for (const WorkResult& work : report.works)
    if (!work.cause.empty()) text += fmt::format("{}: {}\n", printable(work.name), printable(work.cause));
  text += "\n";
  Table invariants({"invariant", "checks", "violations", "rule"});
  for (const InvariantResult& each : report.invariants)
    invariants.add({each.invariant, grouped(each.check_count), grouped(each.violation_count), each.rule});
  text += invariants.text() + "\n";
  for (const Violation& each : report.violations)
    text += fmt::format("VIOLATED: {}\n  {}\n", printable(violation_text(each, report.origin)),
                        replay_line(path, report.seed, &each));
  for (const std::string& each : report.unmet) text += fmt::format("never happened: {}\n", printable(each));
  if (!report.expected.empty())
    text += fmt::format("expected: {}\nactual:   {}\n", printable(report.expected), printable(report.actual));
  return text + (report.as_expected ? "as expected\n" : "NOT AS EXPECTED\n");
}

// Parses "op:A-B".
std::optional<std::pair<uint64_t, uint64_t>> event_range(const std::string& text) {
  if (!text.starts_with("op:")) return std::nullopt;
  const size_t dash = text.find('-', 3);
  if (dash == std::string::npos) return std::nullopt;
  const auto begin = decimal(text.substr(3, dash - 3));
  const auto end = decimal(text.substr(dash + 1));
  if (!begin || !end || *begin > *end) return std::nullopt;
  return std::pair(*begin, *end);
}

std::string events_text(const RunReport& report, std::pair<uint64_t, uint64_t> range) {
  std::string text;
  for (const TraceEvent& event : report.trace.events) {
    if (event.event < range.first || event.event > range.second || event.category == "flow") continue;
    const TraceTrack& track = report.trace.tracks[event.track];
    std::string line =
        fmt::format("{:>6} {:>14}  {}/{}: {} {}", event.event, duration_text(event.begin - report.origin), track.group,
                    track.name, event.category, event.name);
    if (event.end != TimePoint::never() && event.end > event.begin)
      line += fmt::format(" for {}", duration_text(event.end - event.begin));
    for (const auto& [key, value] : event.args)
      if (!value.empty()) line += fmt::format(", {}: {}", key, value);
    text += printable(line) + "\n";
  }
  return text;
}

// In this process, since there is one run (one engine) and its trace is large.
int run_one(const Options& options, const std::string& path) {
  const std::optional<Scenario> scenario = load_scenario(path);
  if (!scenario) return kBadInput;
  std::optional<std::pair<uint64_t, uint64_t>> range;
  if (options.trace.starts_with("op:")) {
    range = event_range(options.trace);
    if (!range)
      return fail(kBadInput, fmt::format("--trace '{}' is not a file or a range like op:380-412", options.trace));
  }
  const bool keeps_trace = !options.trace.empty() || !options.report.empty();
  const Result<RunReport> run = run_scenario(*scenario, ScenarioOptions{options.seed, keeps_trace});
  if (!run.ok()) return fail(kBadInput, fmt::format("{}: {}", path, run.status().message()));
  RunReport report = run.value();
  report.replay = replay_line(path, options.seed, report.violations.empty() ? nullptr : &report.violations.front());
  if (range)
    print(events_text(report, *range));
  else if (!options.trace.empty())
    if (const int code = write_output(options.trace, perfetto_json(report.trace, report.links, report.origin), "trace");
        code != kDone)
      return code;
  if (!options.report.empty())
    if (const int code = write_output(options.report, report_html(report), "report"); code != kDone) return code;
  if (options.json)
    print(to_json(summary_of(report)) + "\n");
  else if (!range)
    print(report_text(report, path, scenario->bytes_scale));
  return report.as_expected ? kDone : kFailed;
}

// Parts that share no link are independent; each runs in its own process.
int run_islands(const Options& options, const std::string& path) {
  const std::optional<Scenario> scenario = load_scenario(path);
  if (!scenario) return kBadInput;
  const std::vector<Scenario> parts = islands_of(*scenario);
  const InterruptFlag interrupt;
  std::map<std::string, uint64_t> verdicts;
  std::string details;
  std::string json;
  bool is_right = true;
  uint64_t duration_ns = 0;
  uint64_t bytes = 0;
  uint64_t ran = 0;
  ProgressClock progress(options.quiet || options.json);
  run_many_isolated(
      parts.size(), static_cast<unsigned>(thread_count_or_all(0)), Duration::from_s(86400),
      [&](uint64_t i) { return play(parts[i], ScenarioOptions{options.seed}); },
      [&](uint64_t i, Result<std::string> said) {
        const RunSummary summary = summary_of_play(parts[i].name, options.seed, said);
        ++ran;
        for (const std::string& verdict : summary.verdicts) ++verdicts[verdict];
        is_right &= summary.error.empty() && summary.as_expected;
        duration_ns = std::max(duration_ns, summary.duration_ns);
        bytes += summary.bytes;
        if (!summary.error.empty()) details += fmt::format("island {}: {}\n", i, printable(summary.error));
        for (const Violation& each : summary.violations)
          details += fmt::format("island {}: {}\n", i, printable(violation_text(each, TimePoint())));
        json += (json.empty() ? "" : ",") + to_json(summary);
        if (progress.is_due()) tell(fmt::format("{} of {} islands", grouped(ran), grouped(parts.size())));
        return !interrupt.is_set();
      });
  // An interrupt leaves islands out; a part of a result is not "as expected".
  is_right &= ran == parts.size();
  if (ran < parts.size() && options.json)
    return fail(kFailed, fmt::format("interrupted: {} of {} islands did not run", parts.size() - ran, parts.size()));
  if (options.json) {
    print("[" + json + "]\n");
    return is_right ? kDone : kFailed;
  }
  print(fmt::format("{}: {} islands, {} of simulated time, {} content bytes\n", printable(scenario->name), parts.size(),
                    milliseconds(duration_ns), grouped(bytes)));
  for (const auto& [verdict, count] : verdicts) print(fmt::format("{} {}\n", grouped(count), verdict));
  if (ran < parts.size()) details += fmt::format("interrupted: {} islands did not run\n", parts.size() - ran);
  print(details + (is_right ? "as expected\n" : "NOT AS EXPECTED\n"));
  return is_right ? kDone : kFailed;
}

// Runs each scenario twice: equal seeds give equal runs (I7).
int run_all(const Options& options, const std::vector<std::string>& files) {
  std::vector<Scenario> scenarios;
  bool all_read = true;
  // All are read before the first runs, so that a mistake in the last one is reported at once.
  for (const std::string& file : files) {
    std::optional<Scenario> scenario = load_scenario(file);
    all_read &= scenario.has_value();
    if (scenario) scenarios.push_back(std::move(*scenario));
  }
  if (!all_read) return kBadInput;
  const InterruptFlag interrupt;
  Table table({"scenario", "expected", "actual", "simulated", "digest", "verdict"});
  std::string details;
  std::string json;
  size_t differing = 0;
  size_t ran = 0;
  ProgressClock progress(options.quiet || options.json);
  RunSummary first;
  run_many_isolated(
      2 * files.size(), static_cast<unsigned>(thread_count_or_all(0)), Duration::from_s(600),
      [&](uint64_t i) { return play(scenarios[i / 2], ScenarioOptions{options.seed}); },
      [&](uint64_t i, Result<std::string> said) {
        RunSummary summary = summary_of_play(scenarios[i / 2].name, options.seed, said);
        if (i % 2 == 0) {
          first = std::move(summary);
          return !interrupt.is_set();
        }
        const std::string& file = files[i / 2];
        const bool is_same = summary.digest == first.digest;
        const bool is_right = summary.error.empty() && summary.as_expected && is_same;
        ++ran;
        differing += is_right ? 0 : 1;
        table.add({scenarios[i / 2].name, summary.expected, summary.actual, milliseconds(summary.duration_ns),
                   summary.digest.substr(0, 12), is_right ? "as expected" : "DIFFERENT"});
        json += (json.empty() ? "" : ",") + to_json(summary);
        if (!summary.error.empty()) details += fmt::format("{}: {}\n", file, printable(summary.error));
        if (!is_same) details += fmt::format("{}: I7: two runs of seed {} differ\n", file, options.seed);
        if (!summary.as_expected)
          for (const Violation& each : summary.violations)
            details += fmt::format("{}: {}\n  {}\n", file, printable(violation_text(each, TimePoint())),
                                   replay_line(file, options.seed, &each));
        if (!is_right && summary.violations.empty())
          details += fmt::format("  {}\n", replay_line(file, options.seed, nullptr));
        if (!options.json) log_info(fmt::format("{}: {}", file, is_right ? "as expected" : "different"));
        if (progress.is_due())
          tell(fmt::format("{} of {} scenarios, {} different", grouped(ran), grouped(files.size()), differing));
        return !interrupt.is_set();
      });
  if (ran < files.size() && options.json)
    return fail(kFailed, fmt::format("interrupted: {} of {} scenarios did not run", files.size() - ran, files.size()));
  if (options.json) {
    print("[" + json + "]\n");
  } else {
    print(table.text());
    print(details);
    print(fmt::format("{} of {} scenarios as expected, each run twice with equal digests\n", ran - differing,
                      files.size()));
    if (ran < files.size()) print(fmt::format("interrupted: {} of them did not run\n", files.size() - ran));
  }
  return differing == 0 && ran == files.size() ? kDone : kFailed;
}

int run(const Options& options) {
  std::vector<std::string> paths = options.paths;
  if (!options.scenario.empty()) paths.push_back(options.scenario);
  if (paths.empty()) return fail(kBadInput, "no scenario: give a file or a folder of scenarios");
  std::vector<std::string> files;
  if (!list_documents(paths, files)) return kBadInput;
  const bool is_folder = std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error);
  });
  if (options.islands && (files.size() != 1 || !options.trace.empty() || !options.report.empty()))
    return fail(kBadInput, "--islands takes one scenario, without --trace and --report");
  if (options.islands) return run_islands(options, files.front());
  if (files.size() == 1 && !is_folder) return run_one(options, files.front());
  if (!options.trace.empty() || !options.report.empty())
    return fail(kBadInput, "--trace and --report take one scenario");
  return run_all(options, files);
}

}  // namespace

void add_simulate_command(Command& app) {
  Command command = app.subcommand("simulate", kSimulateHelp);
  const auto options = std::make_shared<Options>();
  command.texts("SCENARIO", options->paths, "TEXT", "Scenario files, or folders of them");
  command.text("--scenario", options->scenario, "FILE", "One scenario file, as an option");
  command.number("--seed", options->seed, 0, UINT64_MAX, "Seed of every random draw");
  command.text("--trace", options->trace, "FILE|op:A-B",
               "Write a Chrome/Perfetto trace, or print the events from protocol event A to B");
  command.text("--report", options->report, "FILE", "Write an HTML page with timeline, links, invariants and traffic");
  command.flag("--islands", options->islands,
               "Simulate works that share no link in separate processes; times do not change");
  command.flag("--json", options->json, "Print the result as JSON");
  command.flag("--quiet", options->quiet, "Do not show progress");
  command.explain(
      "The protocols are the production code. Memory, stores, links, disks, crashes and lost messages are simulated. "
      "The same scenario and seed give the same run.\n"
      "Exit status: 0 every scenario ends as it expects, 1 one does not, 2 bad input.",
      {"crossdock simulate scenarios/peer_crash_mid_transfer.json --report crash.html", "crossdock simulate scenarios/",
       "crossdock simulate --scenario scenarios/peer_crash_mid_transfer.json --seed 7 --trace op:380-412"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
