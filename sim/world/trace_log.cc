#include "sim/world/trace_log.h"

#include <fmt/format.h>

namespace crossdock {
namespace {

// FNV-1a (Fowler, Noll, Vo), 64 bits; two lanes of it that differ in their start.
constexpr uint64_t kPrime = 0x100000001b3;

}  // namespace

uint32_t TraceLog::track(const std::string& group, const std::string& name) {
  const auto [entry, is_new] = tracks_.try_emplace({group, name}, static_cast<uint32_t>(trace_.tracks.size()));
  if (is_new) trace_.tracks.push_back(TraceTrack{group, name});
  return entry->second;
}

void TraceLog::slice(uint32_t track, std::string_view name, const char* category, TimePoint begin, TimePoint end,
                     TraceArgs args) {
  note(TraceEvent{TraceEvent::Kind::kSlice, track, std::string(name), category, begin, end, std::move(args), event_});
}

void TraceLog::instant(uint32_t track, std::string_view name, const char* category, TimePoint time, TraceArgs args) {
  note(TraceEvent{TraceEvent::Kind::kInstant, track, std::string(name), category, time, time, std::move(args), event_});
}

// Hashed whether it is kept or not: the digest of a run does not depend on --trace (I7). Not hashed are category and
// event number, which say nothing new about the run.
void TraceLog::note(TraceEvent event) {
  ++event_count_;
  mix(trace_.tracks[event.track].group);
  mix(trace_.tracks[event.track].name);
  mix(event.name);
  mix(static_cast<uint64_t>(event.begin.ns()));
  mix(static_cast<uint64_t>(event.end.ns()));
  for (const auto& [key, value] : event.args) {
    mix(key);
    mix(value);
  }
  if (keeps_events_) trace_.events.push_back(std::move(event));
}

void TraceLog::mix(std::string_view text) {
  // The length first: "ab", "c" and "a", "bc" have different digests.
  mix(text.size());
  for (const char byte : text)
    for (uint64_t& lane : state_) lane = (lane ^ static_cast<uint8_t>(byte)) * kPrime;
}

void TraceLog::mix(uint64_t number) {
  for (uint64_t& lane : state_) lane = ((lane ^ number) * kPrime) ^ (number >> 29);
}

std::string TraceLog::digest() const { return fmt::format("{:016x}{:016x}", state_[0], state_[1]); }

}  // namespace crossdock
