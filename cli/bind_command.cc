#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/number_text.h"
#include "base/sha256.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/file_names.h"
#include "cli/local_side.h"
#include "cli/output.h"
#include "model/kv/binding_rules.h"
#include "model/kv/pool_binding.h"

namespace crossdock::cli {
namespace {

// All or nothing, as far as that can be without a transaction: every binding is made and checked before the first file
// is written, so bad input leaves no file behind.

struct Options {
  std::string placement;
  std::string snapshot;
  std::string participant;
  std::string operation = "synthetic";
  uint64_t page_tokens = 0;
  std::string axis_order;
  bool region_per_layer = false;
  bool one_region = false;  // the default, given explicitly
  std::optional<uint64_t> shuffle_seed;
  uint64_t spare_pages = 0;
  std::optional<std::string> instance_prefix;
  std::string output;
  std::string output_dir;
};

// Inputs of all bindings.
struct Source {
  const Valid<PlacementManifest>& placement;
  const Valid<SnapshotDescriptor>& snapshot;
  const BindingContext& context;
  PoolRequest request;

  std::optional<Valid<RuntimeBinding>> bind(const ParticipantId& participant, Diagnostics& diagnostics) const {
    return pool_binding(placement, context.placement_digest(), participant, snapshot->tokens,
                        *context.snapshot_digest(), request, diagnostics);
  }
};

// Checks the fields that every binding takes from its placement and snapshot.
void check_together(const Source& source, Diagnostics& diagnostics) {
  RuntimeBinding header;
  header.resource = source.placement->resource;
  header.revision = source.placement->revision;
  header.participant = source.placement->parts.front().participant;
  header.placement_digest = source.context.placement_digest();
  header.snapshot_digest = *source.context.snapshot_digest();
  header.tokens = source.snapshot->tokens;
  check_binding_identity(header, source.context, diagnostics);
}

// The file name of a participant: bytes other than [A-Za-z0-9._-], and a leading '.', become %XX. A name that is too
// long for a file is cut and gets the SHA-256 of the whole; shorter names never reach that length.
std::string file_name(const ParticipantId& participant) {
  constexpr size_t kEscapedBytesMax = 180;  // with the digest and .json below the 255 of a file system
  std::string escaped = escaped_name(participant.text());
  // Neither a hidden file nor "..".
  if (escaped.starts_with('.')) escaped.replace(0, 1, "%2E");
  if (escaped.size() > kEscapedBytesMax)
    escaped = fmt::format("{}-{}", escaped.substr(0, kEscapedBytesMax), sha256(participant.text()).hex());
  return escaped + ".json";
}

std::string path_of(const Options& options, const ParticipantId& participant) {
  if (options.output_dir.empty()) return options.output;
  return (std::filesystem::path(options.output_dir) / file_name(participant)).string();
}

// Reports a single file by its contents; a folder is reported once, by the caller.
int write(const Options& options, const Source& source, const ParticipantId& participant, uint64_t& bytes) {
  Diagnostics diagnostics;
  const std::optional<Valid<RuntimeBinding>> binding = source.bind(participant, diagnostics);
  if (!binding) return fail(diagnostics);
  const std::string text = to_json(*binding);
  bytes += text.size();
  const std::string what = options.output_dir.empty()
                               ? fmt::format("binding of '{}', {} regions, {} views", participant.text(),
                                             (*binding)->regions.size(), (*binding)->views.size())
                               : "";
  return write_document(path_of(options, participant), text, what);
}

int run_all(const Options& options, const Source& source) {
  Diagnostics diagnostics(fmt::format("placement '{}' with the snapshot", source.placement->name));
  check_together(source, diagnostics);
  if (!diagnostics.empty()) return fail(diagnostics);
  std::vector<ParticipantId> participants;
  if (!options.participant.empty())
    participants.push_back(ParticipantId(options.participant));
  else
    for (const Part& part : source.placement->parts) participants.push_back(part.participant);
  // All bindings are checked before the first is written. They are made twice, because holding them all takes too much
  // memory.
  for (const ParticipantId& participant : participants) {
    const std::optional<Valid<RuntimeBinding>> binding = source.bind(participant, diagnostics);
    if (binding) check_binding(*binding, source.context, diagnostics);
    if (diagnostics.has(Rule::kWorkLimit) && source.request.region_per_layer)
      diagnostics.add(Rule::kWorkLimit, "", "--one-region makes one view of all neighbouring layers");
    if (!diagnostics.empty()) return fail(diagnostics);
  }
  if (!options.output_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.output_dir, error);
    if (error)
      return fail(kFailed, fmt::format("cannot create the folder '{}': {}", options.output_dir, error.message()));
  }
  uint64_t bytes = 0;
  for (const ParticipantId& participant : participants)
    if (const int exit_code = write(options, source, participant, bytes); exit_code != kDone) return exit_code;
  if (!options.output_dir.empty())
    tell(fmt::format("wrote {}: {} bindings, {} bytes", options.output_dir, grouped(participants.size()),
                     grouped(bytes)));
  return kDone;
}

int run(const Options& options) {
  if (!options.output.empty() && !options.output_dir.empty())
    return fail(kBadInput, "give either -o FILE or --output-dir DIR");
  if (options.participant.empty() && options.output_dir.empty())
    return fail(
        kBadInput,
        "bindings of all participants need a folder: give --output-dir DIR, or one participant with --participant "
        "NAME");
  const std::optional<Valid<PlacementManifest>> placement = load_or_fail<PlacementManifest>(options.placement);
  if (!placement) return kBadInput;
  const std::optional<Valid<SnapshotDescriptor>> snapshot = load_or_fail<SnapshotDescriptor>(options.snapshot);
  if (!snapshot) return kBadInput;
  PoolRequest request;
  if (!set_paging(**placement, options.page_tokens, "--axis-order", options.axis_order, request)) return kBadInput;
  request.operation = OperationId(options.operation);
  request.region_per_layer = options.region_per_layer;
  request.shuffle_seed = options.shuffle_seed;
  request.spare_pages = options.spare_pages;
  request.instance_prefix = options.instance_prefix.value_or((*placement)->name + "/");
  const BindingContext context(*placement, &*snapshot);
  return run_all(options, Source{*placement, *snapshot, context, std::move(request)});
}

}  // namespace

