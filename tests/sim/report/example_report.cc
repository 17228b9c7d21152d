#include "tests/sim/report/example_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace crossdock::test {
namespace {

constexpr int64_t kOriginNs = 1'000'000;
constexpr int64_t kDurationNs = 48'200'000;
constexpr uint64_t kCopyBytes = 4'194'304;

TimePoint at(int64_t ns) { return TimePoint::from_ns(kOriginNs + ns); }

// Whole numbers that look like chance and are the same everywhere.
uint32_t scatter(uint32_t a, uint32_t b, uint32_t below) {
  uint32_t x = a * 2'654'435'761u + b * 40'503u + 12'345u;
  x ^= x >> 13;
  x *= 2'246'822'519u;
  return (x ^ x >> 16) % below;
}

class Builder {
 public:
  explicit Builder(const ExampleSize& size) : size_(size) {}

  RunReport build() {
    head();
    for (uint32_t host = 0; host < size_.host_count; ++host) add_host(host);
    add_faults();
    add_links();
    return report_;
  }

 private:
  void head() {
    report_.scenario = "link loss during a 4-to-8 reshard";
    report_.shows =
        "A NIC goes off in the middle of a transfer; copies are tried again over the other one, and every target is "
        "activated.";
    report_.cluster = fmt::format("{} hosts, 2 GPUs and 2 NICs of 400 Gbit/s each, one leaf switch", size_.host_count);
    report_.seed = 18'446'744'073'709'551'557u;
    report_.origin = at(0);
    report_.duration = Duration::from_ns(kDurationNs);
    report_.digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    report_.expected = report_.actual = "every transfer activated";
    report_.replay = "crossdock simulate scenarios/link-loss.json --seed 18446744073709551557 --report report.html";
    report_.invariants = {
        {"I1", "A byte of a target is written by exactly one copy of the plan.", 24'576, 0},
        {"I2", "Nothing is activated before all its receipts are in.", 8, 0},
        {"I3", "After a target let go of its memory, no copy writes to it.", 1'204'113, 0},
        {"I7", "Two runs of one seed have the same trace.", 1, 0},
    };
  }

  uint32_t track(const std::string& group, const std::string& name) {
    report_.trace.tracks.push_back({group, name});
    return static_cast<uint32_t>(report_.trace.tracks.size() - 1);
  }

  void slice(uint32_t on, const std::string& name, const std::string& category, int64_t begin, int64_t end,
             TraceArgs args = {}) {
    report_.trace.events.push_back({TraceEvent::Kind::kSlice, on, name, category, at(begin), at(end), std::move(args)});
  }

  void instant(uint32_t on, const std::string& name, const std::string& category, int64_t time, TraceArgs args = {}) {
    report_.trace.events.push_back(
        {TraceEvent::Kind::kInstant, on, name, category, at(time), at(time), std::move(args)});
  }

  void add_host(uint32_t host) {
    const std::string group = fmt::format("h{}", host);
    const uint32_t source = track(group, fmt::format("source p0-t{}", host));
    slice(source, "exporting", "state", 120'000, 900'000);
    slice(source, "serving", "state", 900'000, 41'000'000 + 300'000 * host);
    for (uint32_t gpu = 0; gpu < 2; ++gpu) add_target(group, host, gpu);
    const uint32_t ssd = track(group, "ssd");
    for (uint32_t i = 0; i < 6; ++i)
      slice(ssd, "put object", "store", 30'000'000 + 2'000'000 * i, 31'400'000 + 2'000'000 * i);
  }

  void add_target(const std::string& group, uint32_t host, uint32_t gpu) {
    const uint32_t number = host * 2 + gpu;
    const std::string name = fmt::format("target d0-t{}", number);
    const uint32_t states = track(group, name);
    const uint32_t copies = track(group, name + " copies");
    const int64_t start = 1'000'000 + 150'000 * number;
    const int64_t drained = 38'000'000 + 700'000 * scatter(number, 1, 8);
    slice(states, "reserving", "state", start, start + 800'000);
    slice(states, "executing", "state", start + 800'000, drained);
    slice(states, "validating", "state", drained, drained + 1'600'000);
    slice(states, "activating", "state", drained + 1'600'000, drained + 1'900'000);
    slice(states, "active", "state", drained + 1'900'000, kDurationNs);
    report_.trace.events.back().end = TimePoint::never();
    const int64_t step = (drained - start - 4'000'000) / size_.copies_per_target;
    for (uint32_t i = 0; i < size_.copies_per_target; ++i) {
      const int64_t begin = start + 900'000 + step * i;
      const uint32_t from = scatter(number, i, size_.host_count);
      slice(copies, "copy", "operation", begin, begin + 2 * step + scatter(i, number, 900'000),
            {{"bytes", std::to_string(kCopyBytes)},
             {"from", fmt::format("p0-t{}", from)},
             {"through", fmt::format("h{}/nic{}", host, i % 2)}});
      if (i % 9 == 0) instant(states, "receipt", "message", begin + step, {{"of", fmt::format("copy {}", i)}});
    }
    const uint64_t bytes = kCopyBytes * size_.copies_per_target;
    report_.works.push_back({fmt::format("transfer d0-t{}", number), "transfer", "activated", "", at(start),
                             at(drained + 1'900'000), bytes});
    for (uint32_t from = 0; from < size_.host_count; ++from) {
      const uint64_t part = bytes / size_.host_count / (1 + scatter(from, number, 5));
      report_.traffic.push_back({fmt::format("p0-t{}", from), fmt::format("d0-t{}", number), part, part});
    }
  }

  void add_faults() {
    const uint32_t links = track("faults", "links");
    instant(links, "link h1/nic0 off", "fault", 14'300'000, {{"plan", "off for 6 ms"}});
    instant(links, "link h1/nic0 on", "fault", 20'300'000);
    slice(links, "h1/nic0 off", "fault", 14'300'000, 20'300'000);
  }

  void add_links() {
    for (uint32_t host = 0; host < size_.host_count; ++host)
      for (uint32_t nic = 0; nic < 2; ++nic)
        for (const char* direction : {"in", "out"}) {
          TraceCounter counter{fmt::format("h{}/nic{}/{}", host, nic, direction), 50e9, {}};
          const uint32_t number = static_cast<uint32_t>(report_.links.size());
          for (uint32_t i = 0; i < 40; ++i) {
            const bool is_off = host == 1 && nic == 0 && 12 <= i && i < 17;
            const double share =
                is_off || i > 33 ? 0 : std::min(1.0, 0.25 + 0.05 * scatter(number, i, 10) + 0.08 * (number % 5));
            counter.bytes_per_s.emplace_back(at(1'200'000 * i), 50e9 * share);
          }
          report_.links.push_back(counter);
        }
  }

  const ExampleSize size_;
  RunReport report_;
};

}  // namespace

RunReport example_report(const ExampleSize& size) { return Builder(size).build(); }

RunReport violated_report() {
  RunReport report = example_report();
  report.actual = "one transfer aborted, I3 violated";
  report.as_expected = false;
  report.works[3].verdict = "aborted";
  report.works[3].cause = "deadline passed: no receipt from p0-t1 for 6.0 ms after its link went off";
  report.works[3].bytes /= 3;
  report.works[5].verdict = "executing";
  report.works[5].end = TimePoint::never();
  report.invariants[2].violation_count = 1;
  report.violations.push_back(
      {"I3", at(20'417'331),
       "copy 31 from p0-t1 wrote [8388608,12582912) of region 4 of d0-t3, 104 us after d0-t3 let go of it", 48'113});
  const uint32_t track = static_cast<uint32_t>(report.trace.tracks.size());
  report.trace.tracks.push_back({"h1", "checks"});
  report.trace.events.push_back(
      {TraceEvent::Kind::kInstant, track, "I3 violated", "check", at(20'417'331), at(20'417'331), {{"region", "4"}}});
  for (TrafficCell& cell : report.traffic)
    if (cell.to == "d0-t3") cell.landed_bytes /= 3;
  return report;
}

RunReport hostile_report() {
  constexpr const char* kTexts[] = {
      "</script><script>window.broken = 1</script>",
      "<img src=http://example.invalid/x onerror=\"window.broken = 2\">",
      "<!--<script>",
      "bad \xff\xc3 bytes",
      "{{data}} {{script}} @page_html@",
      "\" onclick='window.broken = 3' \\u003c &lt;b&gt;",
  };
  RunReport report = example_report();
  std::string all;
  for (const char* text : kTexts) {
    all += text;
    const uint32_t track = static_cast<uint32_t>(report.trace.tracks.size());
    report.trace.tracks.push_back({text, text});
    report.trace.events.push_back(
        {TraceEvent::Kind::kInstant, track, text, text, at(5), at(5), {{text, text}, {text, "again"}}});
    report.trace.events.push_back({TraceEvent::Kind::kSlice, track, text, "state", at(5), at(9), {}});
    report.works.push_back({text, text, text, text, at(1), at(2), 3});
    report.invariants.push_back({text, text, 1, 1});
    report.violations.push_back({text, at(4), text, 5});
    report.traffic.push_back({text, text, 7, 7});
    report.links.push_back({text, 1e9, {{at(0), 5e8}}});
  }
  report.scenario = report.shows = report.cluster = report.digest = report.expected = report.actual = report.replay =
      all;
  return report;
}

}  // namespace crossdock::test
