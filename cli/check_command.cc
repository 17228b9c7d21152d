#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>

#include "base/number_text.h"
#include "base/thread_count.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/simulation.h"
#include "cli/simulator.h"
#include "cli/table.h"
#include "model/wire/json_writer.h"
#include "sim/run/campaign.h"
#include "sim/run/isolated.h"
#include "sim/run/play.h"
#include "sim/scenario/name_pattern.h"

namespace crossdock::cli {
namespace {

// A campaign: trials run in children, each twice, and results are taken in the order of their numbers; so the output
// does not depend on how many run at once.

constexpr Duration kTrialLimit = Duration::from_s(20);
constexpr uint64_t kShrinkRuns = 400;
constexpr uint64_t kFailuresShown = 10;  // each of them is shrunk; the campaign stops after them

struct Options {
  uint64_t trials = 1000;
  uint64_t minutes = 0;
  uint64_t seed = 1;
  std::string only;
  std::string faults;
  std::string output = "check-failures";
  uint64_t jobs = 0;
  std::string print_trial;
  bool once = false;
  bool json = false;
  bool quiet = false;
};

std::optional<CampaignOptions> campaign_of(const Options& options) {
  CampaignOptions campaign;
  campaign.seed = options.seed;
  for (const std::string& name : comma_separated(options.only)) {
    const std::optional<WorkKind> kind = work_kind_named(name);
    if (!kind) {
      fail(kBadInput, fmt::format("--only '{}' is not one of transfer, upload, restore, traffic", name));
      return std::nullopt;
    }
    campaign.works.insert(*kind);
  }
  if (campaign.works.contains(WorkKind::kRestore)) campaign.works.insert(WorkKind::kUpload);  // of what it restores
  for (const std::string& name : comma_separated(options.faults)) {
    const std::set<FaultKind> kinds = fault_kinds_named(name);
    if (kinds.empty()) {
      fail(kBadInput,
           fmt::format("--faults '{}' is neither a kind of fault nor link, host, store, message, operation", name));
      return std::nullopt;
    }
    campaign.faults.insert(kinds.begin(), kinds.end());
  }
  return campaign;
}

struct Failure {
  uint64_t trial;
  std::string file;
  RunSummary summary;
  uint64_t seed;
};

class Campaign {
 public:
  Campaign(const Options& options, CampaignOptions campaign)
      : options_(options), campaign_(std::move(campaign)), begin_(std::chrono::steady_clock::now()) {}