void add_bind_command(Command& app) {
  Command command =
      app.subcommand("bind", "Make synthetic bindings: page pools as serving engines lay them out, without addresses");
  const auto options = std::make_shared<Options>();
  command.text("--placement", options->placement, "FILE", "The placement to bind").required();
  command.text("--snapshot", options->snapshot, "FILE", "The snapshot to hold, for example from 'crossdock snapshot'")
      .required();
  command.text("--participant", options->participant, "NAME", "Bind only this participant (default: all)");
  command.text("--operation", options->operation, "NAME", "Operation that the bindings belong to");
  command.number("--page-size", options->page_tokens, 1, uint64_t{1} << 32,
                 fmt::format("Tokens of a page (default: the placement's, or {})", kUsualPageTokens));
  command
      .text("--axis-order", options->axis_order, "ORDER",
            "Axes of a page: nhd (token, head, dim) or hnd (default: the placement's, or nhd)")
      .one_of({"nhd", "hnd"});
  const Option per_layer =
      command.flag("--region-per-layer", options->region_per_layer, "One region for each component and layer");
  command
      .flag("--one-region", options->one_region,
            "One region for all layers of a component and layer group (the default)")
      .excludes(per_layer);
  command.number("--shuffle", options->shuffle_seed, 0, UINT64_MAX,
                 "Put pages into random slots of the pool, drawn from this seed (default: in order)");
  command.number("--spare-pages", options->spare_pages, 0, kPoolSlotsMax,
                 "Slots of the pool without a page (default 0)");
  command.any_text("--instance-prefix", options->instance_prefix, "TEXT",
                   "Prefix of instance names, before the participant's name (default: the placement's name and /)");
  command.text("-o,--output", options->output, "FILE",
               "With --participant: write the document here instead of to standard output");
  command.text("--output-dir", options->output_dir, "DIR",
               "Write DIR/PARTICIPANT.json for each participant; creates the folder when it is missing");
  command.explain(
      "Each component gets a pool of pages, and each state a region of its own. All pools of a participant share one "
      "numbering of slots. The bindings are valid: each holds exactly what the placement gives its participant of the "
      "snapshot's live tokens.\n"
      "Each participant is an instance of its own. The two sides of a plan must not share instance names.\n"
      "In file names, bytes of the participant's name other than letters, digits, '.', '_' and '-', and a leading '.', "
      "are written as %XX.",
      {"crossdock bind --placement prefill.json --snapshot snapshot.json --output-dir prefill-bindings",
       "crossdock bind --placement decode.json --snapshot snapshot.json --page-size 64 --shuffle 1 --output-dir "
       "decode-bindings",
       "crossdock bind --placement prefill.json --snapshot snapshot.json --participant p0-t0 --region-per-layer -o "
       "p0-t0.json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
