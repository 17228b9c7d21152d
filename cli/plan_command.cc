#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <tuple>
#include <variant>

#include "base/number_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/plan_output.h"
#include "model/kv/binding_rules.h"
#include "model/text.h"
#include "model/wire/json_writer.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/expand.h"
#include "planner/kv/lower.h"
#include "planner/kv/plan_json.h"
#include "planner/kv/prepare.h"
#include "planner/kv/store_geometry.h"

namespace crossdock::cli {
namespace {

struct Options {
  bool upload = false;
  bool restore = false;
  std::string source;
  std::string target;
  std::string manifest;
  std::string layout;
  std::optional<std::string> object_order;
  uint64_t page_tokens = 0;
  std::string layout_output;
  std::string snapshot;
  std::string tokens;
  std::string source_dp;
  std::string target_dp;
  std::vector<std::string> participants;
  std::vector<std::string> from;
  std::string selection = "deterministic";
  std::vector<std::string> nics;
  std::vector<std::string> source_bindings;
  std::vector<std::string> target_bindings;
  bool steps = false;
  bool expand = false;
  bool json = false;
  bool no_documents = false;
  uint64_t row_count_max = 50;
  uint64_t operation_ns = 0;
  uint64_t bandwidth = 0;
  uint64_t gather_bandwidth = 0;
  uint64_t gather_piece_ns = 0;
  uint64_t staging_bytes = 0;
  uint64_t strided_axes = 0;
  std::string output;
};

constexpr uint64_t kDefaultPageTokens = 64;

// One side of the plan: its document and the planner's view of it.
struct Side {
  std::string path;
  AnyDocument document;
  Sha256Digest digest;
  std::optional<PlanSide> side;
};

// All inputs of one plan. Each member refers to those before it (PlanSide to its document, BoundSide to bindings and
// contexts), so it is filled in this order and never moved.
struct Work {
  std::optional<Side> source;
  std::optional<Side> target;
  std::optional<Valid<SnapshotDescriptor>> snapshot;
  PlanOptions plan_options;
  std::vector<std::unique_ptr<Valid<RuntimeBinding>>> bindings;
  std::optional<BindingContext> source_context;
  std::optional<BindingContext> target_context;
  std::optional<SnapshotObjects> objects;
  std::optional<BoundSide> source_bytes;
  std::optional<BoundSide> target_bytes;
};

bool usage(std::string_view message) {
  fail(kBadInput, message);
  return false;
}

bool refused(const std::string& label, const Diagnostics& diagnostics) {
  fail(label, diagnostics);
  return false;
}

template <class Document>
bool load_side(const std::string& path, std::string_view option, std::optional<Side>& side) {
  std::optional<AnyDocument> document = load_any_or_fail(path);
  if (!document) return false;
  if (std::get_if<Valid<Document>>(&*document) == nullptr)
    return usage(fmt::format("{} {}: is a {}, which is not allowed here", option, path, schema_name(*document)));
  side.emplace(Side{path, std::move(*document), {}, {}});
  side->digest = digest(side->document);
  side->side.emplace(std::get<Valid<Document>>(side->document), side->digest);
  return true;
}

// "A:B", "A:" or ":B".
std::optional<Range> token_range(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string first = text.substr(0, colon);
  const std::string last = text.substr(colon + 1);
  const std::optional<uint64_t> begin = first.empty() ? std::optional<uint64_t>(0) : decimal(first);
  const std::optional<uint64_t> end = last.empty() ? std::optional(Range::kUnbounded) : decimal(last);
  if (!begin || !end || *begin >= *end) return std::nullopt;
  return Range(*begin, *end);
}

std::optional<TransportLimits> transport_of(const Options& options) {
  TransportLimits limits;
  limits.operation_ns = options.operation_ns;
  limits.bandwidth_bytes_per_s = options.bandwidth;
  limits.gather_bytes_per_s = options.gather_bandwidth;
  limits.gather_piece_ns = options.gather_piece_ns;
  limits.staging_bytes_max = options.staging_bytes;
  limits.strided_axis_count_max = options.strided_axes;
  if (limits == TransportLimits()) return std::nullopt;
  return limits;
}

// Every contradiction between options is found before a file is read.
bool check_usage(const Options& options) {
  if (options.upload && options.restore) return usage("give either --upload or --restore");
  if (options.upload) {
    if (options.source.empty() || !options.target.empty() || !options.manifest.empty())
      return usage("--upload needs --source, and takes neither --target nor --manifest");
    if (!options.layout.empty() && options.page_tokens != 0)
      return usage("--page-size does not go with --layout, which states its page size");
  } else if (options.restore) {
    if (options.target.empty() || !options.source.empty() || options.manifest.empty() == options.layout.empty())
      return usage("--restore needs --target, and either --manifest or --layout instead of --source");
  } else if (options.source.empty() || options.target.empty()) {
    return usage("--source and --target are needed (or --upload, or --restore)");
  } else if (!options.manifest.empty() || !options.layout.empty()) {
    return usage("--manifest and --layout need --restore or --upload");
  }
  if (!options.layout_output.empty() && !options.upload) return usage("--layout-output needs --upload");
  if (options.expand && options.json) return usage("--expand prints JSON lines already; leave out --json");
  const bool has_bindings = !options.source_bindings.empty() || !options.target_bindings.empty();
  if (has_bindings && !options.steps && !options.expand) return usage("bindings need --steps or --expand");
  if (options.upload && !options.target_bindings.empty()) return usage("--upload has no target bindings");
  if (options.restore && !options.source_bindings.empty()) return usage("--restore has no source bindings");
  if (options.steps || has_bindings) {
    if (!options.restore && options.source_bindings.empty()) return usage("--steps needs --source-binding");
    if (!options.upload && options.target_bindings.empty()) return usage("--steps needs --target-binding");
  }
  if (!options.steps && transport_of(options))
    return usage("--operation-ns, --bandwidth, --strided-axes, --staging and --gather-... need --steps");
  if (options.object_order && (!options.upload || !options.layout.empty()))
    return usage("--object-order needs --upload without --layout");
  const bool by_page = options.selection == "by-page";
  if (options.page_tokens != 0 && !options.upload && !by_page)
    return usage("--page-size needs --upload or --selection by-page");
  if (by_page && options.restore) return usage("--selection by-page chooses among participants, and a store has none");
  if (!options.nics.empty() && options.selection != "balanced") return usage("--nic needs --selection balanced");
  if (options.output == "-" && (options.expand || options.json || options.layout_output == "-"))
    return usage("-o - prints the plan alone: leave out --expand, --json and --layout-output -");
  return true;
}

bool fill_plan_options(const Options& options, Work& work) {
  PlanOptions& plan = work.plan_options;
  if (!options.tokens.empty()) {
    const std::optional<Range> tokens = token_range(options.tokens);
    if (!tokens) return usage(fmt::format("--tokens '{}' is not an interval like 0:4096", options.tokens));
    plan.tokens = *tokens;
  }
  for (const auto& [text, name, value] : {std::tuple(&options.source_dp, "--source-dp", &plan.source_dp),
                                          std::tuple(&options.target_dp, "--target-dp", &plan.target_dp)}) {
    if (text->empty()) continue;
    *value = decimal(*text);
    if (!*value) return usage(fmt::format("{} '{}' is not a data-parallel rank", name, *text));
  }
  for (const std::string& participant : options.participants) plan.targets.emplace_back(participant);
  for (const std::string& participant : options.from) plan.sources.emplace_back(participant);
  if (options.selection == "balanced") plan.selection = SourceSelection::kBalanced;
  if (options.selection == "by-page") plan.selection = SourceSelection::kByPage;
  for (const std::string& text : options.nics) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return usage(fmt::format("--nic '{}' is not of the form NAME=PARTICIPANT,PARTICIPANT,...", text));
    NicGroup group{text.substr(0, equals), {}};
    for (size_t begin = equals + 1; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      group.participants.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    plan.nics.push_back(std::move(group));
  }
  return true;
}

// The store layout for this source: from a file, or made here.
bool load_layout(const Options& options, Work& work) {
  if (!options.layout.empty()) return load_side<StoreLayout>(options.layout, "--layout", work.target);
  const auto& placement = std::get<Valid<PlacementManifest>>(work.source->document);
  const std::string object_order = options.object_order.value_or("plhd");
  // Found: the option allows no other names.
  const auto order = std::find_if(kObjectOrders.begin(), kObjectOrders.end(),
                                  [&](const ObjectOrderName& each) { return each.name == object_order; });
  const uint64_t page_tokens = options.page_tokens != 0 ? options.page_tokens
                               : placement->paging      ? placement->paging->page_tokens
                                                        : kDefaultPageTokens;
  Diagnostics diagnostics;
  std::optional<Valid<StoreLayout>> layout =
      layout_of(placement, work.plan_options.source_dp, order->order, page_tokens,
                fmt::format("{}-{}", placement->name, object_order), diagnostics);
  if (!layout) return refused(options.source, diagnostics);
  work.target.emplace(Side{"the layout made for it", AnyDocument(std::move(*layout)), {}, {}});
  work.target->digest = digest(work.target->document);
  work.target->side.emplace(std::get<Valid<StoreLayout>>(work.target->document), work.target->digest);
  return true;
}

// Of an upload the source comes first, because its layout may be made from it.
bool load_sides(const Options& options, Work& work) {
  if (options.upload)
    return load_side<PlacementManifest>(options.source, "--source", work.source) && load_layout(options, work);
  if (!load_side<PlacementManifest>(options.target, "--target", work.target)) return false;
  if (!options.restore) return load_side<PlacementManifest>(options.source, "--source", work.source);
  if (!options.layout.empty()) return load_side<StoreLayout>(options.layout, "--layout", work.source);
  if (!load_side<StoreManifest>(options.manifest, "--manifest", work.source)) return false;
  work.plan_options.snapshot_tokens = work.source->side->tokens();
  return true;
}

// The pages that replicas take turns in: those of the store layout, else those that are asked for, else the source's.
void choose_page_size(const Options& options, Work& work) {
  if (work.plan_options.selection != SourceSelection::kByPage) return;
  const std::optional<Paging>& paging = std::get<Valid<PlacementManifest>>(work.source->document)->paging;
  const auto* layout = std::get_if<Valid<StoreLayout>>(&work.target->document);
  work.plan_options.selection_page_tokens = layout != nullptr          ? (*layout)->page_tokens
                                            : options.page_tokens != 0 ? options.page_tokens
                                            : paging                   ? paging->page_tokens
                                                                       : kDefaultPageTokens;
}

bool load_snapshot(const Options& options, Work& work) {
  if (options.snapshot.empty()) return true;
  work.snapshot = load_or_fail<SnapshotDescriptor>(options.snapshot);
  if (!work.snapshot) return false;
  const auto* manifest = std::get_if<Valid<StoreManifest>>(&work.source->document);
  if (manifest != nullptr && (*manifest)->snapshot != **work.snapshot)
    return usage(
        fmt::format("--snapshot {} differs from the snapshot of --manifest {}", options.snapshot, options.manifest));
  work.plan_options.snapshot_tokens = (*work.snapshot)->tokens;
  Diagnostics diagnostics;
  check_snapshot(**work.snapshot, *work.source->side, digest_of_part(work.source->side->cache_schema()),
                 *work.target->side, diagnostics);
  return diagnostics.empty() || refused(options.snapshot, diagnostics);
}

// What is asked for has to be there: tokens that the snapshot does not have would be left out without a word.
bool check_asked_tokens(const Options& options, const Work& work) {
  const std::optional<Range>& snapshot = work.plan_options.snapshot_tokens;
  if (options.tokens.empty() || !snapshot) return true;
  const Range asked = work.plan_options.tokens;
  const bool begins = options.tokens.front() != ':';
  const bool ends = options.tokens.back() != ':';
  if ((!begins || snapshot->begin() <= asked.begin()) && asked.begin() < snapshot->end() &&
      (!ends || asked.end() <= snapshot->end()) && snapshot->begin() < asked.end())
    return true;
  return usage(fmt::format("--tokens {}: the snapshot has tokens {}", options.tokens, range_text(*snapshot)));
}

bool bind_runtime(const std::vector<std::string>& paths, const Side& side, Work& work,
                  std::optional<BindingContext>& context, std::optional<BoundSide>& bytes) {
  const auto& placement = std::get<Valid<PlacementManifest>>(side.document);
  context.emplace(placement, work.snapshot ? &*work.snapshot : nullptr);
  std::vector<const Valid<RuntimeBinding>*> pointers;
  std::vector<std::string> files;
  if (!list_documents(paths, files)) return false;
  for (const std::string& path : files) {
    std::optional<Valid<RuntimeBinding>> binding = load_or_fail<RuntimeBinding>(path);
    if (!binding) return false;
    // On the heap: pointers to them stay valid while the list grows.
    work.bindings.push_back(std::make_unique<Valid<RuntimeBinding>>(std::move(*binding)));
    pointers.push_back(work.bindings.back().get());
  }
  Diagnostics diagnostics;
  bytes = BoundSide::bind(*context, pointers, diagnostics);
  return bytes || refused(side.path, diagnostics);
}

// The objects of a layout depend on the token range, which the bindings of the other side state.
bool bind_layout(const Side& side, Range tokens, Work& work, std::optional<BoundSide>& bytes) {
  Diagnostics diagnostics;
  work.objects = snapshot_objects(std::get<Valid<StoreLayout>>(side.document), side.digest, tokens, diagnostics);
  if (!work.objects) return refused(side.path, diagnostics);
  bytes.emplace(*work.objects);
  return true;
}

bool bind_sides(const Options& options, Work& work) {
  if (!options.source_bindings.empty() &&
      !bind_runtime(options.source_bindings, *work.source, work, work.source_context, work.source_bytes))
    return false;
  if (!options.target_bindings.empty() &&
      !bind_runtime(options.target_bindings, *work.target, work, work.target_context, work.target_bytes))
    return false;
  if (options.upload) return bind_layout(*work.target, work.source_bytes->tokens(), work, work.target_bytes);
  if (!options.restore) return true;
  if (!options.layout.empty()) return bind_layout(*work.source, work.target_bytes->tokens(), work, work.source_bytes);
  work.source_bytes.emplace(std::get<Valid<StoreManifest>>(work.source->document), work.source->digest);
  return true;
}

template <class Encode>
std::string json_line(Encode encode) {
  JsonWriter out;
  encode(out);
  return out.take();
}

// Fields in the order that docs/formats/output.md gives them; JsonWriter would sort them.
class Line {
 public:
  Line& text(std::string_view name, std::string_view value) {
    return add(name, json_line([&](JsonWriter& out) { out.string(value); }));
  }
  Line& number(std::string_view name, uint64_t value) { return add(name, fmt::to_string(value)); }
  std::string take() { return line_ + "}\n"; }

