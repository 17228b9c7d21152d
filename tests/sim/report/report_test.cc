#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/report/event_choice.h"
#include "sim/report/link_shares.h"
#include "sim/report/report_data.h"
#include "sim/report/run_report.h"
#include "sim/report/traffic_matrix.h"
#include "tests/sim/report/example_report.h"

namespace crossdock::test {
namespace {

using nlohmann::json;

TimePoint at(int64_t ns) { return TimePoint::from_ns(ns); }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t from = text.find(part); from != std::string::npos; from = text.find(part, from + 1)) ++found;
  return found;
}

// What stands between two marks that occur once each.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos);
  return text.substr(from + begin.size(), text.find(end, from) - from - begin.size());
}

std::string data_text(const std::string& page) {
  return between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
}

std::string without_data(const std::string& page) {
  std::string rest = page;
  const std::string data = data_text(page);
  return rest.erase(rest.find(data), data.size());
}

TEST(ReportHtml, TakesNothingFromOutside) {
  const std::string page = without_data(report_html(example_report()));
  for (const char* reference : {"http:", "https:", "src=", "@import", "url(", "href", "<link", "<iframe", "<base",
                                "fetch(", "XMLHttpRequest", "import(", "sendBeacon", "WebSocket"})
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos) << "and the browser sees to it";
}

