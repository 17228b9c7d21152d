// Trace log: notes what happens, and hashes it. Keeping the events is optional; the digest is not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/report/trace.h"

namespace crossdock {

class TraceLog {
 public:
  explicit TraceLog(bool keeps_events) : keeps_events_(keeps_events) {}

  // The number of the row, which is made with its first use.
  uint32_t track(const std::string& group, const std::string& name);
  void slice(uint32_t track, std::string_view name, const char* category, TimePoint begin, TimePoint end,
             TraceArgs args = {});
  void instant(uint32_t track, std::string_view name, const char* category, TimePoint time, TraceArgs args = {});

  void set_event(uint64_t event) { event_ = event; }
  bool keeps_events() const { return keeps_events_; }
  const Trace& trace() const { return trace_; }
  uint64_t event_count() const { return event_count_; }
  // Of all that was noted, kept or not: 32 hexadecimal digits.
  std::string digest() const;

 private:
  void note(TraceEvent event);
  void mix(std::string_view text);
  void mix(uint64_t number);

  bool keeps_events_;
  Trace trace_;
  std::map<std::pair<std::string, std::string>, uint32_t> tracks_;
  uint64_t event_count_ = 0;
  uint64_t event_ = 0;
  std::array<uint64_t, 2> state_ = {0xcbf29ce484222325, 0x9e3779b97f4a7c15};
};

}  // namespace crossdock
