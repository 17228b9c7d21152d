#include <fmt/format.h>

#include <memory>

#include "base/file.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/output.h"
#include "cli/plan_output.h"
#include "model/wire/json_writer.h"
#include "planner/kv/plan_json.h"
#include "planner/kv/verify_plan.h"

namespace crossdock::cli {
namespace {

struct Options {
  std::string path;
  std::string source;
  std::string target;
  bool json = false;
};

// The document of one side: the given file, or the one that the plan includes.
bool find_document(const std::string& path, std::string_view option, std::optional<AnyDocument>& document) {
  if (!path.empty()) {
    document = load_any_or_fail(path);
    return document.has_value();
  }
  if (document) return true;
  fail(kBadInput, fmt::format("the plan does not include its {} document: give it with --{}", option, option));
  return false;
}

std::string result_json(const PlanDocument& document, const PlanSide& source, const PlanSide& target,
                        const PlanProof& proof, const Diagnostics& diagnostics) {
  JsonWriter out;
  out.begin_object();
  out.key("cells").number(proof.cells);
  out.key("complete").boolean(proof.complete);
  out.key("diagnostic_count").number(diagnostics.total());
  out.key("diagnostics");
  encode_diagnostics(out, diagnostics, false);
  out.key("digest").string(digest(document.plan).hex());
  out.key("places").raw(proof_diagnostics_json(*document.plan, source, target, proof));
  out.key("proved").boolean(diagnostics.empty());
  out.key("scope").string(scope_text(*document.plan, target));
  out.key("target_count").number(document.plan->targets.size());
  out.key("targets_in_document").number(target.owners().size());
  out.end_object();
  return out.take();
}

// The plan and its documents may come from elsewhere, so nothing is reported of them but what the verifier proves.
int run(const Options& options) {
  const Result<std::string> text = read_file(options.path, JsonLimits().bytes_max);
  if (!text.ok()) return fail(kBadInput, text.status().message());
  Diagnostics diagnostics("plan");
  std::optional<PlanDocument> document = read_plan(text.value(), JsonLimits(), diagnostics);
  if (!document) return fail(options.path, diagnostics);
  if (!find_document(options.source, "source", document->source) ||
      !find_document(options.target, "target", document->target))
    return kBadInput;
  const std::optional<PlanSide> source = plan_side(*document->source);
  const std::optional<PlanSide> target = plan_side(*document->target);
  for (const auto& [side, any] : {std::pair(&source, &*document->source), std::pair(&target, &*document->target)})
    if (!*side) return fail(kBadInput, fmt::format("a {} cannot be a side of a plan", schema_name(*any)));

  const PlanProof proof = verify_plan(document->plan, *source, *target, VerifyLimits(), diagnostics);
  if (options.json)
    print(result_json(*document, *source, *target, proof, diagnostics) + "\n");
  else if (diagnostics.empty())
    print(fmt::format(
        "{}: proved for {}: {} edges bring {} what it requires, each element once ({} cells), sha256:{}\n",
        printable(options.path), scope_text(*document->plan, *target), grouped(document->plan->edges.size()),
        printable(target->label()), grouped(proof.cells), digest(document->plan).hex()));
  else
    print(diagnostic_lines(options.path, diagnostics));
  return diagnostics.empty() ? kDone : kBadInput;
}

}  // namespace

void add_verify_plan_command(Command& app) {
  Command command =
      app.subcommand("verify-plan", "Prove a plan against its two documents, or report each gap and overlap");
  const auto options = std::make_shared<Options>();
  command.any_text("plan", options->path, "FILE", "Plan document; '-' is standard input").required();
  command.text("--source", options->source, "FILE", "Source document (default: the one that the plan includes)");
  command.text("--target", options->target, "FILE", "Target document (default: the one that the plan includes)");
  command.flag("--json", options->json, "Print the result as JSON, with the exact coordinates of each diagnostic");
  command.explain(
      "The proof sweeps over the boundaries of what the targets own, independent of the planner.\n"
      "Exit status: 0 proved, 2 the plan breaks a rule; each diagnostic is one line with the rule in brackets.",
      {"crossdock verify-plan plan.json",
       "crossdock verify-plan plan.json --source prefill.json --target decode.json --json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