 private:
  Line& add(std::string_view name, std::string_view json) {
    line_ += fmt::format("{}\"{}\":{}", line_.empty() ? "{" : ",", name, json);
    return *this;
  }
  std::string line_;
};

std::string line_of(const LogicalRow& row) {
  return Line()
      .text("source", row.source)
      .text("target", row.target)
      .number("layer", row.layer)
      .text("component", row.component)
      .number("head_start", row.heads.begin())
      .number("head_count", row.heads.size())
      .number("token_start", row.tokens.begin())
      .number("token_count", row.tokens.size())
      .number("source_head_offset", row.source_head_offset)
      .number("target_head_offset", row.target_head_offset)
      .number("head_dim", row.head_dim)
      .number("itemsize", row.item_bytes)
      .take();
}

std::string line_of(const StoreRow& row) {
  return Line()
      .text("participant", row.participant)
      .number("layer", row.layer)
      .text("component", row.component)
      .number("head_start", row.heads.begin())
      .number("head_count", row.heads.size())
      .number("part_index", row.part_index)
      .number("part_offset", row.part_offset)
      .number("token_stride_bytes", row.row_stride_bytes)
      .number("head_stride_bytes", row.head_stride_bytes)
      .take();
}

std::string line_of(const ByteRow& row) {
  return Line()
      .text("source", row.source)
      .text("target", row.target)
      .text("source_region", row.source_region)
      .number("source_offset", row.source_offset)
      .text("target_region", row.target_region)
      .number("target_offset", row.target_offset)
      .number("bytes", row.bytes)
      .take();
}

// Lines sorted as text, so that sort, comm and diff of other tools agree about their order.
template <class Row>
int print_rows(const std::optional<std::vector<Row>>& rows, const Diagnostics& diagnostics) {
  if (!rows) return fail("the plan's rows", diagnostics);
  std::vector<std::string> lines;
  lines.reserve(rows->size());
  for (const Row& row : *rows) lines.push_back(line_of(row));
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) print(line);
  return kDone;
}

int print_expanded(const Work& work, const TransferPlan& plan, const LoweredPlan* lowered) {
  Diagnostics diagnostics;
  if (lowered != nullptr) return print_rows(byte_rows(plan, *lowered, kRowsMax, diagnostics), diagnostics);
  const Side& store = plan.kind == PlanKind::kUpload ? *work.target : *work.source;
  if (const auto* layout = std::get_if<Valid<StoreLayout>>(&store.document)) {
    const std::optional<StoreGeometry> geometry = store_geometry(*layout, diagnostics);
    if (!geometry) return fail(store.path, diagnostics);
    return print_rows(store_rows(plan, **layout, *geometry, kRowsMax, diagnostics), diagnostics);
  }
  return print_rows(logical_rows(plan, *work.source->side, *work.target->side, kRowsMax, diagnostics), diagnostics);
}

int write_files(const Options& options, const Work& work, const Valid<TransferPlan>& plan) {
  if (!options.layout_output.empty()) {
    const auto& layout = std::get<Valid<StoreLayout>>(work.target->document);
    const int code = write_document(options.layout_output, to_json(layout),
                                    fmt::format("store layout '{}', {} parts", layout->name, layout->parts.size()));
    if (code != kDone) return code;
  }
  if (options.output.empty()) return kDone;
  const AnyDocument* source = options.no_documents ? nullptr : &work.source->document;
  const AnyDocument* target = options.no_documents ? nullptr : &work.target->document;
  return write_document(options.output, plan_to_json(plan, source, target),
                        fmt::format("plan, {} edges", grouped(plan->edges.size())));
}

int run(const Options& options) {
  Work work;
  if (!check_usage(options) || !fill_plan_options(options, work) || !load_sides(options, work)) return kBadInput;
  choose_page_size(options, work);
  if (!load_snapshot(options, work) || !check_asked_tokens(options, work)) return kBadInput;
  if ((options.steps || !options.source_bindings.empty() || !options.target_bindings.empty()) &&
      !bind_sides(options, work))
    return kBadInput;

  const auto begin = std::chrono::steady_clock::now();
  const auto ms_since = [](auto from) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
  };
  Diagnostics diagnostics("plan");
  // No plan is shown or written before it is proved (I1).
  const std::optional<ProvedPlan> proved = make_proved_plan(*work.source->side, *work.target->side, work.plan_options,
                                                            PlanLimits(), VerifyLimits(), diagnostics);
  const std::string label = fmt::format("{} -> {}", work.source->path, work.target->path);
  if (!proved) return fail(label, diagnostics);
  log_info(fmt::format("planned and proved in {:.3f} ms", ms_since(begin)));
  const Valid<TransferPlan>& plan = proved->plan;

