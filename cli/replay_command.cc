#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/file.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/file_names.h"
#include "cli/output.h"
#include "executor/recording/recorder.h"
#include "executor/recording/values_json.h"

namespace crossdock::cli {
namespace {

constexpr uint64_t kRecordingBytesMax = uint64_t{4} << 30;
constexpr size_t kShownBytesMax = 400;  // of a post; --json prints all of it

struct Options {
  std::vector<std::string> paths;
  bool json = false;
};

// "12.000345000 s"
std::string seconds(Duration duration) {
  const int64_t ns = duration.ns();
  return fmt::format("{}.{:09} s", ns / 1'000'000'000, ns % 1'000'000'000);
}

std::string count_text(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

std::string shown(const std::string& text) { return printable(shorten(text, kShownBytesMax)); }

std::string report_text(const std::string& path, const ReplayReport& report) {
  std::string text =
      fmt::format("{}: {}, {}, {}, {}\n", printable(path), report.protocol, count_text(report.round_count, "round"),
                  count_text(report.post_count, "post"), count_text(report.completion_count, "completion"));
  for (const auto& [since, state] : report.states)
    text += fmt::format("{:>24}  {}\n", seconds(since - report.begin), printable(state));
  if (const auto& difference = report.difference)
    return text + fmt::format("different from round {} (line {}) on, in its {}\n  recorded: {}\n  replayed: {}\n",
                              difference->round, difference->line, difference->what, shown(difference->recorded),
                              shown(difference->replayed));
  return text + (report.finished ? "same as recorded\n" : "same as recorded, as far as that goes: it has no end\n");
}

void encode_difference(JsonWriter& out, const ReplayDifference& difference) {
  out.begin_object();
  out.key("line").number(difference.line);
  form::kText.write(out.key("recorded"), difference.recorded);
  form::kText.write(out.key("replayed"), difference.replayed);
  out.key("round").number(difference.round);
  out.key("what").string(difference.what);
  out.end_object();
}

std::string report_json(const std::string& path, const ReplayReport& report) {
  JsonWriter out;
  out.begin_object();
  out.key("completion_count").number(report.completion_count);
  if (report.difference) {
    out.key("difference");
    encode_difference(out, *report.difference);
  }
  out.key("finished").boolean(report.finished);
  out.key("path").string(json_path(path));
  out.key("post_count").number(report.post_count);
  out.key("protocol").string(report.protocol);
  out.key("round_count").number(report.round_count);
  out.key("same").boolean(!report.difference);
  out.key("states").begin_array();
  for (const auto& [since, state] : report.states) {
    out.begin_object();
    form::kText.write(out.key("state"), state);
    form::kNanoseconds.write(out.key("time_ns"), since);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

int run(const Options& options) {
  int exit_code = kDone;
  bool is_first = true;
  for (const std::string& path : options.paths) {
    const Result<std::string> text = read_file(path, kRecordingBytesMax);
    if (!text.ok()) {
      exit_code = fail(kBadInput, text.status().message());
      continue;
    }
    const Result<ReplayReport> report = replay(text.value());
    if (!report.ok()) {
      exit_code = fail(kBadInput, fmt::format("{}: {}", path, report.status().message()));
      continue;
    }
    if (options.json)
      print(report_json(path, report.value()));
    else
      print((is_first ? "" : "\n") + report_text(path, report.value()));
    is_first = false;
    // Bad input (2) outweighs a difference (1).
    if (report.value().difference) exit_code = std::max<int>(exit_code, kFailed);
  }
  return exit_code;
}

}  // namespace

void add_replay_command(Command& app) {
  Command command = app.subcommand("replay", "Run a recorded protocol again and report where it differs");
  const auto options = std::make_shared<Options>();
  command.texts("recordings", options->paths, "FILE", "Recordings; '-' is standard input").required();
  command.flag("--json", options->json, "Print one JSON object per file, with complete differences");
  command.explain(
      "A recording holds all inputs and outputs of one writer, target, coordinator, upload or restore. The replay "
      "moves no data: it creates the same protocol, feeds it the recorded inputs at the recorded times, and compares "
      "its outputs. Times count from the first round.\n"
      "Exit status: 0 the same, 1 different, 2 a file is not a recording or contains impossible events.",
      {"crossdock replay recordings/coordinator.jsonl", "crossdock replay recordings/*.jsonl --json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
