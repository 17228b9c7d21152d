// A deterministic random generator of our own: the same seed gives the same numbers with every standard library,
// compiler and machine. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/range.h"

namespace crossdock {

// xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021), seeded by splitmix64.
class Rng {
 public:
  explicit Rng(uint64_t seed);
  // Starts from a given state, which must not be all zero.
  explicit Rng(const std::array<uint64_t, 4>& state);

  uint64_t next();
  // Uniform in [0, bound), without bias; bound must not be zero.
  uint64_t below(uint64_t bound);
  // Uniform in the range, which must not be empty.
  uint64_t in(Range range) { return range.begin() + below(range.size()); }
  // True in `numerator` of `denominator` cases.
  bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) < numerator; }
  // A generator with its own stream: what one part of a run draws does not shift what another part draws.
  Rng fork(uint64_t stream);

  // Fisher-Yates; `items` needs size() and operator[].
  template <class Items>
  void shuffle(Items& items) {
    for (uint64_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::array<uint64_t, 4> state_;
};

// One step of splitmix64 (Steele, Lea and Flood, 2014): advances `state` and returns the next number.
uint64_t splitmix64(uint64_t& state);

}  // namespace crossdock
