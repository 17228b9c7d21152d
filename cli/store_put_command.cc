#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/number_text.h"
#include "cli/command_line.h"
#include "cli/documents.h"
#include "cli/output.h"
#include "cli/store_files.h"
#include "cli/store_upload.h"
#include "executor/kv/kv_store.h"
#include "model/wire/documents.h"

namespace crossdock::cli {
namespace {

struct Options {
  StoreSettings store;
  SideOptions side;
  bool synthetic = false;
  UploadSettings upload;
};

std::shared_ptr<const Valid<SnapshotDescriptor>> load_snapshot(const Options& options,
                                                               const Valid<PlacementManifest>& placement) {
  if (options.side.snapshot.empty())
    return synthetic_snapshot(*placement, digest_of_part(placement->cache_schema), Range(0, options.side.tokens),
                              options.side.seed);
  std::optional<Valid<SnapshotDescriptor>> snapshot = load_or_fail<SnapshotDescriptor>(options.side.snapshot);
  if (!snapshot) return nullptr;
  return std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*snapshot));
}

bool check_usage(const Options& options) {
  const auto refuse = [](std::string_view message) {
    fail(kBadInput, message);
    return false;
  };
  if (options.side.snapshot.empty() == (options.side.tokens == 0))
    return refuse("give either --snapshot FILE or --tokens N");
  if (options.synthetic == !options.side.data.empty())
    return refuse("give either --data DIR with what the bindings' regions hold, or --synthetic");
  if (!options.side.data.empty() && options.side.bindings.empty()) return refuse("--data needs --binding");
  return true;
}

int run(const Options& options) {
  if (!check_usage(options)) return kBadInput;
  const auto placement = load_placement(options.side, "source", nullptr);
  if (placement == nullptr) return kBadInput;
  const auto snapshot = load_snapshot(options, *placement);
  if (snapshot == nullptr) return kBadInput;
  const auto layout = load_layout(options.upload, *placement);
  if (layout == nullptr) return kBadInput;
  int exit_code = kDone;
  std::optional<LocalSide> side = load_side(options.side, placement, snapshot, exit_code);
  if (!side) return exit_code;
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  // After the store was opened: a store that is in use is reported before gigabytes are filled.
  if (options.synthetic)
    fill(*side, options.side.seed, threads_of(options.upload), "writing synthetic content", is_quiet(options.upload));
  else if (const Status read = read_regions(options.side.data, *side); !read.ok())
    return fail_store(read);

  UploadOptions upload;
  KvUpload what;
  what.documents = UploadDocuments{placement, snapshot, layout};
  what.plan = plan_options(options.upload, **layout);
  upload.planner = std::make_shared<const KvUploadPlanner>(std::move(what));
  const UploadReport report = run_upload(options.upload, *store, *side, std::move(upload));
  if (!report.problem.ok()) return fail_store(report.problem);
  const UploadOutcome& outcome = report.outcome;
  const SnapshotId id = digest(*snapshot);
  if (options.upload.json) {
    JsonWriter out;
    out.begin_object();
    out.key("bytes").number(outcome.bytes);
    out.key("committed").boolean(outcome.committed);
    out.key("objects").number(outcome.object_count);
    out.key("operations").number(outcome.operations);
    out.key("publication").number(outcome.sequence.value_or(0));
    out.key("snapshot").string(id.hex());
    out.key("total_ns").number(static_cast<uint64_t>(report.total.ns()));
    out.key("unknown").boolean(outcome.unknown);
    out.end_object();
    print(out.take() + "\n");
  } else if (outcome.committed) {
    print(fmt::format("stored {} ({} bytes) as {} objects in {} ({}), {} puts\npublication {}\nsnapshot {}\n",
                      human_bytes(outcome.bytes), grouped(outcome.bytes), grouped(outcome.object_count),
                      seconds_text(report.total), rate_text(outcome.bytes, report.total), grouped(outcome.operations),
                      outcome.sequence.value_or(0), id.hex()));
  }
  if (outcome.committed) return kDone;
  return fail_upload(outcome);
}

}  // namespace

void add_store_put_command(Command& store) {
  Command command = store.subcommand("put", "Store a snapshot: upload it, then publish it atomically");
  const auto options = std::make_shared<Options>();
  add_store_options(command, options->store);
  add_model_options(command, options->side.model);
  add_side_options(command, options->side, "--from", "--data",
                   "With --binding: the bytes of each region, INSTANCE~REGION.bin");
  command.text("--snapshot", options->side.snapshot, "FILE", "Snapshot descriptor of the data");
  command.number("--tokens", options->side.tokens, 1, uint64_t{1} << 32,
                 "Or the number of tokens of a synthetic snapshot");
  command.flag("--synthetic", options->synthetic, "Use synthetic content instead of --data");
  command.number("--quota", options->store.quota_bytes, 1, UINT64_MAX, "Maximum bytes of a tenant");
  add_upload_options(command, options->upload);
  command.explain(
      "The snapshot becomes visible after all of it is stored and durable. Ctrl-C aborts the upload and leaves the "
      "store unchanged.",
      {"crossdock store put cache --config examples/models/llama-3.1-70b/config.json --from tp8 --tokens 2048 "
       "--synthetic",
       "crossdock store put cache --placement prefill.json --snapshot snapshot.json --binding prefill-bindings --data "
       "regions"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
