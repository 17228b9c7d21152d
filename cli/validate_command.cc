#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/file_names.h"
#include "cli/output.h"
#include "model/kv/binding_rules.h"
#include "model/wire/json_writer.h"
#include "planner/kv/verify_plan.h"

namespace crossdock::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool json = false;
  bool complete = false;
};

// A file and the results of its checks.
struct Checked {
  LoadedDocument loaded;
  std::string unreadable;          // why the file could not be read; empty: it was
  std::vector<std::string> notes;  // which checks were made, and which were skipped
  bool complete = true;            // no check was skipped

  bool valid() const { return unreadable.empty() && loaded.diagnostics.empty(); }
};

// Documents of one kind among the files, with their digests.
template <class Document>
struct Found {
  const Valid<Document>* document;
  Sha256Digest digest;
};

template <class Document>
std::vector<Found<Document>> find_all(const std::vector<Checked>& files) {
  std::vector<Found<Document>> found;
  for (const Checked& file : files) {
    if (!file.loaded.document) continue;
    if (const auto* document = std::get_if<Valid<Document>>(&*file.loaded.document))
      found.push_back({document, digest(*document)});
  }
  return found;
}

template <class Document>
const Valid<Document>* find_digest(const std::vector<Found<Document>>& found, const Sha256Digest& wanted) {
  for (const Found<Document>& candidate : found)
    if (candidate.digest == wanted) return candidate.document;
  return nullptr;
}

// Bindings against the placements and snapshots among the same files, and against each other.
void check_bindings(std::vector<Checked>& files, Diagnostics& between) {
  const auto placements = find_all<PlacementManifest>(files);
  const auto snapshots = find_all<SnapshotDescriptor>(files);
  std::map<std::pair<Sha256Digest, const void*>, std::unique_ptr<BindingContext>> contexts;
  std::vector<BoundParticipant> bound;
  for (Checked& file : files) {
    if (!file.loaded.document) continue;
    const auto* binding = std::get_if<Valid<RuntimeBinding>>(&*file.loaded.document);
    if (binding == nullptr) continue;
    const auto* placement = find_digest(placements, (*binding)->placement_digest);
    const auto* snapshot = find_digest(snapshots, (*binding)->snapshot_digest);
    const auto missing = [&](const char* what, const Sha256Digest& named) {
      file.complete = false;
      file.notes.push_back(fmt::format("NOT checked: {} is not among the files: sha256:{}", what, named.hex()));
    };
    if (placement == nullptr) {
      missing("its views (bytes, strides, ownership) need its placement, which", (*binding)->placement_digest);
      continue;
    }
    file.notes.push_back("checked against its placement");
    if (snapshot == nullptr)
      missing("its snapshot, which", (*binding)->snapshot_digest);
    else
      file.notes.push_back("checked against its snapshot");
    // One context for all bindings of a placement and snapshot: making one costs as much as checking many bindings.
    auto& context = contexts[{(*binding)->placement_digest, snapshot}];
    if (!context) context = std::make_unique<BindingContext>(*placement, snapshot);
    check_binding(*binding, *context, file.loaded.diagnostics);
    // Instances are compared only among bindings that are right by themselves.
    if (file.loaded.diagnostics.empty()) bound.push_back(BoundParticipant{binding, context.get(), file.loaded.path});
  }
  check_instances(bound, between);
}

// Proves plans that include their documents.
void check_plans(std::vector<Checked>& files) {
  for (Checked& file : files) {
    if (!file.loaded.plan) continue;
    const PlanDocument& plan = *file.loaded.plan;
    if (!plan.source || !plan.target) {
      file.complete = false;
      file.notes.push_back("NOT checked: what it moves; it does not carry its documents (see crossdock verify-plan)");
      continue;
    }
    const std::optional<PlanSide> source = plan_side(*plan.source);
    const std::optional<PlanSide> target = plan_side(*plan.target);
    CHECK(source && target);  // the reader accepts no other kinds
    verify_plan(plan.plan, *source, *target, VerifyLimits(), file.loaded.diagnostics);
    file.notes.push_back("compared with the documents that it carries");
  }
}

constexpr std::string_view kPlanSchema = "crossdock.plan";

