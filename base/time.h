// Time as whole nanoseconds. A point counts from the origin of its clock: of the machine, of a simulation, or 1970 in a
// store. No function here reads a clock; the caller that drives a protocol passes the time in.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace crossdock {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration from_ns(int64_t ns) { return Duration(ns); }
  static constexpr Duration from_ms(int64_t ms) { return Duration(ms * 1'000'000); }
  static constexpr Duration from_s(int64_t s) { return Duration(s * 1'000'000'000); }
  static constexpr Duration max() { return Duration(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t ns() const { return ns_; }

  friend constexpr auto operator<=>(Duration, Duration) = default;

 private:
  constexpr explicit Duration(int64_t ns) : ns_(ns) {}
  int64_t ns_ = 0;
};

class TimePoint {
 public:
  constexpr TimePoint() = default;
  static constexpr TimePoint from_ns(int64_t ns) { return TimePoint(ns); }
  // Later than every other point: a deadline that never comes.
  static constexpr TimePoint never() { return TimePoint(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t ns() const { return ns_; }

  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;

 private:
  constexpr explicit TimePoint(int64_t ns) : ns_(ns) {}
  int64_t ns_ = 0;
};

// Saturates instead of wrapping: a far deadline cannot turn into the past, and "never" and later stays "never".
constexpr TimePoint operator+(TimePoint point, Duration duration) {
  int64_t sum = 0;
  if (__builtin_add_overflow(point.ns(), duration.ns(), &sum))
    return duration.ns() > 0 ? TimePoint::never() : TimePoint::from_ns(std::numeric_limits<int64_t>::min());
  return TimePoint::from_ns(sum);
}

constexpr Duration operator+(Duration a, Duration b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a.ns(), b.ns(), &sum))
    return b.ns() > 0 ? Duration::max() : Duration::from_ns(std::numeric_limits<int64_t>::min());
  return Duration::from_ns(sum);
}

// Saturates at the ends of what a duration can hold.
constexpr Duration operator-(TimePoint later, TimePoint earlier) {
  int64_t difference = 0;
  if (__builtin_sub_overflow(later.ns(), earlier.ns(), &difference))
    return later > earlier ? Duration::max() : Duration::from_ns(std::numeric_limits<int64_t>::min());
  return Duration::from_ns(difference);
}

}  // namespace crossdock
