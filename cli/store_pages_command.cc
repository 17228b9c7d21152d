#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>

#include "backends/store/layout_registry.h"
#include "base/file.h"
#include "base/number_text.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/documents.h"
#include "cli/output.h"
#include "cli/store_files.h"
#include "cli/store_restore.h"
#include "cli/store_upload.h"
#include "executor/kv/kv_store.h"
#include "model/kv/schema_rules.h"
#include "model/text.h"
#include "model/wire/documents.h"

namespace crossdock::cli {
namespace {

struct Options {
  StoreSettings store;
  SideOptions side;
  std::string tokens_file;
  uint64_t token_count = 0;
  uint64_t token_seed = 1;
  std::string snapshot;
  bool synthetic = false;
  UploadSettings upload;
  RestoreSettings restore;
  bool json = false;
};

constexpr uint64_t kTokensFileBytesMax = uint64_t{1} << 30;

// Token ids of the file, or synthetic ones.
std::optional<std::vector<uint32_t>> load_tokens(const Options& options) {
  if (options.tokens_file.empty() == (options.token_count == 0)) {
    fail(kBadInput, "give either --tokens-file FILE with token ids, or --tokens N");
    return std::nullopt;
  }
  std::vector<uint32_t> tokens;
  if (options.tokens_file.empty()) {
    Rng rng(options.token_seed);
    for (uint64_t i = 0; i < options.token_count; ++i) tokens.push_back(static_cast<uint32_t>(rng.below(128'000)));
    return tokens;
  }
  const Result<std::string> text = read_file(options.tokens_file, kTokensFileBytesMax);
  if (!text.ok()) {
    fail(kBadInput, text.status().message());
    return std::nullopt;
  }
  const char* at = text.value().data();
  const char* const end = at + text.value().size();
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == '\n' || *at == '\r' || *at == '\t') {
      ++at;
      continue;
    }
    uint32_t token = 0;
    const auto [next, error] = std::from_chars(at, end, token);
    if (error != std::errc()) {
      fail(kBadInput, fmt::format("'{}' byte {}: not a token id", options.tokens_file, at - text.value().data()));
      return std::nullopt;
    }
    tokens.push_back(token);
    at = next;
  }
  return tokens;
}

// A request: its tokens and the keys of its pages.
struct Request {
  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<uint32_t> tokens;
  SnapshotDescriptor descriptor;
  PageDomain domain;
  std::vector<PageKey> keys;

  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot(uint64_t token_count) const {
    SnapshotDescriptor own = descriptor;
    own.tokens = Range(0, token_count);
    // The key of the last page covers all tokens up to its end, so it identifies them. `token_count` is at least one
    // page where there are keys.
    own.token_fingerprint = keys.empty() ? "none" : keys[token_count / domain.page_tokens - 1].digest().hex();
    Diagnostics diagnostics;
    std::optional<Valid<SnapshotDescriptor>> valid = Valid<SnapshotDescriptor>::make(std::move(own), diagnostics);
    // Only tokens and fingerprint differ from a descriptor that was valid.
    CHECK(valid.has_value());
    return std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*valid));
  }
};

// Prints an error and returns nothing on failure.
std::optional<Request> load_request(const Options& options, const char* name) {
  Request request;
  request.placement = load_placement(options.side, name, nullptr);
  if (request.placement == nullptr) return std::nullopt;
  std::optional<std::vector<uint32_t>> tokens = load_tokens(options);
  if (!tokens) return std::nullopt;
  request.tokens = std::move(*tokens);
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  if (options.snapshot.empty()) {
    const PlacementManifest& of = **request.placement;
    snapshot = synthetic_snapshot(of, digest_of_part(of.cache_schema), Range(0, 1), options.side.seed);
  } else if (std::optional<Valid<SnapshotDescriptor>> loaded = load_or_fail<SnapshotDescriptor>(options.snapshot)) {
    snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*loaded));
  }
  if (snapshot == nullptr) return std::nullopt;
  // A look-up must not promise what loading refuses: the snapshot names the model whose pages these are.
  const PlacementManifest& placement = **request.placement;
  const std::string which = options.snapshot.empty() ? "the snapshot" : options.snapshot;
  if (const Sha256Digest given = digest_of_part(placement.cache_schema); (*snapshot)->cache_schema_digest != given) {
    fail(kBadInput, fmt::format("{}: is of cache schema {}, and the model that is given has {}: pages of one cannot be "
                                "loaded into the other",
                                which, (*snapshot)->cache_schema_digest.hex(), given.hex()));
    return std::nullopt;
  }
  if ((*snapshot)->resource != placement.resource) {
    fail(kBadInput, fmt::format("{}: is of resource '{}', and placement '{}' of '{}'", which,
                                printable((*snapshot)->resource.text()), printable(placement.name),
                                printable(placement.resource.text())));
    return std::nullopt;
  }
  request.descriptor = **snapshot;
  Result<PageDomain> domain = make_page_domain(*snapshot, options.upload.page_tokens);
  if (!domain.ok()) {
    fail(kBadInput, domain.status().message());
    return std::nullopt;
  }
  request.domain = std::move(domain).value();
  request.keys = page_keys(request.domain, request.tokens);
  return request;
}

