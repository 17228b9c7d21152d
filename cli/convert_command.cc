#include <fmt/format.h>

#include <memory>

#include "base/file.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/output.h"
#include "model/mooncake/mooncake.h"

namespace crossdock::cli {
namespace {

struct Options {
  std::string from;
  std::string to;
  std::string input;
  std::string placement_path;
  std::string snapshot_path;
  std::string output;
};

// Documents that a binding, and a snapshot read from Mooncake, refer to. Empty members: not given.
struct Beside {
  std::optional<Valid<PlacementManifest>> placement;
  std::optional<Valid<SnapshotDescriptor>> snapshot;
};

// Prints an error and returns false when a given file cannot be used.
bool load_beside(const Options& options, Beside& beside) {
  if (!options.placement_path.empty()) {
    beside.placement = load_or_fail<PlacementManifest>(options.placement_path);
    if (!beside.placement) return false;
  }
  if (!options.snapshot_path.empty()) {
    beside.snapshot = load_or_fail<SnapshotDescriptor>(options.snapshot_path);
    if (!beside.snapshot) return false;
  }
  return true;
}

// The kind of a Mooncake document, recognised by its fields.
enum class Kind { kPlacement, kSnapshot, kBinding, kOurs, kUnknown };

// Mooncake's documents do not state their kind. Each has a field that the others lack.
Kind kind_of(std::string_view text, Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(text, JsonLimits(), diagnostics);
  if (!tree || tree->root().kind() != JsonKind::kObject) return Kind::kUnknown;
  const std::optional<JsonValue> schema = tree->root().find("schema");
  if (schema && schema->kind() == JsonKind::kString && schema->text().starts_with("crossdock.")) return Kind::kOurs;
  if (tree->root().find("parts")) return Kind::kPlacement;
  if (tree->root().find("binding")) return Kind::kBinding;
  if (tree->root().find("snapshot_id")) return Kind::kSnapshot;
  return Kind::kUnknown;
}

int needs(std::string_view what, std::string_view flags) {
  return fail(kBadInput,
              fmt::format("a {} names other documents by digest: give {} (Crossdock documents)", what, flags));
}

template <class Document>
int write_converted(const std::optional<Valid<Document>>& document, const Options& options,
                    const Diagnostics& diagnostics, std::string_view what) {
  if (!document) return fail(options.input, diagnostics);
  return write_document(options.output, to_json(*document), what);
}

int from_mooncake(const std::string& text, const Options& options, const Beside& beside) {
  const JsonLimits limits;
  Diagnostics diagnostics("Mooncake document");
  const Kind kind = kind_of(text, diagnostics);
  if (!diagnostics.empty()) return fail(options.input, diagnostics);
  switch (kind) {
    case Kind::kPlacement:
      return write_converted(mooncake::read_placement(text, limits, diagnostics), options, diagnostics, "placement");
    case Kind::kSnapshot:
      if (!beside.placement) return needs("snapshot", "--placement");
      return write_converted(mooncake::read_snapshot(text, *beside.placement, limits, diagnostics), options,
                             diagnostics, "snapshot");
    case Kind::kBinding:
      if (!beside.placement || !beside.snapshot) return needs("binding", "--placement and --snapshot");
      return write_converted(mooncake::read_binding(text, *beside.placement, *beside.snapshot, limits, diagnostics),
                             options, diagnostics, "binding");
    case Kind::kOurs: return fail(kBadInput, fmt::format("'{}' is already a Crossdock document", options.input));
    case Kind::kUnknown: break;
  }
  return fail(kBadInput, fmt::format("'{}' is not a Mooncake placement, snapshot or resolved binding", options.input));
}

int write_foreign(const std::optional<std::string>& text, const Options& options, const Diagnostics& diagnostics) {
  if (!text) return fail(options.input, diagnostics);
  return write_output(options.output, *text, "Mooncake document");
}

int to_mooncake(const std::string& text, const Options& options, const Beside& beside) {
  Diagnostics diagnostics;
  const std::optional<AnyDocument> document = read_any_document(text, JsonLimits(), diagnostics);
  if (!document) return fail(options.input, diagnostics);
  if (const auto* placement = std::get_if<Valid<PlacementManifest>>(&*document))
    return write_foreign(mooncake::write_placement(*placement, diagnostics), options, diagnostics);
  if (const auto* snapshot = std::get_if<Valid<SnapshotDescriptor>>(&*document))
    return write_foreign(mooncake::write_snapshot(*snapshot, diagnostics), options, diagnostics);
  const auto* binding = std::get_if<Valid<RuntimeBinding>>(&*document);
  if (binding == nullptr)
    return fail(kBadInput, fmt::format("Mooncake has no document for a {}", schema_name(*document)));
  if (!beside.placement || !beside.snapshot) return needs("binding", "--placement and --snapshot");
  return write_foreign(mooncake::write_binding(*binding, *beside.placement, *beside.snapshot, diagnostics), options,
                       diagnostics);
}

int run(const Options& options) {
  if (options.from.empty() == options.to.empty()) return fail(kBadInput, "give either --from FORMAT or --to FORMAT");
  const Result<std::string> text = read_file(options.input, JsonLimits().bytes_max);
  if (!text.ok()) return fail(kBadInput, text.status().message());
  Beside beside;
  if (!load_beside(options, beside)) return kBadInput;
  return options.to.empty() ? from_mooncake(text.value(), options, beside) : to_mooncake(text.value(), options, beside);
}

}  // namespace

void add_convert_command(Command& app) {
  Command command = app.subcommand("convert", "Convert placements, snapshots and bindings from and to Mooncake's JSON");
  const auto options = std::make_shared<Options>();
  command.text("--from", options->from, "FORMAT", "Format of the file (mooncake); writes a Crossdock document")
      .one_of({"mooncake"});
  command.text("--to", options->to, "FORMAT", "Format to write (mooncake); reads a Crossdock document")
      .one_of({"mooncake"});
  command.any_text("file", options->input, "FILE", "The document; '-' is standard input").required();
  command.text("--placement", options->placement_path, "FILE",
               "The Crossdock placement that a snapshot or binding belongs to");
  command.text("--snapshot", options->snapshot_path, "FILE", "The Crossdock snapshot that a binding belongs to");
  command.text("-o,--output", options->output, "FILE", "Write the document here instead of to standard output");
  command.explain(
      "Conversions are exact: what the other format cannot express is refused. A document that is converted to "
      "Mooncake and back through files (-o) is the same byte for byte.\n"
      "Snapshots and bindings need the Crossdock documents that they refer to.",
      {"crossdock convert --from mooncake placement.mooncake.json -o placement.json",
       "crossdock convert --from mooncake snapshot.mooncake.json --placement placement.json -o snapshot.json",
       "crossdock convert --to mooncake placement.json -o placement.mooncake.json",
       "crossdock convert --to mooncake binding.json --placement placement.json --snapshot snapshot.json -o "
       "binding.mooncake.json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
