#include "cli/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "base/utf8.h"
#include "cli/table.h"
#include "model/text.h"
#include "model/wire/json_writer.h"
#include "planner/kv/diagnostic_tokens.h"

namespace crossdock::cli {
namespace {

constexpr uint64_t kStretchesMax = 1000;  // of one diagnostic; above that only the first is printed

std::string_view diagnostic_name(PlanDiagnostic::Kind kind) {
  switch (kind) {
    case PlanDiagnostic::Kind::kGap: return "gap";
    case PlanDiagnostic::Kind::kOverlap: return "overlap";
    case PlanDiagnostic::Kind::kNotTarget: return "not-target";
    case PlanDiagnostic::Kind::kNotSource: return "not-source";
  }
  return "?";
}

// Total bytes when the token range is bounded; else bytes per token, and bytes of states separately.
bool is_bounded(const PlanReport& report) { return report.required.bytes != Range::kUnbounded; }

std::string bytes_cell(const PlanReport& report, const PairVolume& volume) {
  if (is_bounded(report)) return grouped(volume.bytes);
  return amount(volume.volume.bytes_per_token);
}

std::string bytes_text(const PlanReport& report, const PairVolume& volume) {
  if (is_bounded(report)) return fmt::format("{} bytes", grouped(volume.bytes));
  std::string text = fmt::format("{} bytes per token", amount(volume.volume.bytes_per_token));
  if (volume.volume.state_bytes > 0) text += fmt::format(" and {} of state", amount(volume.volume.state_bytes));
  return text;
}

std::string ms_text(uint64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e6); }

std::string edge_table(const PlanReport& report, const std::vector<PairVolume>& pairs, uint64_t row_count_max) {
  const bool bounded = is_bounded(report);
  LimitedTable table({"source", "target", "edges", bounded ? "bytes" : "bytes/token"}, row_count_max);
  for (const PairVolume& pair : pairs)
    table.add_row([&]() -> std::vector<std::string> {
      return {report.plan.sources[pair.source].text(), report.plan.targets[pair.target].text(),
              grouped(pair.edge_count), bytes_cell(report, pair)};
    });
  return table.text();
}

// Planned, coalesced and posted counts stand beside each other, since the number of operations is what costs on real
// hardware.
std::string step_table(const PlanReport& report, uint64_t row_count_max) {
  std::vector<std::string> header = {"source", "target", "planned", "steps", "ranges", "bytes"};
  if (report.transport)
    for (const char* name : {"direct ops", "direct ms", "packed ops", "packed ms", "choice"}) header.emplace_back(name);
  LimitedTable table(std::move(header), row_count_max);
  for (const LoweredPair& pair : report.lowered->pairs())
    table.add_row([&] {
      std::vector<std::string> row = {report.plan.sources[pair.source].text(),
                                      report.plan.targets[pair.target].text(),
                                      grouped(pair.counts.steps_planned),
                                      grouped(pair.counts.steps),
                                      grouped(pair.counts.ranges),
                                      grouped(pair.counts.bytes)};
      if (!report.transport) return row;
      const GatherChoice choice = choose_gather(*report.lowered, pair, *report.transport);
      // No cost at all: packing is not possible with these limits.
      const bool can_pack = choice.packed != TransferCost();
      row.insert(row.end(), {grouped(choice.direct.operations), ms_text(choice.direct.time_ns),
                             can_pack ? grouped(choice.packed.operations) : "-",
                             can_pack ? ms_text(choice.packed.time_ns) : "-", choice.pack ? "packed" : "direct"});
      return row;
    });
  return table.text();
}

void encode_cost(JsonWriter& out, const TransferCost& cost) {
  out.begin_object();
  out.key("operations").number(cost.operations);
  out.key("pieces").number(cost.pieces);
  out.key("staging_bytes").number(cost.staging_bytes);
  out.key("time_ns").number(cost.time_ns);
  out.end_object();
}

void encode_counts(JsonWriter& out, const StepCounts& counts) {
  out.begin_object();
  out.key("bytes").number(counts.bytes);
  out.key("head_rows").number(counts.row_pieces);
  out.key("ranges").number(counts.ranges);
  out.key("steps").number(counts.steps);
  out.key("steps_planned").number(counts.steps_planned);
  out.end_object();
}

void encode_number(JsonWriter& out, double number) { out.raw(fmt::format("{}", number)); }

void encode_volume(JsonWriter& out, const PlanReport& report, const PairVolume& volume) {
  if (is_bounded(report)) {
    out.key("bytes").number(volume.bytes);
    return;
  }
  encode_number(out.key("bytes_per_token"), volume.volume.bytes_per_token);
}

}  // namespace

std::string plan_table(const PlanReport& report, uint64_t row_count_max) {
  const std::vector<PairVolume> pairs = pair_volumes(report.plan);
  const PairVolume total = total_volume(pairs);
  std::string text = fmt::format("{} plan: {} -> {}\n", plan_kind_name(report.plan.kind),
                                 printable(report.source_label), printable(report.target_label));
  text += report.lowered == nullptr ? edge_table(report, pairs, row_count_max) : step_table(report, row_count_max);
  text += fmt::format("\n{} sources, {} targets, {} pairs, {} edges, {}\n", grouped(report.plan.sources.size()),
                      grouped(report.plan.targets.size()), grouped(pairs.size()), grouped(report.plan.edges.size()),
                      bytes_text(report, total));
  text += fmt::format("lower bound: {}, what the targets require, each element once\n",
                      bytes_text(report, report.required));
  if (report.balance.bound_bytes != 0)
    text += fmt::format("most loaded source: {} bytes{}; no choice among replicas does with less than {}\n",
                        grouped(report.balance.balanced_bytes),
                        is_bounded(report) ? "" : fmt::format(" of {} tokens", grouped(kWeighedTokens)),
                        grouped(report.balance.bound_bytes));
  if (report.lowered != nullptr) {
    const StepCounts counts = report.lowered->counts();
    text += fmt::format(
        "{} rows of a head, {} steps between views and pages, {} after joining neighbours, {} contiguous ranges\n",
        grouped(counts.row_pieces), grouped(counts.steps_planned), grouped(counts.steps), grouped(counts.ranges));
  }
  text += fmt::format("proved: {} cells compared, each required element is brought once, by one that owns it\n",
                      grouped(report.proof.cells));
  return text + fmt::format("digest sha256:{}\n", report.digest.hex());
}

