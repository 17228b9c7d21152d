#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/store_files.h"
#include "cli/store_restore.h"

namespace crossdock::cli {
namespace {

struct Options {
  StoreSettings store;
  std::string snapshot;
  SideOptions side;
  RestoreSettings restore;
};

int run(const Options& options) {
  if (!options.side.data.empty() && options.side.bindings.empty())
    return fail(kBadInput, "--data-output needs --binding");
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<SnapshotId> id = find_snapshot(*store, options.snapshot);
  if (!id.ok()) return fail_store(id.status());
  const auto manifest = store->manifest(id.value());
  if (!manifest.ok()) return fail_store(manifest.status());
  const StoreManifest& stored = **manifest.value().as<StoreManifest>();
  Diagnostics diagnostics;
  std::optional<Valid<SnapshotDescriptor>> descriptor = Valid<SnapshotDescriptor>::make(stored.snapshot, diagnostics);
  CHECK(descriptor.has_value());  // it is part of a valid manifest
  const auto snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*descriptor));
  // With the stored cache schema, so the layers and heads are those of the data and not those of a model that is named
  // again.
  const auto placement = load_placement(options.side, "target", &stored.cache_schema);
  if (placement == nullptr) return kBadInput;
  int exit_code = kDone;
  std::optional<LocalSide> side = load_side(options.side, placement, snapshot, exit_code);
  if (!side) return exit_code;
  KvRestore restore;
  restore.what = id.value();
  return run_restore(options.restore, *store, *side, std::move(restore), options.side.data, options.side.seed);
}

}  // namespace

void add_store_get_command(Command& store) {
  Command command = store.subcommand("get", "Restore a snapshot into another parallel layout");
  const auto options = std::make_shared<Options>();
  add_store_options(command, options->store);
  command.text("SNAPSHOT", options->snapshot, "SNAPSHOT", kSnapshotHelp).required();
  add_side_options(command, options->side, "--to", "--data-output",
                   "With --binding: write the bytes of each region here, INSTANCE~REGION.bin");
  command.number("--staging", options->store.staging_bytes, 1 << 20, UINT64_MAX,
                 "Maximum bytes of staging memory (default 64 MiB)");
  add_restore_options(command, options->restore);
  command.explain(
      "Each stored chunk is read at most once and verified before its bytes are copied. When a chunk is damaged, the "
      "error names it and nothing is activated.",
      {"crossdock store get cache 3f2a --to tp2 --verify full",
       "crossdock store get cache 3f2a --placement decode.json --binding decode-bindings --data-output regions"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
