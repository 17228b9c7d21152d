#include "sim/run/run_summary.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {
namespace {

// Messages may quote bytes that are no UTF-8, which the reader would refuse.
void write_texts(JsonWriter& out, const std::vector<std::string>& texts) {
  out.begin_array();
  for (const std::string& text : texts) out.string(printable(text));
  out.end_array();
}

std::vector<std::string> read_texts(ObjectReader& in, std::string_view name) {
  std::vector<std::string> texts;
  in.required(name, [&](const JsonCursor& list) {
    list.for_each([&](const JsonCursor& each) { texts.push_back(each.string()); });
  });
  return texts;
}

}  // namespace

RunSummary summary_of(const RunReport& report) {
  RunSummary summary;
  summary.scenario = report.scenario;
  summary.digest = report.digest;
  summary.expected = report.expected;
  summary.actual = report.actual;
  summary.as_expected = report.as_expected;
  summary.seed = report.seed;
  summary.duration_ns = static_cast<uint64_t>(report.duration.ns());
  for (const InvariantResult& each : report.invariants) summary.checks += each.check_count;
  for (const WorkResult& each : report.works) {
    summary.bytes += each.bytes;
    summary.verdicts.push_back(each.kind + " " + each.verdict);
    summary.causes.push_back(each.cause);
    summary.done_ns.push_back(static_cast<uint64_t>((each.done - report.origin).ns()));
  }
  summary.unmet = report.unmet;
  summary.violations = report.violations;
  return summary;
}

std::string to_json(const RunSummary& summary) {
  JsonWriter out;
  out.begin_object();
  out.key("actual").string(printable(summary.actual));
  out.key("as_expected").boolean(summary.as_expected);
  out.key("bytes").number(summary.bytes);
  out.key("causes");
  write_texts(out, summary.causes);
  out.key("checks").number(summary.checks);
  out.key("digest").string(summary.digest);
  out.key("done_ns").begin_array();
  for (const uint64_t each : summary.done_ns) out.number(each);
  out.end_array();
  out.key("duration_ns").number(summary.duration_ns);
  out.key("error").string(printable(summary.error));
  out.key("expected").string(printable(summary.expected));
  out.key("scenario").string(printable(summary.scenario));
  out.key("seed").number(summary.seed);
  out.key("unmet");
  write_texts(out, summary.unmet);
  out.key("verdicts");
  write_texts(out, summary.verdicts);
  out.key("violations").begin_array();
  for (const Violation& each : summary.violations) {
    out.begin_object();
    out.key("event").number(each.event);
    out.key("invariant").string(each.invariant);
    out.key("time_ns").number(static_cast<uint64_t>(each.time.ns()));
    out.key("what").string(printable(each.what));
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

std::optional<RunSummary> read_summary(std::string_view json) {
  Diagnostics diagnostics("summary");
  const std::optional<JsonTree> tree = JsonTree::parse(json, JsonLimits(), diagnostics);
  if (!tree) return std::nullopt;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  ObjectReader in(cursor);
  RunSummary summary;
  summary.actual = in.string("actual");
  in.required("as_expected", [&](const JsonCursor& value) { summary.as_expected = value.boolean(); });
  summary.bytes = in.number("bytes");
  summary.causes = read_texts(in, "causes");
  summary.checks = in.number("checks");
  summary.digest = in.string("digest");
  in.required("done_ns", [&](const JsonCursor& list) {
    list.for_each([&](const JsonCursor& each) { summary.done_ns.push_back(each.unsigned_integer()); });
  });
  summary.duration_ns = in.number("duration_ns");
  summary.error = in.string("error");
  summary.expected = in.string("expected");
  summary.scenario = in.string("scenario");
  summary.seed = in.number("seed");
  summary.unmet = read_texts(in, "unmet");
  summary.verdicts = read_texts(in, "verdicts");
  in.required("violations", [&](const JsonCursor& list) {
    list.for_each([&](const JsonCursor& each) {
      ObjectReader fields(each);
      Violation violation;
      violation.event = fields.number("event");
      violation.invariant = fields.string("invariant");
      violation.time = TimePoint::from_ns(static_cast<int64_t>(fields.number("time_ns")));
      violation.what = fields.string("what");
      fields.finish();
      summary.violations.push_back(std::move(violation));
    });
  });
  in.finish();
  // A summary is taken in full or not at all.
  if (!diagnostics.empty()) return std::nullopt;
  return summary;
}

std::string violation_text(const Violation& violation, TimePoint origin) {
  return fmt::format("{} at {:.3f} ms, event {}: {}", violation.invariant,
                     static_cast<double>((violation.time - origin).ns()) / 1e6, violation.event, violation.what);
}

}  // namespace crossdock