// Registers the layout, and tries again when another writer changed the catalog meanwhile.
Status register_layout(StoreCore& store, const PageDomain& domain, const Valid<StoreLayout>& layout) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    TRY(const LayoutCatalog catalog, layout_catalog(store, domain));
    const Status registered = crossdock::register_layout(store, domain, layout, catalog.revision()).status();
    if (registered.code() != Code::kConflict) return registered;
  }
  return Status(Code::kUnavailable, "the catalog of layouts changed during each of 16 attempts; try again");
}

// Pages that a part has no object of, and why.
struct LeftOut {
  std::string part;
  IntervalSet pages;
  std::string why;
  std::string way_out;  // where it makes the pages useless: no prefix can be restored without one of them
};

// The first rows that live after the last page may be in a page that is not whole in memory. Then that page was not
// stored, and the prefix of all pages lacks it; and for a shorter prefix earlier pages would be needed.
std::string way_out_of(Range live, const IntervalSet& stored, const StoreLayout& layout, uint64_t page_count) {
  const uint64_t first = live.begin() / layout.page_tokens;
  if (live.empty() || stored.contains(IntervalSet{Range(first, page_count)})) return "";
  const bool rows_of_one = std::ranges::all_of(layout.cache_schema.groups, [](const LayerGroup& group) {
    return std::ranges::all_of(group.components,
                               [](const Component& each) { return each.tokens_per_row.value_or(1) == 1; });
  });
  return fmt::format(
      "from this upload alone the prefix of all pages cannot be restored: page {} is not whole in memory, and its rows "
      "live from token {} on. With pages of {} tokens in memory (--page-size {}){} it is",
      first, live.begin(), layout.page_tokens, layout.page_tokens,
      rows_of_one ? ", or stored pages of 1 token (--store-page-size 1)," : "");
}