  std::optional<LoweredPlan> lowered;
  if (work.source_bytes && work.target_bytes) {
    const auto lower_begin = std::chrono::steady_clock::now();
    lowered = lower(*plan, *work.source_bytes, *work.target_bytes, LowerOptions(), LowerLimits(), diagnostics);
    if (!lowered) return fail(label, diagnostics);
    log_info(fmt::format("lowered in {:.3f} ms", ms_since(lower_begin)));
  }
  // Files first: when one cannot be written, no summary is printed.
  if (const int code = write_files(options, work, plan); code != kDone) return code;
  const LoweredPlan* steps = lowered ? &*lowered : nullptr;
  if (options.expand) return print_expanded(work, *plan, steps);
  if (options.output == "-") return kDone;

  PlanReport report{*plan,
                    digest(plan),
                    work.source->side->label(),
                    work.target->side->label(),
                    proved->proof,
                    required_volume(*plan, *work.target->side),
                    proved->balance,
                    steps,
                    {}};
  if (steps != nullptr) report.transport = transport_of(options);
  print(options.json ? plan_json(report) + "\n" : plan_table(report, options.row_count_max));
  return kDone;
}

}  // namespace

void add_plan_command(Command& app) {
  Command command = app.subcommand("plan", "Plan which source sends what to which target, and prove the plan complete");
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  command.text("--source", o.source, "FILE", "Placement of the source");
  command.text("--target", o.target, "FILE", "Placement of the target");
  command.flag("--upload", o.upload, "Plan from --source into a store");
  command.flag("--restore", o.restore, "Plan from a store (--manifest or --layout) to --target");
  command.text("--manifest", o.manifest, "FILE", "With --restore: manifest of the stored snapshot");
  command.text("--layout", o.layout, "FILE", "Store layout to write to or read from");
  command
      .any_text("--object-order", o.object_order, "ORDER",
                "With --upload, without --layout: order of the axes in an object: plhd, lphd or hpld (default plhd)")
      .one_of({"plhd", "lphd", "hpld"});
  command.number("--page-size", o.page_tokens, 1, uint64_t{1} << 32,
                 "With --upload without --layout, or --selection by-page: tokens of a page (default: the placement's "
                 "paging, else 64)");
  command.text("--layout-output", o.layout_output, "FILE", "With --upload: write the store layout that was made");
  command.text("--snapshot", o.snapshot, "FILE", "Snapshot to move: limits the plan to its live tokens");
  command.text("--tokens", o.tokens, "A:B", "Only tokens A to B-1");
  command.text("--source-dp", o.source_dp, "N",
               "Data-parallel rank of the source (default: the target's rank modulo the source's ranks)");
  command.text("--target-dp", o.target_dp, "N", "Only this data-parallel rank of the target (default: all)");
  command.texts("--participant", o.participants, "NAME", "Only these target participants");
  command.texts("--from", o.from, "NAME",
                "Only these source participants (one data-parallel rank per target; balanced combines ranks)");
  command
      .text(
          "--selection", o.selection, "HOW",
          "Choice among replicas: deterministic (rank order), balanced (lowest load of the busiest source) or by-page "
          "(replica i mod n sends page i)")
      .one_of({"deterministic", "balanced", "by-page"});
  command.texts("--nic", o.nics, "NAME=P,P,...",
                "With --selection balanced: sources that share a network interface (default: one each)");
  command.texts("--source-binding", o.source_bindings, "FILE",
                "Bindings of the source's participants, or a folder of them");
  command.texts("--target-binding", o.target_bindings, "FILE",
                "Bindings of the target's participants, or a folder of them");
  command.flag("--steps", o.steps, "Lower the plan to copy steps with the bindings, and count them");
  command.number("--operation-ns", o.operation_ns, 0, UINT64_MAX, "With --steps: cost of one operation");
  command.number("--bandwidth", o.bandwidth, 0, UINT64_MAX, "With --steps: bytes per second of the link");
  command.number("--strided-axes", o.strided_axes, 0, CopyStep::kAxisCountMax,
                 "With --steps: axes that one operation may have");
  command.number("--staging", o.staging_bytes, 0, UINT64_MAX,
                 "With --steps: staging bytes at each end, for packed transfers");
  command.number("--gather-bandwidth", o.gather_bandwidth, 0, UINT64_MAX,
                 "With --steps: bytes per second of gathering");
  command.number("--gather-piece-ns", o.gather_piece_ns, 0, UINT64_MAX,
                 "With --steps: cost of gathering one contiguous piece");
  command.flag("--expand", o.expand, "Print the rows as sorted JSON lines, to compare with other tools");
  command.flag("--json", o.json, "Print the summary as JSON");
  command.number("--rows", o.row_count_max, 1, UINT64_MAX, "Maximum rows of the table");
  command.text("-o,--output", o.output, "FILE", "Write the plan document ('-': to standard output, without a summary)");
  command.flag("--no-documents", o.no_documents,
               "Refer to the two documents by digest only, instead of including them");
  command.explain(
      "Every plan is proved before it is shown. The proof sweeps over the boundaries of what the targets own, "
      "independent of the planner.\n"
      "Tables show bytes per token unless --snapshot, --tokens or --manifest states the number of tokens.\n"
      "--expand prints edges by layer; with --upload or --layout, ranges of store objects; with bindings, byte copies.",
      {"crossdock plan --source prefill.json --target decode.json -o plan.json",
       "crossdock plan --source prefill.json --target decode.json --selection balanced --nic n0=t0,t1 --nic n1=t2,t3",
       "crossdock plan --source prefill.json --target decode.json --snapshot snap.json --steps --source-binding "
       "prefill-bindings --target-binding decode-bindings",
       "crossdock plan --upload --source prefill.json --object-order lphd --layout-output layout.json",
       "crossdock plan --restore --layout layout.json --target decode.json --expand"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
