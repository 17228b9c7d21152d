#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/number_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/output.h"
#include "model/kv/binding_rules.h"
#include "model/text.h"

namespace crossdock::cli {
namespace {

constexpr const char* kUnstated = "unstated";

struct Options {
  std::string placement;
  Range tokens;
  std::string tenant = "default";
  std::string model_id = kUnstated;
  std::string model_revision = kUnstated;
  std::optional<Adapter> adapter;
  std::string salt;
  std::string semantic_fingerprint = kUnstated;
  std::string token_fingerprint = kUnstated;
  std::string output;
};

// "N" or "A:B", not empty.
Result<Range> token_range(const std::string& text) {
  const size_t colon = text.find(':');
  const bool is_count = colon == std::string::npos;
  const std::optional<uint64_t> begin = is_count ? 0 : decimal(std::string_view(text).substr(0, colon));
  const std::optional<uint64_t> end = decimal(std::string_view(text).substr(is_count ? 0 : colon + 1));
  if (!begin || !end || *begin >= *end)
    return Status(Code::kInvalidArgument,
                  fmt::format("'{}' is not a number of tokens, nor A:B with A less than B", text));
  return Range(*begin, *end);
}

// "ID@REVISION"; the id may contain an @ itself.
Result<Adapter> adapter_of(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return Status(Code::kInvalidArgument, fmt::format("'{}' is not ID@REVISION", text));
  return Adapter{text.substr(0, at), text.substr(at + 1)};
}

int run(const Options& options) {
  const std::optional<Valid<PlacementManifest>> placement = load_or_fail<PlacementManifest>(options.placement);
  if (!placement) return kBadInput;
  if (!(*placement)->tokens.contains(options.tokens))
    return fail(kBadInput, fmt::format("tokens {} exceed the tokens {} of placement '{}'", range_text(options.tokens),
                                       range_text((*placement)->tokens), (*placement)->name));
  SnapshotDescriptor descriptor;
  descriptor.tenant = options.tenant;
  descriptor.resource = (*placement)->resource;
  descriptor.model_id = options.model_id;
  descriptor.model_revision = options.model_revision;
  descriptor.adapter = options.adapter;
  descriptor.salt = options.salt;
  descriptor.semantic_fingerprint = options.semantic_fingerprint;
  descriptor.cache_schema_digest = cache_schema_digest(*placement);
  descriptor.tokens = options.tokens;
  descriptor.token_fingerprint = options.token_fingerprint;
  Diagnostics diagnostics;
  const auto snapshot = Valid<SnapshotDescriptor>::make(std::move(descriptor), diagnostics);
  if (!snapshot) return fail(diagnostics);
  return write_document(
      options.output, to_json(*snapshot),
      fmt::format("snapshot of '{}', tokens {}", (*snapshot)->resource.text(), range_text(options.tokens)));
}

}  // namespace

void add_snapshot_command(Command& app) {
  Command command =
      app.subcommand("snapshot", "Make a snapshot descriptor: model, tenant and tokens of a request's cache");
  const auto options = std::make_shared<Options>();
  command
      .text("--placement", options->placement, "FILE", "Placement with the resource and cache schema of the snapshot")
      .required();
  const auto set_tokens = [options](const std::string& text) -> Status {
    TRY(options->tokens, token_range(text));
    return Status();
  };
  command.parsed("--tokens", set_tokens, "N|A:B", "Tokens of the snapshot: N for the first N, or A:B for A to B-1")
      .required();
  command.text("--tenant", options->tenant, "NAME", "Namespace: two tenants never share a snapshot");
  command.text("--model-id", options->model_id, "NAME", "Identity of the model");
  command.text("--model-revision", options->model_revision, "NAME", "Revision of the model");
  const auto set_adapter = [options](const std::string& text) -> Status {
    TRY(options->adapter, adapter_of(text));
    return Status();
  };
  command.parsed("--adapter", set_adapter, "ID@REVISION",
                 "Fine-tuned variant, for example a LoRA (default: the base model)");
  command.any_text("--salt", options->salt, "TEXT", "Separates caches that are equal otherwise (default: empty)");
  command.text("--semantic-fingerprint", options->semantic_fingerprint, "NAME",
               "Everything else that changes the values: position encoding, kernels, quantisation");
  command.text("--token-fingerprint", options->token_fingerprint, "NAME",
               "Identity of all tokens up to the end of the snapshot");
  command.text("-o,--output", options->output, "FILE", "Write the document here instead of to standard output");
  command.explain(
      "Two snapshots have the same content when all of these fields are equal. A field that is 'unstated' "
      "distinguishes nothing: that is enough to try out plans and bindings, but not to find stored caches again.",
      {"crossdock snapshot --placement prefill.json --tokens 32768 -o snapshot.json",
       "crossdock snapshot --placement prefill.json --tokens 4096:8192 --model-id meta-llama/Llama-3.1-70B --adapter "
       "support@v2"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
