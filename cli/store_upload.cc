#include "cli/store_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "backends/local/local_transfer.h"
#include "base/steady_clock.h"
#include "base/thread_count.h"
#include "cli/command_line.h"
#include "cli/documents.h"
#include "cli/interrupt.h"
#include "cli/log_observer.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recording.h"
#include "executor/kv/kv_store.h"
#include "planner/kv/store_geometry.h"

namespace crossdock::cli {

void add_upload_options(Command& command, UploadSettings& settings) {
  command.text("--store-layout", settings.layout, "FILE",
               "Store layout of the objects (default: made from the placement)");
  command.text("--object-order", settings.object_order, "ORDER", "Without --store-layout: axes of an object")
      .one_of({"plhd", "lphd", "hpld"});
  command.number("--store-page-size", settings.page_tokens, 1, uint64_t{1} << 32,
                 "Without --store-layout: tokens of an object's page");
  command
      .text("--selection", settings.selection, "HOW",
            "Choice among replicas: deterministic (rank order), or by-page (replica i mod n writes page i)")
      .one_of({"deterministic", "by-page"});
  command.text("--transaction", settings.transaction, "NAME", "Name of the upload (default: random)");
  command.text("--tenant", settings.tenant, "NAME", "Tenant that owns the data");
  command.number("--ttl", settings.ttl_s, 1, uint64_t{1} << 32, "Seconds until the data expires (default: never)");
  command.number("--timeout", settings.timeout_s, 1, 1'000'000, "Seconds until the upload is aborted");
  command.number("--threads", settings.threads, 1, 1024, "Threads (default: one per processor)");
  command.text("--record", settings.record_dir, "DIR", "Record the run, for 'crossdock replay'");
  command.flag("--json", settings.json, "Print the result as JSON");
  command.flag("--quiet", settings.quiet, "Do not show progress");
}

size_t threads_of(const UploadSettings& settings) { return thread_count_or_all(settings.threads); }

PlanOptions plan_options(const UploadSettings& settings, const StoreLayout& layout) {
  PlanOptions options;
  if (settings.selection == "by-page") {
    options.selection = SourceSelection::kByPage;
    options.selection_page_tokens = layout.page_tokens;
  }
  return options;
}

std::shared_ptr<const Valid<StoreLayout>> load_layout(const UploadSettings& settings,
                                                      const Valid<PlacementManifest>& placement) {
  std::optional<Valid<StoreLayout>> layout;
  if (!settings.layout.empty()) {
    layout = load_or_fail<StoreLayout>(settings.layout);
  } else {
    const auto order = std::find_if(kObjectOrders.begin(), kObjectOrders.end(),
                                    [&](const ObjectOrderName& each) { return each.name == settings.object_order; });
    Diagnostics diagnostics;
    layout = layout_of(placement, std::nullopt, order->order, settings.page_tokens,
                       fmt::format("{}-{}", placement->name, settings.object_order), diagnostics);
    if (!layout) fail(diagnostics);
  }
  if (!layout) return nullptr;
  return std::make_shared<const Valid<StoreLayout>>(std::move(*layout));
}

UploadReport run_upload(const UploadSettings& settings, StoreCore& store, const LocalSide& side,
                        UploadOptions options) {
  UploadReport report;
  // A transaction's name is used once in the life of a store (R4): a second upload under it would be told the outcome
  // of the first.
  std::random_device random;  // for a unique name
  options.txn =
      TxnId(settings.transaction.empty() ? fmt::format("upload-{:08x}{:08x}{:08x}", random(), random(), random())
                                         : settings.transaction);
  options.tenant = settings.tenant;
  if (settings.ttl_s != 0) options.ttl = Duration::from_s(static_cast<int64_t>(settings.ttl_s));
  options.timeout = Duration::from_s(static_cast<int64_t>(settings.timeout_s));
  options.window = WindowLimits{2 * threads_of(settings), uint64_t{256} << 20};
  MemoryRegistry registry;
  LocalRuntime runtime(registry);
  const uint64_t total_bytes = side.memory.total_bytes();
  for (const BindingPointer& binding : side.bindings) {
    runtime.add(Role::kSource, binding, side.memory);
    options.participants.push_back((*binding)->participant);
  }

  RecordingFolder recordings(settings.record_dir);
  report.problem = recordings.make();
  if (!report.problem.ok()) return report;
  Progress progress("storing", total_bytes, progress_mode(is_quiet(settings)));
  const InterruptFlag interrupt;
  DriveHooks hooks;
  hooks.tick = [&](uint64_t done_bytes) { progress.update(std::min(done_bytes, total_bytes)); };
  hooks.interrupted = &interrupt.is_set();
  hooks.observe = [&](const std::string& name) { return logged(name, recordings.observe(options)); };
  Upload upload(options);
  const TimePoint begin = steady_now();
  report.outcome = run_local_upload(upload, store, runtime, registry, threads_of(settings), hooks);
  report.total = steady_now() - begin;
  report.job = upload.job();
  progress.finish();
  // The outcome stands all the same: the upload may have been committed although its recording is incomplete.
  report.problem = recordings.finish();
  return report;
}

int fail_upload(const UploadOutcome& outcome) {
  const int exit_code = outcome.cause.code() == Code::kInvalidArgument ? kBadInput : kFailed;
  // Unknown is told apart from failed: the snapshot may be published, and a caller that uploads it again may get a
  // conflict (I2).
  fail(kFailed, outcome.unknown ? fmt::format("unknown whether the upload was published: {}", outcome.cause.message())
                                : fmt::format("nothing was published: {}", outcome.cause.message()));
  return exit_code;
}

}  // namespace crossdock::cli