std::vector<LeftOut> left_out_of(const StoreLayout& layout, const UploadJob& job, uint64_t page_count) {
  std::map<std::string, std::vector<Range>> stored;  // pages, by part
  for (const UploadObject& object : job.objects) {
    const std::string& id = object.id.text();
    const size_t slash = id.rfind('/');
    if (const std::optional<uint64_t> page = decimal(id.substr(slash + 1)))
      stored[id.substr(0, slash)].emplace_back(*page, *page + 1);
  }
  const LayerIndex index(layout.cache_schema);
  std::vector<LeftOut> left_out;
  for (const StorePart& part : layout.parts) {
    const LayerGroup* group_of = nullptr;  // of its rows, which live alike; null: it has states alone
    const Component* rows = nullptr;
    index.for_each_piece(part.layers, [&](Range, size_t group) {
      for (const ComponentName& name : part.components)
        if (const Component* component = layout.cache_schema.groups[group].find(name); !component->is_state()) {
          group_of = &layout.cache_schema.groups[group];
          rows = component;
        }
    });
    if (rows == nullptr) continue;
    const IntervalSet there = IntervalSet::from_ranges(std::move(stored[part.key.text()]));
    IntervalSet missing = IntervalSet{Range(0, page_count)}.subtract(there);
    if (missing.empty()) continue;
    const Range live = live_tokens(*group_of, *rows, Range(0, page_count * layout.page_tokens));
    left_out.push_back({part.key.text(), std::move(missing),
                        fmt::format("of its rows only {} live", group_of->live_of(rows->name).to_text()),
                        way_out_of(live, there, layout, page_count)});
  }
  return left_out;
}

int put(const Options& options) {
  if (options.synthetic == !options.side.data.empty())
    return fail(kBadInput, "give either --data DIR with what the bindings' regions hold, or --synthetic");
  const std::optional<Request> request = load_request(options, "source");
  if (!request) return kBadInput;
  if (request->keys.empty())
    return fail(kBadInput,
                fmt::format("{} tokens have no full page of {}", request->tokens.size(), options.upload.page_tokens));
  const auto layout = load_layout(options.upload, *request->placement);
  if (layout == nullptr) return kBadInput;
  const auto snapshot = request->snapshot(request->keys.size() * request->domain.page_tokens);
  int exit_code = kDone;
  SideOptions side_options = options.side;
  side_options.whole_pages = true;
  std::optional<LocalSide> side = load_side(side_options, request->placement, snapshot, exit_code);
  if (!side) return exit_code;
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  // Before the upload: once pages are published, readers have to find the layout that they are in.
  if (const Status registered = register_layout(*store, request->domain, *layout); !registered.ok())
    return fail_store(registered);
  if (options.synthetic)
    fill(*side, options.side.seed, threads_of(options.upload), "writing synthetic content", is_quiet(options.upload));
  else if (const Status read = read_regions(options.side.data, *side); !read.ok())
    return fail_store(read);
  UploadOptions upload;
  KvUpload what;
  what.documents = UploadDocuments{request->placement, snapshot, layout};
  what.page_keys = request->keys;
  what.plan = plan_options(options.upload, **layout);
  upload.planner = std::make_shared<const KvUploadPlanner>(std::move(what));
  const UploadReport report = run_upload(options.upload, *store, *side, std::move(upload));
  if (!report.problem.ok()) return fail_store(report.problem);
  const UploadOutcome& outcome = report.outcome;
  if (!outcome.committed) return fail_upload(outcome);
  const std::vector<LeftOut> left_out = left_out_of(**layout, *report.job, request->keys.size());
  if (options.upload.json) {
    JsonWriter out;
    out.begin_object();
    out.key("bytes").number(outcome.bytes);
    out.key("left_out").begin_array();
    for (const LeftOut& each : left_out) {
      out.begin_object();
      out.key("pages").begin_array();
      for (const Range pages : each.pages.ranges())
        out.begin_array().number(pages.begin()).number(pages.end()).end_array();
      out.end_array();
      out.key("part").string(printable(each.part));
      out.key("way_out").string(each.way_out);
      out.key("why").string(each.why);
      out.end_object();
    }
    out.end_array();
    out.key("objects").number(outcome.object_count);
    out.key("pages").number(request->keys.size());
    out.key("publication").number(outcome.sequence.value_or(0));
    out.end_object();
    print(out.take() + "\n");
  } else {
    print(fmt::format("stored {} pages of {} tokens: {} objects, {} ({} bytes) in {} ({})\npublication {}\n",
                      request->keys.size(), request->domain.page_tokens, grouped(outcome.object_count),
                      human_bytes(outcome.bytes), grouped(outcome.bytes), seconds_text(report.total),
                      rate_text(outcome.bytes, report.total), outcome.sequence.value_or(0)));
    for (const LeftOut& each : left_out) {
      print(fmt::format("left out: part '{}' of pages {}: {}\n", printable(each.part), set_text(each.pages), each.why));
      if (!each.way_out.empty()) print(fmt::format("  {}\n", each.way_out));
    }
  }
  return kDone;
}