std::string plan_json(const PlanReport& report) {
  const TransferPlan& plan = report.plan;
  const std::vector<PairVolume> pairs = pair_volumes(plan);
  JsonWriter out;
  out.begin_object();
  if (report.balance.bound_bytes != 0) {
    out.key("balance").begin_object();
    out.key("balanced_bytes").number(report.balance.balanced_bytes);
    out.key("bound_bytes").number(report.balance.bound_bytes);
    out.key("deterministic_bytes").number(report.balance.deterministic_bytes);
    out.end_object();
  }
  out.key("cells_proved").number(report.proof.cells);
  out.key("digest").string(report.digest.hex());
  out.key("edge_count").number(plan.edges.size());
  out.key("kind").string(plan_kind_name(plan.kind));
  out.key("lower_bound").begin_object();
  encode_volume(out, report, report.required);
  if (!is_bounded(report)) encode_number(out.key("state_bytes"), report.required.volume.state_bytes);
  out.end_object();
  out.key("pairs").begin_array();
  for (const PairVolume& pair : pairs) {
    out.begin_object();
    encode_volume(out, report, pair);
    out.key("edge_count").number(pair.edge_count);
    out.key("source").string(printable(plan.sources[pair.source].text()));
    if (!is_bounded(report)) encode_number(out.key("state_bytes"), pair.volume.state_bytes);
    out.key("target").string(printable(plan.targets[pair.target].text()));
    out.end_object();
  }
  out.end_array();
  out.key("source_digest").string(plan.source_digest.hex());
  if (report.lowered != nullptr) {
    out.key("steps").begin_object().key("pairs").begin_array();
    for (const LoweredPair& pair : report.lowered->pairs()) {
      out.begin_object().key("counts");
      encode_counts(out, pair.counts);
      if (report.transport) {
        const GatherChoice choice = choose_gather(*report.lowered, pair, *report.transport);
        encode_cost(out.key("direct"), choice.direct);
        out.key("pack").boolean(choice.pack);
        encode_cost(out.key("packed"), choice.packed);
      }
      out.key("source").string(printable(plan.sources[pair.source].text()));
      out.key("target").string(printable(plan.targets[pair.target].text()));
      out.end_object();
    }
    out.end_array().key("total");
    encode_counts(out, report.lowered->counts());
    out.end_object();
  }
  out.key("target_digest").string(plan.target_digest.hex());
  out.key("total").begin_object();
  const PairVolume total = total_volume(pairs);
  encode_volume(out, report, total);
  if (!is_bounded(report)) encode_number(out.key("state_bytes"), total.volume.state_bytes);
  out.end_object().end_object();
  return out.take();
}

std::string scope_text(const TransferPlan& plan, const PlanSide& target) {
  const bool is_all = plan.targets.size() == target.owners().size();
  std::string text =
      is_all ? fmt::format("all {} targets", grouped(plan.targets.size()))
             : fmt::format("{} of {} targets", grouped(plan.targets.size()), grouped(target.owners().size()));
  if (plan.tokens != Range::all()) text += fmt::format(", only tokens {}", range_text(plan.tokens));
  if (plan.snapshot_tokens) text += fmt::format(", of a snapshot of tokens {}", range_text(*plan.snapshot_tokens));
  return text;
}

std::string proof_diagnostics_json(const TransferPlan& plan, const PlanSide& source, const PlanSide& target,
                                   const PlanProof& proof) {
  const auto encode_range = [](JsonWriter& out, Range range) {
    out.begin_array().number(range.begin()).number(range.end()).end_array();
  };
  JsonWriter out;
  out.begin_array();
  for (const PlanDiagnostic& diagnostic : proof.diagnostics) {
    out.begin_object();
    out.key("component").string(printable(plan.tensors[diagnostic.tensor].component.name.text()));
    out.key("edges").begin_array();
    for (const uint32_t edge : diagnostic.edges) out.number(edge);
    out.end_array();
    encode_range(out.key("heads"), diagnostic.heads);
    out.key("kind").string(diagnostic_name(diagnostic.kind));
    encode_range(out.key("layers"), diagnostic.layers);
    // Left out when there are more stretches than the limit; `tokens` has the first one in any case.
    if (const auto all = diagnostic_tokens(plan, source, target, diagnostic, kStretchesMax)) {
      out.key("stretches").begin_array();
      for (const Range range : all->ranges()) encode_range(out, range);
      out.end_array();
    }
    out.key("target").string(printable(plan.targets[diagnostic.target].text()));
    encode_range(out.key("tokens"), diagnostic.tokens);
    out.end_object();
  }
  out.end_array();
  return out.take();
}

}  // namespace crossdock::cli