  int run() {
    const auto jobs = static_cast<unsigned>(thread_count_or_all(options_.jobs));
    const uint64_t repeats = options_.once ? 1 : 2;
    RunSummary first;
    run_many_isolated(
        options_.trials * repeats, jobs, kTrialLimit,
        [&](uint64_t i) {
          return play(draw_scenario(campaign_, i / repeats), ScenarioOptions{trial_seed(campaign_, i / repeats)});
        },
        [&](uint64_t i, Result<std::string> said) {
          const uint64_t trial = i / repeats;
          RunSummary summary = summary_of_play("trial " + std::to_string(trial), trial_seed(campaign_, trial), said);
          ++runs_;
          if (i % repeats + 1 < repeats) {
            // Results come in order, so the next one is the second run of the same trial.
            first = std::move(summary);
            return !is_over();
          }
          if (repeats == 2 && first.digest != summary.digest)
            // First, so that it is the kind of this failure: what else is found in a run that cannot be repeated is not
            // shrunk.
            summary.violations.insert(summary.violations.begin(),
                                      Violation{"I7", TimePoint(), "two runs of one seed differ", 0});
          take(trial, std::move(summary));
          tell_progress();
          return !is_over();
        });
    shrink_failures();
    print(options_.json ? json() : text());
    return failures_.empty() && !interrupt_.is_set() ? kDone : kFailed;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  bool is_over() const {
    return interrupt_.is_set() || failures_.size() >= kFailuresShown ||
           (options_.minutes > 0 && seconds() > 60.0 * static_cast<double>(options_.minutes));
  }

  void take(uint64_t trial, RunSummary summary) {
    ++trials_;
    checks_ += summary.checks;
    for (const std::string& verdict : summary.verdicts) {
      ++outcomes_[verdict];
      ++works_[verdict.substr(0, verdict.find(' '))];
    }
    if (is_failure(summary)) failures_.push_back(Failure{trial, "", std::move(summary), trial_seed(campaign_, trial)});
  }

  void tell_progress() {
    if (!progress_.is_due()) return;
    tell(fmt::format("{} of {} trials, {:.0f} runs per second, {} failures", grouped(trials_), grouped(options_.trials),
                     static_cast<double>(runs_) / seconds(), failures_.size()));
  }

  void shrink_failures() {
    run_seconds_ = seconds();
    for (Failure& failure : failures_) {
      if (interrupt_.is_set()) return;
      // A scenario whose runs differ (I7) is not shrunk: one run cannot show that failure.
      const std::string kind = failure_kind(failure.summary);
      Scenario scenario = draw_scenario(campaign_, failure.trial);
      if (kind != "I7") {
        tell(fmt::format(
            "trial {}: {}; looking for a smaller scenario", failure.trial,
            failure.summary.error.empty() ? failure.summary.violations.front().what : failure.summary.error));
        scenario = shrink(scenario, kind, kShrinkRuns, [&](const Scenario& smaller) {
          const Result<std::string> said =
              run_isolated([&] { return play(smaller, ScenarioOptions{failure.seed}); }, kTrialLimit);
          const RunSummary summary = summary_of_play(smaller.name, failure.seed, said);
          // Of the smallest scenario that still fails, which shrink() tries last.
          if (failure_kind(summary) == kind) failure.summary = summary;
          return summary;
        });
      }
      std::error_code error;
      std::filesystem::create_directories(options_.output, error);
      scenario.shows = fmt::format("A failure of trial {} of seed {}.", failure.trial, options_.seed);
      failure.file = fmt::format("{}/{}.json", options_.output, scenario.name);
      if (write_output(failure.file, write_scenario(scenario), "") != kDone) failure.file = "(could not be written)";
    }
  }

  std::string text() const {
    std::string text = fmt::format("{} trials, {} runs in {:.1f} s ({:.0f} runs per second), {} checks\n",
                                   grouped(trials_), grouped(runs_), run_seconds_,
                                   static_cast<double>(runs_) / std::max(run_seconds_, 1e-9), grouped(checks_));
    Table table({"outcome", "times", "of its kind"});
    for (const auto& [outcome, count] : outcomes_)
      table.add({outcome, grouped(count),
                 fmt::format("{:.1f} %", 100.0 * static_cast<double>(count) /
                                             static_cast<double>(works_.at(outcome.substr(0, outcome.find(' ')))))});
    text += table.text();
    for (const Failure& failure : failures_) {
      text += fmt::format("\nFAILED: trial {} (seed {})\n", failure.trial, failure.seed);
      if (!failure.summary.error.empty()) text += "  " + printable(failure.summary.error) + "\n";
      for (size_t i = 0; i < std::min<size_t>(failure.summary.violations.size(), 3); ++i)
        text += "  " + printable(violation_text(failure.summary.violations[i], TimePoint())) + "\n";
      text += fmt::format("  {}\n",
                          replay_line(failure.file, failure.seed,
                                      failure.summary.violations.empty() ? nullptr : &failure.summary.violations[0]));
    }
    if (interrupt_.is_set()) text += "interrupted before the end\n";
    if (failures_.empty()) text += fmt::format("no violation (seed {})\n", options_.seed);
    return text;
  }

  std::string json() const {
    JsonWriter out;
    out.begin_object();
    out.key("checks").number(checks_);
    out.key("failures").begin_array();
    for (const Failure& failure : failures_) {
      out.begin_object();
      out.key("file").string(printable(failure.file));
      out.key("run").raw(to_json(failure.summary));
      out.key("seed").number(failure.seed);
      out.key("trial").number(failure.trial);
      out.end_object();
    }
    out.end_array();
    out.key("interrupted").boolean(interrupt_.is_set());
    out.key("outcomes").begin_object();
    for (const auto& [outcome, count] : outcomes_) out.key(outcome).number(count);
    out.end_object();
    out.key("runs").number(runs_);
    out.key("seed").number(options_.seed);
    out.key("trials").number(trials_);
    out.end_object();
    return out.take() + "\n";
  }

  const Options& options_;
  const CampaignOptions campaign_;
  const InterruptFlag interrupt_;
  const std::chrono::steady_clock::time_point begin_;
  ProgressClock progress_{options_.quiet || options_.json};
  double run_seconds_ = 0;
  uint64_t trials_ = 0;
  uint64_t runs_ = 0;
  uint64_t checks_ = 0;
  std::map<std::string, uint64_t> outcomes_;
  std::map<std::string, uint64_t> works_;
  std::vector<Failure> failures_;
};

int run(const Options& options) {
  std::optional<CampaignOptions> campaign = campaign_of(options);
  if (!campaign) return kBadInput;
  if (!options.print_trial.empty()) {
    const std::optional<uint64_t> trial = decimal(options.print_trial);
    if (!trial) return fail(kBadInput, fmt::format("--print-trial '{}' is not a number", options.print_trial));
    tell(fmt::format("run it with --seed {}", trial_seed(*campaign, *trial)));
    print(write_scenario(draw_scenario(*campaign, *trial)) + "\n");
    return kDone;
  }
  Options own = options;
  // Time is the limit; this many trials would take years.
  if (own.minutes > 0) own.trials = uint64_t{1} << 40;
  return Campaign(own, std::move(*campaign)).run();
}

}  // namespace

void add_check_command(Command& app) {
  Command command = app.subcommand("check", kCheckHelp);
  const auto options = std::make_shared<Options>();
  const Option trials = command.number("--trials", options->trials, 1, uint64_t{1} << 40, "Number of random scenarios");
  command.number("--minutes", options->minutes, 1, 100'000, "Run for this time instead of a number of trials")
      .excludes(trials);
  command.number("--seed", options->seed, 0, UINT64_MAX, "Seed of every random draw");
  command.text("--only", options->only, "WORK,...", "Kinds of work: transfer, upload, restore, traffic (default: all)");
  command.text("--faults", options->faults, "KIND,...",
               "Kinds of faults, or the groups link, host, store, message, operation (default: all)");
  command.text("--output", options->output, "FOLDER", "Folder for failing scenarios, after shrinking");
  command.number("--jobs", options->jobs, 1, 1024, "Runs in parallel (default: one per processor)");
  command.text("--print-trial", options->print_trial, "N", "Print the scenario of one trial and do not run it");
  command.flag("--once", options->once,
               "Run each scenario once (default: twice, to check that equal seeds give equal runs)");
  command.flag("--json", options->json, "Print the result as JSON");
  command.flag("--quiet", options->quiet, "Do not show progress");
  command.explain(
      "Each trial draws a cluster, a cache schema, layouts, works and faults, and runs them with the production "
      "protocols. Failures are shrunk and printed with the command that reproduces them.\n"
      "Exit status: 0 no violation, 1 a violation or an interrupt, 2 bad input.",
      {"crossdock check --trials 10000", "crossdock check --minutes 5 --seed 7 --only upload",
       "crossdock check --faults link,host,late_write"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