// The objects that a look-up found.
class FoundInventory : public PageInventory {
 public:
  explicit FoundInventory(const Found& found) : keys_(found.pages.begin(), found.pages.end()) {}
  bool has(const PageKey& page, const Sha256Digest& layout, const ObjectKey& part, PageObject object) const override {
    return keys_.contains(PageObjectKey{page, layout, part, object});
  }

 private:
  std::set<PageObjectKey> keys_;
};

struct Matched {
  LayoutCatalog catalog;
  PrefixMatch match;
};

// The lease is given back before the restore begins. Pages may go in between; the restore looks them up again under a
// lease of its own and fails with a cause, so nothing is read that is not held.
Result<Matched> match_request(StoreCore& store, const Request& request) {
  TRY(LayoutCatalog catalog, layout_catalog(store, request.domain));
  const CacheSchema& schema = (*request.placement)->cache_schema;
  const bool has_states = std::any_of(schema.groups.begin(), schema.groups.end(), [](const LayerGroup& group) {
    return std::any_of(group.components.begin(), group.components.end(),
                       [](const Component& component) { return component.is_state(); });
  });
  std::vector<PageObjectKey> wanted;
  for (const PageKey& page : request.keys)
    for (const CatalogedLayout& layout : catalog.layouts())
      for (const StorePart& part : layout.layout->parts)
        for (const PageObject object : {PageObject::kRows, PageObject::kState})
          if (object == PageObject::kRows || has_states)
            wanted.push_back(PageObjectKey{page, layout.digest, part.key, object});
  TRY(const Found found, store.lookup(Lookup{wanted, LeaseRequest{"match", Duration::from_s(60)}}));
  TRY_STATUS(store.release(found.lease));
  TRY(PrefixMatch match, match_prefix(catalog, request.keys, FoundInventory(found)));
  return Matched{std::move(catalog), std::move(match)};
}

std::string match_text(const Request& request, const PrefixMatch& match) {
  std::string text =
      fmt::format("{} of {} tokens can be restored: {} of {} pages of {}\n", grouped(match.token_count),
                  grouped(request.tokens.size()), match.page_count, request.keys.size(), request.domain.page_tokens);
  for (const RowSource& rows : match.rows)
    text += fmt::format("pages {}-{}: layout {}, {} objects each\n", rows.pages.begin(), rows.pages.end() - 1,
                        rows.layout.hex().substr(0, 16), rows.parts.size());
  if (match.state)
    text += fmt::format("states of page {}: layout {}, {} objects\n", match.state->page,
                        match.state->layout.hex().substr(0, 16), match.state->parts.size());
  if (match.stop) text += fmt::format("no more: {}\n", printable(match.stop->to_text()));
  return text;
}

int match(const Options& options) {
  const std::optional<Request> request = load_request(options, "target");
  if (!request) return kBadInput;
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<Matched> matched = match_request(*store, *request);
  if (!matched.ok()) return fail_store(matched.status());
  const PrefixMatch& found = matched.value().match;
  if (!options.json) {
    print(match_text(*request, found));
    return kDone;
  }
  JsonWriter out;
  out.begin_object();
  out.key("lookups").number(found.lookup_count);
  out.key("pages").number(found.page_count);
  out.key("pages_asked").number(request->keys.size());
  out.key("stop").string(found.stop ? printable(found.stop->to_text()) : "");
  out.key("tokens").number(found.token_count);
  out.end_object();
  print(out.take() + "\n");
  return kDone;
}