TEST(ReportHtml, BuildsNoMarkupFromText) {
  const std::string page = without_data(report_html(example_report()));
  for (const char* sink : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"})
    EXPECT_EQ(page.find(sink), std::string::npos) << sink;
}

TEST(ReportHtml, HostileTextsChangeNothingButTheData) {
  const std::string page = report_html(hostile_report());
  EXPECT_EQ(data_text(page).find('<'), std::string::npos);
  EXPECT_EQ(without_data(page), without_data(report_html(example_report())));
  EXPECT_EQ(count(page, "</script>"), 2u);
  for (const char c : page) ASSERT_LT(static_cast<uint8_t>(c), 0x80) << "the page is ASCII";

  const json data = json::parse(data_text(page));
  const std::string scenario = data.at("scenario");
  EXPECT_EQ(scenario.find("</script><script>window.broken = 1</script>"), 0u);
  EXPECT_NE(scenario.find("bad \\xff\\xc3 bytes"), std::string::npos);
}

TEST(ReportHtml, TheDataSaysWhatTheReportSays) {
  const json data = json::parse(data_text(report_html(violated_report())));
  EXPECT_EQ(data.at("seed"), "18446744073709551557") << "a JavaScript number would lose digits";
  EXPECT_EQ(data.at("duration"), 48'200'000);
  EXPECT_EQ(data.at("as_expected"), false);
  EXPECT_EQ(data.at("violations")[0], json::parse(R"({"event":48113,"invariant":"I3","time":20417331,"what":
      "copy 31 from p0-t1 wrote [8388608,12582912) of region 4 of d0-t3, 104 us after d0-t3 let go of it"})"));
  EXPECT_EQ(data.at("works")[5].at("end"), nullptr);
  EXPECT_EQ(data.at("works")[0],
            json::parse(R"({"begin":1000000,"bytes":251658240,"cause":"","done":40600000,"end":40600000,
      "kind":"transfer","name":"transfer d0-t0","verdict":"activated"})"));
  EXPECT_EQ(data.at("events").size(), violated_report().trace.events.size());
}

TEST(ReportHtml, EqualReportsGiveEqualPages) {
  EXPECT_EQ(report_html(violated_report()), report_html(violated_report()));
  EXPECT_NE(report_html(violated_report()), report_html(example_report()));
}

TEST(ReportData, AnEventIsItsTrackKindNamesTimesAndArguments) {
  RunReport report;
  report.origin = at(100);
  report.duration = Duration::from_ns(900);
  report.trace.tracks = {{"g", "unused"}, {"g", "used"}};
  report.trace.events = {
      {TraceEvent::Kind::kSlice, 1, "copy", "operation", at(150), at(175), {{"bytes", "8"}}},
      {TraceEvent::Kind::kSlice, 1, "copy", "operation", at(90), TimePoint::never(), {}},
      {TraceEvent::Kind::kInstant, 1, "off", "fault", at(200), at(200), {{"by", "copy"}}},
  };
  const json data = json::parse(report_data(report, {}));
  EXPECT_EQ(data.at("tracks"), json::parse(R"([["g","used"]])")) << "a track without events has no row";
  EXPECT_EQ(data.at("strings"), json::parse(R"(["copy","operation","bytes","8","off","fault","by"])"));
  EXPECT_EQ(data.at("events"), json::parse(R"([[0,1,0,1,50,25,2,3],[0,1,0,1,-10,null],[0,0,4,5,100,0,6,0]])"));
  EXPECT_EQ(data.at("end"), 900);
}

TEST(ReportData, IsBoundedHoweverLargeTheRun) {
  RunReport report = example_report({.host_count = 70, .copies_per_target = 60});
  report.works.resize(800);
  report.violations.resize(900, {"I3", at(1'000'000), std::string(10'000, 'x'), 1});
  report.trace.events[0].args.resize(50, {"a", "b"});
  const ReportLimits limits{.event_count_max = 1000, .row_count_max = 30, .link_count_max = 5, .link_part_count = 10};
  const std::string text = report_data(report, limits);
  const json data = json::parse(text);
  EXPECT_EQ(data.at("events").size(), 1000u);
  EXPECT_EQ(data.at("event_count"), report.trace.events.size());
  EXPECT_EQ(data.at("works").size(), 30u);
  EXPECT_EQ(data.at("work_count"), 800);
  EXPECT_EQ(data.at("violations").size(), 30u);
  EXPECT_EQ(data.at("violation_count"), 900);
  EXPECT_EQ(data.at("violations")[0].at("what").get<std::string>().size(), 403u) << "and an ellipsis";
  EXPECT_EQ(data.at("links").size(), 5u);
  EXPECT_EQ(data.at("links")[0].at("shares").size(), 10u);
  EXPECT_LE(data.at("traffic").at("senders").size(), 64u);
  EXPECT_LE(data.at("traffic").at("cells").size(), 64u * 64u);
  EXPECT_EQ(data.at("traffic").at("pairs").size(), 12u);
  EXPECT_LT(text.size(), 400'000u);
}

TEST(ReportEvents, TheMostImportantStay) {
  const auto event = [](const char* category, TraceEvent::Kind kind, int64_t length) {
    return TraceEvent{kind, 0, "e", category, at(0), at(length), {}};
  };
  constexpr auto kSlice = TraceEvent::Kind::kSlice;
  constexpr auto kInstant = TraceEvent::Kind::kInstant;
  const Trace trace{{{"g", "t"}},
                    {event("message", kInstant, 0), event("operation", kSlice, 5), event("operation", kSlice, 50),
                     event("state", kSlice, 1), event("decision", kInstant, 0), event("check", kInstant, 0),
                     event("operation", kSlice, 50), event("fault", kSlice, 2)}};
  const std::vector<std::vector<uint32_t>> expected = {{},
                                                       {7},
                                                       {5, 7},
                                                       {3, 5, 7},
                                                       {2, 3, 5, 7},
                                                       {2, 3, 5, 6, 7},
                                                       {1, 2, 3, 5, 6, 7},
                                                       {1, 2, 3, 4, 5, 6, 7},
                                                       {0, 1, 2, 3, 4, 5, 6, 7}};
  for (size_t count_max = 0; count_max < expected.size(); ++count_max)
    EXPECT_EQ(choose_events(trace, at(100), count_max), expected[count_max]) << count_max;
}

TEST(ReportLinks, SharesAreMeansOverEqualParts) {
  const std::vector<TraceCounter> links = {
      {"idle", 10, {{at(0), 0}}},
      // Before the run: left out. 10 of 100 for 1 s, 100 for 1.5 s, 0 for 0.5 s, 20 until the end, 1 s later.
      {"a",
       100,
       {{at(-5'000'000'000), 50},
        {at(0), 10},
        {at(1'000'000'000), 100},
        {at(2'500'000'000), 0},
        {at(3'000'000'000), 20}}},
      {"b", 10, {{at(0), 5}}},
      {"unknown capacity", 0, {{at(0), 7}}},
  };
  const std::vector<LinkShares> uses = busiest_links(links, at(0), at(4'000'000'000), 4, 10);
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].link, "b");
  EXPECT_EQ(uses[1].link, "a");
  EXPECT_EQ(uses[2].link, "unknown capacity");
  const std::vector<double> expected = {0.1, 1.0, 0.5, 0.2};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(uses[1].shares[i], expected[i], 1e-12) << i;
  EXPECT_NEAR(uses[1].bytes, 10 + 150 + 20, 1e-9);
  EXPECT_EQ(uses[1].peak_share, 1.0);
  EXPECT_NEAR(uses[2].bytes, 28, 1e-9);
  EXPECT_EQ(busiest_links(links, at(0), at(4'000'000'000), 4, 1).size(), 1u);
  EXPECT_TRUE(busiest_links(links, at(7), at(7), 4, 10).empty());
}

TEST(ReportLinks, TheMeanOverAllPartsIsTheBytesCarried) {
  for (const RunReport& report : {example_report(), violated_report()})
    for (const LinkShares& use :
         busiest_links(report.links, report.origin, report.origin + report.duration, 240, 100)) {
      double sum = 0;
      for (const double share : use.shares) sum += share;
      EXPECT_NEAR(sum / 240 * use.capacity_bytes_per_s * 0.0482, use.bytes, use.bytes * 1e-9) << use.link;
    }
}

TEST(ReportTraffic, PairsAddUpAndNamesSortAsNumbers) {
  const TrafficMatrix matrix = traffic_matrix(
      {{"h10", "h2", 5, 4}, {"h9", "h2", 1, 1}, {"h10", "h2", 2, 2}, {"h9", "store", 0, 3}, {"h1", "h3", 0, 0}}, 64);
  EXPECT_EQ(matrix.senders, (std::vector<std::string>{"h9", "h10"}));
  EXPECT_EQ(matrix.receivers, (std::vector<std::string>{"h2", "store"}));
  EXPECT_EQ(matrix.senders_together, 0u);
  ASSERT_EQ(matrix.cells.size(), 3u);
  EXPECT_EQ(matrix.cells[0].planned_bytes, 1u);
  EXPECT_EQ(matrix.cells[1].landed_bytes, 3u);
  EXPECT_EQ(matrix.cells[2].row, 1u);
  EXPECT_EQ(matrix.cells[2].planned_bytes, 7u);
  EXPECT_EQ(matrix.cells[2].landed_bytes, 6u);
}

TEST(ReportTraffic, TheSmallOnesBecomeOneAndNothingIsLost) {
  std::vector<TrafficCell> traffic;
  for (uint32_t from = 0; from < 100; ++from)
    for (uint32_t to = 0; to < 10; ++to)
      traffic.push_back({fmt::format("s{}", from), fmt::format("t{}", to), from, from / 2});
  const TrafficMatrix matrix = traffic_matrix(traffic, 64);
  ASSERT_EQ(matrix.senders.size(), 64u);
  EXPECT_EQ(matrix.senders.front(), "s37") << "63 with the most bytes, in the order of their names";
  EXPECT_EQ(matrix.senders.back(), "all others");
  EXPECT_EQ(matrix.senders_together, 36u) << "s0 has no bytes at all";
  EXPECT_EQ(matrix.receivers.size(), 10u);
  EXPECT_EQ(matrix.receivers_together, 0u);
  uint64_t planned = 0;
  for (const TrafficMatrix::Cell& cell : matrix.cells) planned += cell.planned_bytes;
  EXPECT_EQ(planned, 10u * 99 * 100 / 2);
}

TEST(ReportTraffic, TheLargestPairsAreWholePairs) {
  const TrafficPairs pairs = largest_pairs(
      {{"a", "b", 1, 1}, {"a", "c", 5, 5}, {"a", "b", 3, 9}, {"d", "b", 0, 0}, {"a10", "c", 5, 0}, {"a9", "c", 5, 0}},
      3);
  EXPECT_EQ(pairs.pair_count, 4u);
  ASSERT_EQ(pairs.largest.size(), 3u);
  EXPECT_EQ(pairs.largest[0].to, "b");
  EXPECT_EQ(pairs.largest[0].planned_bytes, 4u);
  EXPECT_EQ(pairs.largest[0].landed_bytes, 10u);
  EXPECT_EQ(pairs.largest[1].from, "a");
  EXPECT_EQ(pairs.largest[2].from, "a9");
}

}  // namespace
}  // namespace crossdock::test
