#include "sim/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "model/wire/json_writer.h"
#include "sim/report/event_choice.h"
#include "sim/report/json_text.h"
#include "sim/report/link_shares.h"
#include "sim/report/traffic_matrix.h"

namespace crossdock {
namespace {

// A page is opened by hand and has to stay a few megabytes, so each list has a limit, and the number of all is written
// beside what was kept. Keys are written in the order of the alphabet, as JsonWriter asks.

constexpr size_t kHeadTextBytesMax = 4000;
constexpr size_t kReplayBytesMax = 100'000;

// Names, categories and arguments repeat: events refer to them by number.
class StringTable {
 public:
  uint64_t number_of(const std::string& text) {
    const auto [entry, is_new] = numbers_.emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return entry->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> texts_;
};

class ReportData {
 public:
  ReportData(const RunReport& report, const ReportLimits& limits)
      : report_(report),
        limits_(limits),
        last_(last_time(report.trace, report.links, report.origin + report.duration)),
        chosen_(choose_events(report.trace, last_, limits.event_count_max)) {}

  std::string write() {
    json_.begin_object();
    head_text("actual", report_.actual);
    json_.key("as_expected").boolean(report_.as_expected);
    head_text("cluster", report_.cluster);
    head_text("digest", report_.digest);
    json_.key("duration").raw(json_number(report_.duration.ns()));
    json_.key("end").raw(json_number((last_ - report_.origin).ns()));
    json_.key("event_count").number(report_.trace.events.size());
    // Before strings and tracks, which consist of what the events refer to.
    write_events();
    head_text("expected", report_.expected);
    write_invariants();
    write_links();
    json_.key("replay").string(json_line(report_.replay, kReplayBytesMax));
    head_text("scenario", report_.scenario);
    // Numbers above 2^53 lose digits in JavaScript.
    json_.key("seed").string(std::to_string(report_.seed));
    head_text("shows", report_.shows);
    json_.key("strings").begin_array();
    for (const std::string& text : strings_.texts()) json_.string(text);
    json_.end_array();
    write_tracks();
    write_traffic();
    write_violations();
    write_works();
    json_.end_object();
    return json_.take();
  }

 private:
  void head_text(std::string_view key, const std::string& text) {
    json_.key(key).string(json_line(text, kHeadTextBytesMax));
  }

  void text(std::string_view key, const std::string& text) { json_.key(key).string(line(text)); }

  void time(std::string_view key, TimePoint time) { json_.key(key).raw(time_text(time)); }

  std::string line(const std::string& text) const { return json_line(text, limits_.text_bytes_max); }

  std::string time_text(TimePoint time) const {
    return time == TimePoint::never() ? "null" : json_number((time - report_.origin).ns());
  }

  // [track, is slice, name, category, begin, length or null, argument name, value, ...]
  void write_events() {
    json_.key("events").begin_array();
    for (const uint32_t number : chosen_) {
      const TraceEvent& event = report_.trace.events[number];
      const bool is_slice = event.kind == TraceEvent::Kind::kSlice;
      const TimePoint begin = shown_begin(event, last_);
      json_.begin_array().number(track_number(event.track)).number(is_slice ? 1u : 0u);
      json_.number(strings_.number_of(line(event.name))).number(strings_.number_of(line(event.category)));
      json_.raw(time_text(begin));
      if (is_slice && event.end == TimePoint::never())
        json_.null();
      else
        json_.raw(json_number((shown_end(event, last_) - begin).ns()));
      for (size_t i = 0; i < std::min(event.args.size(), limits_.arg_count_max); ++i) {
        json_.number(strings_.number_of(line(event.args[i].first)));
        json_.number(strings_.number_of(line(event.args[i].second)));
      }
      json_.end_array();
    }
    json_.end_array();
  }

  // Tracks without a chosen event are not shown; the others keep their order.
  uint64_t track_number(uint32_t track) {
    if (numbers_of_tracks_.empty()) {
      std::vector<bool> is_used(report_.trace.tracks.size());
      for (const uint32_t number : chosen_) {
        CHECK(report_.trace.events[number].track < is_used.size());
        is_used[report_.trace.events[number].track] = true;
      }
      for (uint32_t i = 0; i < is_used.size(); ++i) {
        numbers_of_tracks_.push_back(shown_tracks_.size());
        if (is_used[i]) shown_tracks_.push_back(i);
      }
    }
    return numbers_of_tracks_[track];
  }

