#include "cli/store_restore.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/local/local_transfer.h"
#include "backends/memory/synthetic.h"
#include "base/number_text.h"
#include "base/random_id.h"
#include "base/steady_clock.h"
#include "base/thread_count.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/log_observer.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recording.h"

namespace crossdock::cli {
namespace {

void print_json(const RestoreOutcome& outcome, const Restore& restore, Duration total, const std::string& wrong) {
  JsonWriter out;
  out.begin_object();
  out.key("activated").boolean(outcome.activated);
  out.key("bytes").number(outcome.read.bytes);
  out.key("bytes_read").number(outcome.read.bytes_read);
  out.key("cause").string(printable(outcome.cause.message()));
  out.key("chunks_read").number(outcome.read.chunks_read);
  out.key("objects").number(outcome.object_count);
  out.key("operations").number(outcome.operations);
  out.key("steps").number(restore.job() == nullptr ? 0 : restore.job()->counts.steps);
  out.key("total_ns").number(static_cast<uint64_t>(total.ns()));
  out.key("wrong").string(printable(wrong));
  out.end_object();
  print(out.take() + "\n");
}

}  // namespace

void add_restore_options(Command& command, RestoreSettings& settings) {
  command
      .text("--verify", settings.verify, "HOW",
            "full: check every byte of synthetic content, and that no other byte changed; off")
      .one_of({"full", "off"});
  command.number("--timeout", settings.timeout_s, 1, 1'000'000, "Seconds until the restore is aborted");
  command.number("--threads", settings.threads, 1, 1024, "Threads (default: one per processor)");
  command.text("--record", settings.record_dir, "DIR", "Record the run, for 'crossdock replay'");
  command.flag("--json", settings.json, "Print the result as JSON");
  command.flag("--quiet", settings.quiet, "Do not show progress");
}

int run_restore(const RestoreSettings& settings, StoreCore& store, LocalSide& side, KvRestore what,
                const std::string& data_output, uint64_t seed) {
  const size_t threads = thread_count_or_all(settings.threads);
  const bool quiet = settings.json || settings.quiet;
  RestoreOptions options;
  options.operation = OperationId("store");
  options.attempt = AttemptId(random_id());
  what.target = side.placement;
  options.planner = std::make_shared<const KvRestorePlanner>(std::move(what));
  // Longer than the restore may take: a lease that ends during it would fail gets of data that is fine.
  options.lease = LeaseRequest{"crossdock store", Duration::from_s(static_cast<int64_t>(settings.timeout_s) + 60)};
  options.timeout = Duration::from_s(static_cast<int64_t>(settings.timeout_s));
  options.window = WindowLimits{2 * threads, uint64_t{256} << 20};
  MemoryRegistry registry;
  LocalRuntime runtime(registry);
  // Regions that are written to files are read as a whole, so all of them has to be guarded then.
  std::optional<SparseGuards> guards;
  if (data_output.empty())
    guards.emplace(guard(side));
  else
    fill_guards(side.memory);
  for (const BindingPointer& binding : side.bindings) {
    runtime.add(Role::kTarget, binding, side.memory);
    options.participants.push_back((*binding)->participant);
  }
  RecordingFolder recordings(settings.record_dir);
  if (const Status made = recordings.make(); !made.ok()) return fail(kFailed, made.message());
  const uint64_t total_bytes = side.memory.total_bytes();
  Progress progress("restoring", total_bytes, progress_mode(quiet));
  const InterruptFlag interrupt;
  DriveHooks hooks;
  hooks.tick = [&](uint64_t done_bytes) { progress.update(std::min(done_bytes, total_bytes)); };
  hooks.interrupted = &interrupt.is_set();
  hooks.observe = [&](const std::string& name) { return logged(name, recordings.observe(options)); };
  Restore restore(options);
  const TimePoint begin = steady_now();
  const RestoreOutcome outcome = run_local_restore(restore, store, runtime, registry, threads, hooks);
  const Duration total = steady_now() - begin;
  progress.finish();
  if (const Status written = recordings.finish(); !written.ok()) return fail(kFailed, written.message());

  std::string wrong;
  if (outcome.activated && !data_output.empty())
    if (const Status written = write_regions(data_output, side); !written.ok()) return fail(kFailed, written.message());
  // After the regions were written, because the check puts guards in the place of what it has seen.
  const bool checked = outcome.activated && settings.verify == "full";
  if (checked)
    wrong = check_content(side, side.bindings, seed, threads, "checking every byte", quiet, guards ? &*guards : nullptr)
                .wrong;
  if (settings.json) {
    print_json(outcome, restore, total, wrong);
  } else if (outcome.activated) {
    print(fmt::format("restored {} ({} bytes) from {} objects into {} targets in {} ({}), {} gets\n",
                      human_bytes(outcome.read.bytes), grouped(outcome.read.bytes), grouped(outcome.object_count),
                      side.bindings.size(), seconds_text(total), rate_text(outcome.read.bytes, total),
                      grouped(outcome.operations)));
    print(fmt::format("read {} in {} chunks, each once and verified: {:.3f} bytes for each one needed\n",
                      human_bytes(outcome.read.bytes_read), grouped(outcome.read.chunks_read),
                      outcome.read_amplification()));
    if (checked && wrong.empty())
      print(fmt::format("verified: every one of {} bytes is what it has to be, and nothing else was touched\n",
                        grouped(outcome.read.bytes)));
    if (!wrong.empty()) print(fmt::format("WRONG: {}\n", printable(wrong)));
  }
  if (outcome.activated) return wrong.empty() ? kDone : kFailed;
  const int exit_code =
      outcome.cause.code() == Code::kInvalidArgument || outcome.cause.code() == Code::kNotFound ? kBadInput : kFailed;
  fail(kFailed, fmt::format("nothing was activated: {}", outcome.cause.message()));
  return exit_code;
}

}  // namespace crossdock::cli