int get(const Options& options) {
  if (!options.side.data.empty() && options.side.bindings.empty())
    return fail(kBadInput, "--data-output needs --binding");
  const std::optional<Request> request = load_request(options, "target");
  if (!request) return kBadInput;
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<Matched> matched = match_request(*store, *request);
  if (!matched.ok()) return fail_store(matched.status());
  const PrefixMatch& found = matched.value().match;
  if (!options.restore.json) print(match_text(*request, found));
  if (found.page_count == 0) return fail(kFailed, "no page of the request is stored");
  const auto snapshot = request->snapshot(found.token_count);
  int exit_code = kDone;
  std::optional<LocalSide> side = load_side(options.side, request->placement, snapshot, exit_code);
  if (!side) return exit_code;
  KvRestore restore;
  restore.what =
      std::make_shared<const PrefixRestore>(PrefixRestore{matched.value().catalog, found, request->keys, *snapshot});
  return run_restore(options.restore, *store, *side, std::move(restore), options.side.data, options.side.seed);
}

void add_request_options(Command& command, Options& options, const std::string& spec_name, const std::string& data_name,
                         const std::string& data_help) {
  add_store_options(command, options.store);
  add_model_options(command, options.side.model);
  add_side_options(command, options.side, spec_name, data_name, data_help);
  command.text("--tokens-file", options.tokens_file, "FILE",
               "Token ids of the request, separated by white space or commas");
  command.number("--tokens", options.token_count, 1, uint64_t{1} << 32, "Or a number of synthetic token ids");
  command.number("--token-seed", options.token_seed, 0, UINT64_MAX, "Seed of synthetic token ids");
  command.text("--snapshot", options.snapshot, "FILE",
               "Tenant, model, adapter and salt of the pages (default: synthetic ones)");
}

}  // namespace

void add_store_pages_command(Command& store) {
  Command pages = store.subcommand("pages", "Store pages of tokens, shared by requests with a common prefix");
  pages.requires_subcommand();
  const auto options = std::make_shared<Options>();
  Options& o = *options;

  Command put_command = pages.subcommand("put", "Store the full pages of a request");
  add_request_options(put_command, o, "--from", "--data", "With --binding: the bytes of each region");
  put_command.flag("--synthetic", o.synthetic, "Use synthetic content instead of --data");
  add_upload_options(put_command, o.upload);
  put_command.explain("", {"crossdock store pages put cache --config examples/models/llama-3.1-8b/config.json --from "
                           "tp4 --tokens 4096 --synthetic"});
  put_command.action([options] { return put(*options); });

  Command match_command = pages.subcommand("match", "Show the longest prefix that can be restored, and why it ends");
  add_request_options(match_command, o, "--to", "", "");
  match_command.number("--store-page-size", o.upload.page_tokens, 1, uint64_t{1} << 32, "Tokens of a stored page");
  match_command.flag("--json", o.json, "Print the result as JSON");
  match_command.explain(
      "",
      {"crossdock store pages match cache --config examples/models/llama-3.1-8b/config.json --to tp2 --tokens 8192"});
  match_command.action([options] { return match(*options); });

  Command get_command = pages.subcommand("get", "Restore the longest prefix of a request");
  add_request_options(get_command, o, "--to", "--data-output", "With --binding: write the bytes of each region here");
  get_command.number("--store-page-size", o.upload.page_tokens, 1, uint64_t{1} << 32, "Tokens of a stored page");
  add_restore_options(get_command, o.restore);
  get_command.explain("", {"crossdock store pages get cache --config examples/models/llama-3.1-8b/config.json --to tp2 "
                           "--tokens 8192 --verify full"});
  get_command.action([options] { return get(*options); });
  pages.explain(
      "The key of a page covers its domain (tenant, model, adapter, salt, cache schema, page size) and all tokens up "
      "to its end. Writers with different parallel layouts register their store layouts; readers look in all of them.",
      {"crossdock store pages match cache --config examples/models/llama-3.1-8b/config.json --to tp2 --tokens 8192"});
}

}  // namespace crossdock::cli