std::string_view schema_of(const LoadedDocument& loaded) {
  return loaded.plan ? kPlanSchema : schema_name(*loaded.document);
}
Sha256Digest digest_of(const LoadedDocument& loaded) {
  return loaded.plan ? digest(loaded.plan->plan) : digest(*loaded.document);
}

void print_lines(const std::vector<Checked>& files, const Diagnostics& between) {
  for (const Checked& file : files) {
    const LoadedDocument& loaded = file.loaded;
    if (!file.unreadable.empty())
      print(fmt::format("{}: {}\n", printable(loaded.path), printable(file.unreadable)));
    else if (!loaded.diagnostics.empty())
      print(diagnostic_lines(loaded.path, loaded.diagnostics));
    else
      print(fmt::format("{}: valid {}, sha256:{}\n", printable(loaded.path),
                        schema_of(loaded).substr(std::string_view("crossdock.").size()), digest_of(loaded).hex()));
    for (const std::string& note : file.notes) print(fmt::format("{}: note: {}\n", printable(loaded.path), note));
  }
  if (!between.empty()) print(diagnostic_lines("between the bindings", between));
}

void print_json(const std::vector<Checked>& files, const Diagnostics& between) {
  JsonWriter out;
  out.begin_object().key("between_bindings");
  encode_diagnostics(out, between, true);
  out.key("files").begin_array();
  for (const Checked& file : files) {
    const LoadedDocument& loaded = file.loaded;
    out.begin_object();
    out.key("complete").boolean(file.complete);
    const bool is_there = loaded.document || loaded.plan;
    out.key("diagnostic_count").number(loaded.diagnostics.total());
    out.key("diagnostics");
    encode_diagnostics(out, loaded.diagnostics, true);
    if (is_there) out.key("digest").string(digest_of(loaded).hex());
    out.key("notes").begin_array();
    for (const std::string& note : file.notes) out.string(printable(note));
    out.end_array();
    out.key("path").string(json_path(loaded.path));
    if (is_there) out.key("schema").string(schema_of(loaded));
    if (!file.unreadable.empty()) out.key("unreadable").string(printable(file.unreadable));
    out.key("valid").boolean(file.valid());
    out.end_object();
  }
  out.end_array().end_object();
  print(out.take() + "\n");
}

int run(const Options& options) {
  std::vector<Checked> files;
  for (const std::string& path : options.paths) {
    Result<LoadedDocument> loaded = load_document(path);
    if (loaded.ok())
      files.push_back(Checked{std::move(loaded).value(), {}, {}});
    else
      files.push_back(
          Checked{LoadedDocument{path, 0, Diagnostics(), std::nullopt, std::nullopt}, loaded.status().message(), {}});
  }
  Diagnostics between("bindings");
  check_bindings(files, between);
  check_plans(files);
  options.json ? print_json(files, between) : print_lines(files, between);
  const bool all_valid = std::all_of(files.begin(), files.end(), [](const Checked& file) { return file.valid(); });
  const bool all_complete = std::all_of(files.begin(), files.end(), [](const Checked& file) { return file.complete; });
  return all_valid && between.empty() && (all_complete || !options.complete) ? kDone : kBadInput;
}

}  // namespace

void add_validate_command(Command& app) {
  Command command =
      app.subcommand("validate", "Check documents of any kind, and bindings against the documents they name");
  const auto options = std::make_shared<Options>();
  command.texts("files", options->paths, "FILE", "Documents; '-' is standard input").required();
  command.flag("--complete", options->complete, "Exit with 2 when a check was skipped because a file is missing");
  command.flag("--json", options->json, "Print the result as JSON");
  command.explain(
      "Each diagnostic is one line: file, document, place, what is wrong with the actual values, and the rule in "
      "brackets.\n"
      "A binding is checked against its placement and snapshot when they are among the files, and against the other "
      "bindings of its instance. Views are checked only with the placement, which states the size and the owner of "
      "each item.\n"
      "A plan is proved against the documents that it includes. Documents of other kinds are checked on their own.",
      {"crossdock validate prefill.json decode.json",
       "crossdock validate prefill.json snapshot.json binding-*.json --complete --json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
