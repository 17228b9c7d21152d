#include "base/rng.h"

#include <bit>

namespace crossdock {

uint64_t splitmix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix64(seed);
}

Rng::Rng(const std::array<uint64_t, 4>& state) : state_(state) {
  // From the state of all zeros the generator gives only zeros.
  CHECK((state_[0] | state_[1] | state_[2] | state_[3]) != 0);
}

uint64_t Rng::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Rng::below(uint64_t bound) {
  CHECK(bound != 0);
  // The lowest 2^64 mod bound numbers are drawn again, so that each remainder is equally likely.
  const uint64_t reject_below = (0 - bound) % bound;
  while (true) {
    const uint64_t drawn = next();
    if (drawn >= reject_below) return drawn % bound;
  }
}

Rng Rng::fork(uint64_t stream) {
  // Mixed once more, so that neighbouring streams do not begin alike.
  uint64_t seed = next() ^ stream;
  return Rng(splitmix64(seed));
}

}  // namespace crossdock
