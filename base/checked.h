// Unsigned 64-bit arithmetic that says when it would wrap. Every size, offset and stride goes through here.
#pragma once

#include <cstdint>
#include <optional>

namespace crossdock {

constexpr std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

constexpr std::optional<uint64_t> checked_sub(uint64_t a, uint64_t b) {
  if (b > a) return std::nullopt;
  return a - b;
}

constexpr std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The same, with 2^64 - 1 for whatever is larger: counts and costs that only have to be told apart up to there.
constexpr uint64_t saturating_add(uint64_t a, uint64_t b) { return checked_add(a, b).value_or(UINT64_MAX); }
constexpr uint64_t saturating_mul(uint64_t a, uint64_t b) { return checked_mul(a, b).value_or(UINT64_MAX); }

// The smallest multiple of `unit` that is not below `value`. `unit` must not be zero.
constexpr std::optional<uint64_t> checked_round_up(uint64_t value, uint64_t unit) {
  const uint64_t rest = value % unit;
  return rest == 0 ? std::optional(value) : checked_add(value, unit - rest);
}

// value / unit, rounded up. `unit` must not be zero. Never wraps.
constexpr uint64_t div_round_up(uint64_t value, uint64_t unit) { return value / unit + (value % unit == 0 ? 0 : 1); }

// A whole expression in checked arithmetic: (Checked(a) * b + c).value() is empty when any step wrapped.
class Checked {
 public:
  constexpr Checked(uint64_t value) : value_(value) {}

  constexpr std::optional<uint64_t> value() const { return value_; }

  friend constexpr Checked operator+(Checked a, Checked b) { return a.apply(b, checked_add); }
  friend constexpr Checked operator-(Checked a, Checked b) { return a.apply(b, checked_sub); }
  friend constexpr Checked operator*(Checked a, Checked b) { return a.apply(b, checked_mul); }

 private:
  constexpr explicit Checked(std::optional<uint64_t> value) : value_(value) {}

  template <class Operation>
  constexpr Checked apply(Checked other, Operation operation) const {
    if (!value_ || !other.value_) return Checked(std::nullopt);
    return Checked(operation(*value_, *other.value_));
  }

  std::optional<uint64_t> value_;
};

}  // namespace crossdock
