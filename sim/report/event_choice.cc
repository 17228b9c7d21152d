#include "sim/report/event_choice.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/report/json_text.h"

namespace crossdock {
namespace {

// What explains a failure is kept before what fills the picture.
int rank(const TraceEvent& event) {
  if (event.category == "fault" || event.category == "check") return 0;
  if (event.category == "state") return 1;
  if (event.category == "message") return 4;
  return event.kind == TraceEvent::Kind::kSlice ? 2 : 3;
}

}  // namespace

std::vector<uint32_t> choose_events(const Trace& trace, TimePoint last, size_t count_max) {
  std::vector<uint32_t> chosen(trace.events.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  if (chosen.size() <= count_max) return chosen;
  // With the number as the last part no two keys are equal, so the choice is the same in every run (I7).
  const auto key = [&](uint32_t number) {
    const TraceEvent& event = trace.events[number];
    const Duration length = shown_end(event, last) - shown_begin(event, last);
    return std::tuple(rank(event), -length.ns(), number);
  };
  std::nth_element(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(count_max), chosen.end(),
                   [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  chosen.resize(count_max);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace crossdock