  void write_tracks() {
    json_.key("tracks").begin_array();
    for (const uint32_t number : shown_tracks_) {
      const TraceTrack& track = report_.trace.tracks[number];
      json_.begin_array().string(line(track.group)).string(line(track.name)).end_array();
    }
    json_.end_array();
  }

  void write_invariants() {
    json_.key("invariants").begin_array();
    for (const InvariantResult& result : report_.invariants) {
      json_.begin_object().key("check_count").number(result.check_count);
      text("invariant", result.invariant);
      text("rule", result.rule);
      json_.key("violation_count").number(result.violation_count).end_object();
    }
    json_.end_array();
  }

  // Shares are thousandths of the capacity; what is not nothing is at least one.
  void write_links() {
    const std::vector<LinkShares> uses =
        busiest_links(report_.links, report_.origin, last_, limits_.link_part_count, limits_.link_count_max);
    const auto thousandths = [](double share) {
      // Not below zero: shares are not, and the ceiling of a value just below zero is zero.
      return static_cast<uint64_t>(std::ceil(std::min(share, 10.0) * 1000 - 1e-6));
    };
    json_.key("link_count").number(report_.links.size()).key("links").begin_array();
    for (const LinkShares& use : uses) {
      json_.begin_object().key("bytes").raw(json_number(use.bytes));
      json_.key("capacity").raw(json_number(use.capacity_bytes_per_s));
      text("name", use.link);
      json_.key("peak").number(thousandths(use.peak_share)).key("shares").begin_array();
      for (const double share : use.shares) json_.number(thousandths(share));
      json_.end_array().end_object();
    }
    json_.end_array();
  }

  void names(std::string_view key, const std::vector<std::string>& list) {
    json_.key(key).begin_array();
    for (const std::string& name : list) json_.string(line(name));
    json_.end_array();
  }

  void write_traffic() {
    const TrafficMatrix matrix = traffic_matrix(report_.traffic, limits_.matrix_side_max);
    json_.key("traffic").begin_object().key("cells").begin_array();
    for (const TrafficMatrix::Cell& cell : matrix.cells) {
      json_.begin_array().number(cell.row).number(cell.column);
      json_.number(cell.planned_bytes).number(cell.landed_bytes).end_array();
    }
    json_.end_array();
    const TrafficPairs pairs = largest_pairs(report_.traffic, limits_.pair_count_max);
    json_.key("pair_count").number(pairs.pair_count).key("pairs").begin_array();
    for (const TrafficCell& pair : pairs.largest) {
      json_.begin_array().string(line(pair.from)).string(line(pair.to));
      json_.number(pair.planned_bytes).number(pair.landed_bytes).end_array();
    }
    json_.end_array();
    names("receivers", matrix.receivers);
    json_.key("receivers_together").number(matrix.receivers_together);
    names("senders", matrix.senders);
    json_.key("senders_together").number(matrix.senders_together).end_object();
  }

  void write_violations() {
    json_.key("violation_count").number(report_.violations.size()).key("violations").begin_array();
    for (size_t i = 0; i < std::min(report_.violations.size(), limits_.row_count_max); ++i) {
      const Violation& violation = report_.violations[i];
      json_.begin_object().key("event").number(violation.event);
      text("invariant", violation.invariant);
      time("time", violation.time);
      text("what", violation.what);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_works() {
    json_.key("work_count").number(report_.works.size()).key("works").begin_array();
    for (size_t i = 0; i < std::min(report_.works.size(), limits_.row_count_max); ++i) {
      const WorkResult& work = report_.works[i];
      json_.begin_object();
      time("begin", work.begin);
      json_.key("bytes").number(work.bytes);
      text("cause", work.cause);
      time("done", work.done > work.begin ? work.done : work.end);
      time("end", work.end);
      text("kind", work.kind);
      text("name", work.name);
      text("verdict", work.verdict);
      json_.end_object();
    }
    json_.end_array();
  }

  const RunReport& report_;
  const ReportLimits& limits_;
  const TimePoint last_;
  const std::vector<uint32_t> chosen_;
  StringTable strings_;
  std::vector<uint64_t> numbers_of_tracks_;
  std::vector<uint32_t> shown_tracks_;
  JsonWriter json_;
};

}  // namespace

std::string report_data(const RunReport& report, const ReportLimits& limits) {
  return ReportData(report, limits).write();
}

}  // namespace crossdock
