#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "backends/faults/fault_transport.h"
#include "backends/local/local_transfer.h"
#include "backends/memory/synthetic.h"
#include "base/number_text.h"
#include "base/random_id.h"
#include "base/thread_count.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/local_side.h"
#include "cli/log_observer.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recording.h"
#include "executor/kv/kv_transfer.h"
#include "model/wire/documents.h"
#include "model/wire/json_writer.h"

namespace crossdock::cli {
namespace {

struct Options {
  ModelSource model;
  std::string from;
  std::string to;
  uint64_t tokens = 0;
  std::string page_size = "16";
  std::string layout = "nhd";
  std::string verify = "full";
  std::string fail;
  std::string record_dir;
  uint64_t shuffle = 1;
  bool in_order = false;
  uint64_t threads = 0;
  uint64_t timeout_s = 600;
  uint64_t drain_s = 30;
  uint64_t seed = 1;
  bool json = false;
  bool quiet = false;
};

struct Sides {
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  LocalSide source;
  LocalSide target;
};

// Documents, bindings and memory of both sides. Prints an error and returns nothing on failure.
std::optional<Sides> make_sides(const Options& options, int& exit_code) {
  exit_code = kBadInput;
  const Result<ParallelSpec> from = parse_parallel_spec(options.from);
  const Result<ParallelSpec> to = parse_parallel_spec(options.to);
  for (const auto& [option, spec] : {std::pair("--from", &from), std::pair("--to", &to)})
    if (!spec->ok()) {
      fail(kBadInput, fmt::format("{}: {}", option, spec->status().message()));
      return std::nullopt;
    }
  const auto pages = number_pair(options.page_size);
  const auto orders = order_pair(options.layout);
  if (!pages || !orders) {
    fail(kBadInput, !pages ? fmt::format("--page-size '{}' is not N or N:N", options.page_size)
                           : fmt::format("--layout '{}' is not nhd, hnd, or two of them like nhd:hnd", options.layout));
    return std::nullopt;
  }
  const std::optional<Model> model = load_model(options.model);
  if (!model) return std::nullopt;
  const auto source = place(model->cache_schema, model->layer_count, model->engine, from.value(), "source");
  if (source == nullptr) return std::nullopt;
  const auto target = place(model->cache_schema, model->layer_count, model->engine, to.value(), "target");
  if (target == nullptr) return std::nullopt;
  const auto snapshot =
      synthetic_snapshot(**source, digest(model->cache_schema), Range(0, options.tokens), options.seed);
  if (snapshot == nullptr) return std::nullopt;
  LocalSideRequest request{source, snapshot, PoolRequest(), {}, available_memory_bytes()};
  request.pool.operation = OperationId("reshard");
  request.pool.axis_order = orders->first;
  request.pool.page_tokens = pages->first;
  if (!options.in_order) request.pool.shuffle_seed = options.shuffle;
  std::optional<LocalSide> source_side = make_local_side(request, exit_code);
  if (!source_side) return std::nullopt;
  request.placement = target;
  request.pool.axis_order = orders->second;
  request.pool.page_tokens = pages->second;
  // Another order than the source's, or equal slots would hide an error in the mapping of pages.
  if (request.pool.shuffle_seed) ++*request.pool.shuffle_seed;
  // The source's pages are not written yet, so the kernel still counts them as free (region_memory.h).
  request.memory_bytes_max -= std::min(request.memory_bytes_max, source_side->memory.total_bytes());
  std::optional<LocalSide> target_side = make_local_side(request, exit_code);
  if (!target_side) return std::nullopt;
  return Sides{snapshot, std::move(*source_side), std::move(*target_side)};
}

// What --fail disturbs: the transport of the first source. The second copy and all later ones fail, or stall until
// every participant has given up, or a bit of what the first copy wrote is wrong.
PortFaultPlan faults_of(const Options& options) {
  PortFaultPlan plan;
  if (options.fail == "copy") plan.faults = {{PortCall::kCopy, 1, PortFaultKind::kBreak, 1}};
  if (options.fail == "writer")
    plan.faults = {{PortCall::kCopy, 1, PortFaultKind::kStall, 2 * (options.timeout_s + options.drain_s)}};
  if (options.fail == "bit") plan.faults = {{PortCall::kCopy, 0, PortFaultKind::kFlip, 1}};
  return plan;
}

// Nothing where the region was revoked meanwhile: the transfer is over there.
void flip_bit(const MemoryRegistry& registry, const RegionKey& region, uint64_t offset) {
  const auto access = registry.access(region);
  if (access.ok()) access.value().bytes()[offset] ^= std::byte{1};
}

struct Left {
  size_t held = 0;  // participants whose pages are still pinned or reserved
  size_t active = 0;
};

void encode_participants(JsonWriter& out, const std::vector<BindingPointer>& bindings,
                         const std::vector<ParticipantOutcome>& outcomes) {
  out.begin_array();
  for (size_t i = 0; i < bindings.size(); ++i) {
    const ParticipantOutcome& outcome = outcomes[i];
    out.begin_object();
    out.key("activated").boolean(outcome.activated);
    out.key("bytes").number(outcome.bytes);
    out.key("cause").string(printable(outcome.cause.message()));
    out.key("operations").number(outcome.operations);
    out.key("participant").string((*bindings[i])->participant.text());
    out.key("quarantined").boolean(outcome.quarantined.has_value());
    out.key("released").boolean(outcome.released);
    out.end_object();
  }
  out.end_array();
}

std::string report_json(const Sides& sides, const LocalTransferReport& report, const Left& left,
                        const std::string& verified, const std::string& wrong) {
  JsonWriter out;
  out.begin_object();
  out.key("activated").boolean(report.outcome.status().ok());
  out.key("bytes").number(report.copied_bytes);
  out.key("cause").string(printable(report.outcome.status().message()));
  out.key("copying_ns").number(static_cast<uint64_t>(report.copying.ns()));
  out.key("held").number(left.held);
  out.key("operations").number(report.operation_count);
  const StepCounts counts = report.job == nullptr ? StepCounts() : report.job->copies->counts();
  out.key("ranges").number(counts.ranges);
  out.key("sources");
  encode_participants(out, sides.source.bindings, report.sources);
  out.key("steps").number(counts.steps);
  out.key("steps_planned").number(counts.steps_planned);
  out.key("targets");
  encode_participants(out, sides.target.bindings, report.targets);
  out.key("total_ns").number(static_cast<uint64_t>(report.total.ns()));
  out.key("verified").string(verified);
  out.key("wrong").string(printable(wrong));
  out.end_object();
  return out.take();
}

std::string report_text(const Options& options, const Sides& sides, const LocalTransferReport& report, const Left& left,
                        const std::string& verified, const std::string& wrong) {
  std::string text = fmt::format("reshard of {} tokens: {} ({} participants) -> {} ({})\n", grouped(options.tokens),
                                 options.from, sides.source.bindings.size(), options.to, sides.target.bindings.size());
  if (report.job != nullptr) {
    const StepCounts counts = report.job->copies->counts();
    text += fmt::format(
        "plan: {} edges, proved; {} steps between views and pages, {} after joining neighbours, {} "
        "contiguous ranges; {} operations posted\n",
        grouped((**kv_plan(report.job->plan)).edges.size()), grouped(counts.steps_planned), grouped(counts.steps),
        grouped(counts.ranges), grouped(report.operation_count));
  }
  text += fmt::format("moved {} ({} bytes) in {}, {} while copying ({})\n", human_bytes(report.copied_bytes),
                      grouped(report.copied_bytes), seconds_text(report.total),
                      rate_text(report.copied_bytes, report.copying), seconds_text(report.copying));
  const Status status = report.outcome.status();
  if (status.ok())
    text += fmt::format("activated: {} of {} targets\n", report.outcome.activated_count, sides.target.bindings.size());
  else
    text += fmt::format("not activated: {}\n", printable(status.message()));
  for (const auto* outcomes : {&report.sources, &report.targets})
    for (size_t i = 0; i < outcomes->size(); ++i)
      if ((*outcomes)[i].quarantined)
        text +=
            fmt::format("quarantined: {} '{}': {} operations never completed, its pages stay as they are\n",
                        outcomes == &report.sources ? "source" : "target",
                        (*(outcomes == &report.sources ? sides.source : sides.target).bindings[i])->participant.text(),
                        (*outcomes)[i].lost.size());
  text += fmt::format("left behind: {} pinned or reserved, {} active\n", left.held, left.active);
  if (!verified.empty()) text += fmt::format("verified: {}\n", verified);
  if (!wrong.empty()) text += fmt::format("WRONG: {}\n", printable(wrong));
  return text;
}

int run(const Options& options) {
  int exit_code = kDone;
  std::optional<Sides> sides = make_sides(options, exit_code);
  if (!sides) return exit_code;
  const size_t threads = thread_count_or_all(options.threads);
  const bool quiet = options.quiet || options.json;

  fill(sides->source, options.seed, threads, "writing synthetic content", quiet);
  // Before the transfer, so that a byte that no step should have touched is seen afterwards (I1).
  const SparseGuards guards = guard(sides->target);

  MemoryRegistry registry;
  LocalRuntime runtime(registry);
  for (const BindingPointer& binding : sides->source.bindings)
    runtime.add(Role::kSource, binding, sides->source.memory);
  for (const BindingPointer& binding : sides->target.bindings)
    runtime.add(Role::kTarget, binding, sides->target.memory);
  LocalTransferRequest request;
  request.coordinator.operation = OperationId("reshard");
  request.coordinator.attempt = AttemptId(random_id());
  request.coordinator.instance = InstanceId(random_id());
  KvTransfer transfer;
  transfer.documents = TransferDocuments{sides->source.placement, sides->target.placement, sides->snapshot};
  request.coordinator.planner = std::make_shared<const KvTransferPlanner>(std::move(transfer));
  request.coordinator.checksum = options.verify != "off" || options.fail == "bit";
  request.coordinator.seed = options.seed;
  request.coordinator.timeout = Duration::from_s(static_cast<int64_t>(options.timeout_s));
  request.participant.timeout = request.coordinator.timeout;
  request.participant.drain = Duration::from_s(static_cast<int64_t>(options.drain_s));
  // Twice the threads, so that each finds its next copy without waiting for the protocol.
  request.participant.window = WindowLimits{2 * threads, uint64_t{256} << 20};
  request.participant.batch.bytes_max = uint64_t{32} << 20;
  request.source_bindings = any_bindings(sides->source.bindings);
  request.target_bindings = any_bindings(sides->target.bindings);
  request.thread_count = threads;
  std::optional<FaultyTransportPorts> faulty;
  request.decorate = [&](Role role, const ParticipantId& participant, const Ports& own) {
    if (options.fail.empty() || role != Role::kSource || participant != (*sides->source.bindings.front())->participant)
      return own;
    return faulty
        .emplace(own, faults_of(options),
                 [&](const RegionKey& region, uint64_t offset) { flip_bit(registry, region, offset); })
        .ports();
  };

  const uint64_t total_bytes = sides->source.memory.total_bytes();
  Progress progress("copying", total_bytes, progress_mode(quiet));
  const InterruptFlag interrupt;
  RecordingFolder recordings(options.record_dir);
  if (const Status made = recordings.make(); !made.ok()) return fail(kFailed, made.message());
  DriveHooks hooks;
  hooks.tick = [&](uint64_t done_bytes) { progress.update(std::min(done_bytes, total_bytes)); };
  hooks.interrupted = &interrupt.is_set();
  hooks.observe = [&](const std::string& name) { return logged(name, recordings.observe_transfer(name, request)); };
  const LocalTransferReport report = run_local_transfer(request, runtime, registry, hooks);
  progress.finish();
  if (const Status written = recordings.finish(); !written.ok()) return fail(kFailed, written.message());

  std::string verified;
  std::string wrong;
  const bool activated = report.outcome.status().ok();
  if (activated && options.verify == "full") {
    wrong = check_content(sides->target, sides->target.bindings, options.seed, threads, "checking every byte", quiet,
                          &guards)
                .wrong;
    if (wrong.empty())
      verified = fmt::format("every one of {} bytes is what it has to be, and nothing else was touched",
                             grouped(report.copied_bytes));
  } else if (activated && request.coordinator.checksum) {
    verified = "CRC-32C of what was sent and of what has arrived is the same for each pair of participants";
  }
  const Left left{runtime.count(LocalRuntime::State::kHeld), runtime.count(LocalRuntime::State::kActive)};
  if (options.json)
    print(report_json(*sides, report, left, verified, wrong) + "\n");
  else
    print(report_text(options, *sides, report, left, verified, wrong));
  return activated && wrong.empty() ? kDone : kFailed;
}

}  // namespace

void add_reshard_command(Command& app) {
  Command command =
      app.subcommand("reshard", "Move a synthetic cache between parallel layouts in memory, and verify it");
  const auto options = std::make_shared<Options>();
  add_model_options(command, options->model);
  command
      .text("--from", options->from, "SPEC",
            "Parallel layout of the source, for example tp8 or tp4pp2 (dp, pp, tp, cp)")
      .required();
  command.text("--to", options->to, "SPEC", "Parallel layout of the target").required();
  command.number("--tokens", options->tokens, 1, uint64_t{1} << 32, "Tokens of the cache").required();
  command.text("--page-size", options->page_size, "N[:N]", "Tokens of a page, of the source and the target");
  command.text("--layout", options->layout, "ORDER[:ORDER]",
               "Axes of a page, of the source and the target: nhd or hnd");
  command.number("--shuffle", options->shuffle, 0, UINT64_MAX,
                 "Put pages into random slots of the pools, drawn from this seed");
  command.flag("--in-order", options->in_order, "Put pages into the slots in order");
  command
      .text(
          "--verify", options->verify, "HOW",
          "full: check every byte, and that no other byte changed; checksum: compare sent and received checksums; off")
      .one_of({"full", "checksum", "off"});
  command
      .text("--fail", options->fail, "WHAT",
            "Inject a fault at one source: copy (its copies fail), writer (it stops answering), bit (a bit flips in "
            "transit)")
      .one_of({"copy", "writer", "bit"});
  command.number("--threads", options->threads, 1, 1024, "Copy threads (default: one per processor)");
  command.number("--timeout", options->timeout_s, 1, 1'000'000, "Seconds until the transfer is aborted");
  command.number("--drain", options->drain_s, 1, 1'000'000,
                 "Seconds to wait after that for operations in flight, before their pages are quarantined");
  command.number("--seed", options->seed, 0, UINT64_MAX, "Seed of the synthetic content");
  command.text("--record", options->record_dir, "DIR", "Record each participant, for 'crossdock replay'");
  command.flag("--json", options->json, "Print the result as JSON");
  command.flag("--quiet", options->quiet, "Do not show progress");
  command.explain(
      "Both sides are in the memory of this process, laid out as serving engines lay out their pools. Every "
      "participant runs the protocols of a cluster: pin, reserve, export, validate, plan, copy, collect, fence, check, "
      "activate, release.\n"
      "Ctrl-C aborts the transfer: operations in flight are drained, and nothing stays pinned.\n"
      "Exit status: 0 activated and verified, 1 failed and nothing was activated (or a byte is wrong), 2 bad input.",
      {"crossdock reshard --config examples/models/llama-3.1-70b/config.json --from tp8 --to tp4pp2 --tokens 4096",
       "crossdock reshard --config examples/models/llama-3.1-8b/config.json --from tp4 --to tp2 --tokens 8192 "
       "--page-size 64:16 --layout nhd:hnd --verify checksum",
       "crossdock reshard --config examples/models/llama-3.1-8b/config.json --from tp2 --to tp4 --tokens 64 --fail "
       "copy"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
