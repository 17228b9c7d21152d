// The streams of bytes that synthetic content consists of (formula: backends/memory/synthetic.h), piece by piece. In a
// header because these loops run once for each row, or for each item.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/memory/synthetic.h"
#include "base/rng.h"
#include "model/ids.h"

namespace crossdock {

static_assert(std::endian::native == std::endian::little, "words are stored as they are");

// The base of all streams of one layer of a component.
inline uint64_t stream_base(uint64_t seed, const ComponentName& component, uint64_t layer) {
  const auto next = [](uint64_t state) { return splitmix64(state); };
  uint64_t base = next(next(seed) ^ layer);
  for (const char letter : component.text()) base = next(base ^ static_cast<uint8_t>(letter));
  return base;
}

inline uint64_t stream_start(uint64_t base, uint64_t head, uint64_t row) {
  uint64_t state = base + head * 0xc2b2ae3d27d4eb4f + row * 0xa0761d6478bd642f;
  return splitmix64(state);
}

inline uint64_t stream_word(uint64_t start, uint64_t word) {
  uint64_t x = start + word * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

// Up to 8 bytes as one number, without a loop or a call: two loads that may overlap.
inline uint64_t load_bytes(const std::byte* at, uint64_t count) {
  const auto load = [at]<class Word>(Word word, uint64_t offset) {
    std::memcpy(&word, at + offset, sizeof(word));
    return uint64_t{word};
  };
  if (count == 8) return load(uint64_t{}, 0);
  if (count >= 4) return load(uint32_t{}, 0) | load(uint32_t{}, count - 4) << (8 * (count - 4));
  if (count >= 2) return load(uint16_t{}, 0) | load(uint16_t{}, count - 2) << (8 * (count - 2));
  return load(uint8_t{}, 0);
}

inline void store_bytes(uint64_t value, uint64_t count, std::byte* at) {
  const auto store = [at]<class Word>(Word word, uint64_t offset) { std::memcpy(at + offset, &word, sizeof(word)); };
  const auto store_two = [&]<class Word>(Word low) {
    store(low, 0);
    store(static_cast<Word>(value >> (8 * (count - sizeof(Word)))), count - sizeof(Word));
  };
  if (count == 8) return store(value, 0);
  if (count >= 4) return store_two(static_cast<uint32_t>(value));
  if (count >= 2) return store_two(static_cast<uint16_t>(value));
  store(static_cast<uint8_t>(value), 0);
}

// Bytes [begin, begin + bytes) of the stream, at least one, as visit(value, position in them, bytes of value, 1 to 8).
template <class Visit>
inline void each_word(uint64_t start, uint64_t begin, uint64_t bytes, Visit visit) {
  constexpr uint64_t kWordBytes = sizeof(uint64_t);
  uint64_t word = begin / kWordBytes;
  uint64_t at = 0;
  if (const uint64_t skipped = begin % kWordBytes; skipped != 0) {
    at = std::min(bytes, kWordBytes - skipped);
    visit(stream_word(start, word++) >> (8 * skipped), 0, at);
  }
  // `bytes` is at least 1 and `at` at most `bytes`, so neither difference wraps.
  const uint64_t whole_end = at + (bytes - at) / kWordBytes * kWordBytes;
  for (; at < whole_end; at += kWordBytes) visit(stream_word(start, word++), at, kWordBytes);
  if (at < bytes) visit(stream_word(start, word), at, bytes - at);
}

// Writes bytes [begin, begin + bytes) of the stream; `bytes` is not 0.
inline void put_stream(uint64_t start, uint64_t begin, uint64_t bytes, std::byte* to) {
  each_word(start, begin, bytes,
            [to](uint64_t value, uint64_t at, uint64_t count) { store_bytes(value, count, to + at); });
}

// Whether these bytes are there.
inline bool holds_stream(uint64_t start, uint64_t begin, uint64_t bytes, const std::byte* from) {
  uint64_t difference = 0;  // of all words at once: a loop without branches
  each_word(start, begin, bytes, [&](uint64_t value, uint64_t at, uint64_t count) {
    difference |= (value ^ load_bytes(from + at, count)) << (8 * (8 - count));  // drops the bytes above them
  });
  return difference == 0;
}

inline void put_guards(uint64_t bytes, std::byte* to) {
  if (bytes > sizeof(uint64_t))
    std::memset(to, std::to_integer<int>(kGuardByte), bytes);
  else
    store_bytes(std::to_integer<uint64_t>(kGuardByte) * 0x0101010101010101, bytes, to);
}

}  // namespace crossdock
