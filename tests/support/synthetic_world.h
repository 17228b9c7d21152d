// Bindings with synthetic content, and what each of their bytes has to be by the definition of that content.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/memory/synthetic.h"
#include "base/rng.h"

namespace crossdock::testing {

using SyntheticBindings = std::vector<Valid<RuntimeBinding>>;

uint64_t next_splitmix(uint64_t state);

uint8_t stream_byte(uint64_t seed, const std::string& component, uint64_t layer, uint64_t head, uint64_t row,
                    uint64_t byte);

// One item of a region, which begins there.
struct SyntheticItem {
  std::string name;  // as messages tell it
  std::vector<std::byte> bytes;
};

using SyntheticItems = std::map<RegionKey, std::map<uint64_t, SyntheticItem>>;  // by offset

SyntheticItem item_of(const View& view, const Component& component, uint64_t seed, uint64_t layer, uint64_t head,
                      uint64_t token, uint64_t dim);

RegionKey key_of(const RuntimeBinding& binding, const RegionId& id);

SyntheticItems items_of(const SyntheticBindings& bindings, const CacheSchema& schema, uint64_t seed);

std::string hex_of(std::span<const std::byte> bytes);

struct SyntheticWorld {
  SyntheticWorld(SyntheticBindings bound, Valid<CacheSchema> cache_schema, uint64_t content_seed)
      : bindings(std::move(bound)), schema(std::move(cache_schema)), seed(content_seed) {
    for (const Valid<RuntimeBinding>& binding : bindings) CHECK(memory.add(*binding).ok());
    items = items_of(bindings, *schema, seed);
    fill_guards(memory);
  }

  uint64_t write() const {
    uint64_t bytes = 0;
    for (const Valid<RuntimeBinding>& binding : bindings) bytes += write_synthetic(binding, *schema, seed, memory);
    return bytes;
  }
  // What is wrong with the items of any binding; nothing but the words "all right" when all are.
  std::string take() const {
    for (const Valid<RuntimeBinding>& binding : bindings)
      if (const auto wrong = take_synthetic(binding, *schema, seed, memory)) return *wrong;
    return "all right";
  }
  std::string check() const { return check_guards(memory).value_or("all right"); }

  // What the bytes of a region should be.
  std::vector<std::byte> expected(const RegionKey& key) const {
    std::vector<std::byte> bytes(memory.find(key).size(), std::byte{0xa5});
    if (const auto region = items.find(key); region != items.end())
      for (const auto& [offset, item] : region->second)
        std::ranges::copy(item.bytes, bytes.begin() + static_cast<ptrdiff_t>(offset));
    return bytes;
  }
  // The item that holds a byte, or null.
  const std::pair<const uint64_t, SyntheticItem>* item_at(const RegionKey& key, uint64_t byte) const {
    const auto region = items.find(key);
    if (region == items.end()) return nullptr;
    const auto after = region->second.upper_bound(byte);
    if (after == region->second.begin()) return nullptr;
    const auto& entry = *std::prev(after);
    return byte < entry.first + entry.second.bytes.size() ? &entry : nullptr;
  }

  SyntheticBindings bindings;
  Valid<CacheSchema> schema;
  uint64_t seed;
  RegionMemory memory;
  SyntheticItems items;
};

// The first region that is not as it should be.
std::string wrong_region(const SyntheticWorld& world);

// What take() and check() say together about a world in which one bit of one byte is wrong. They have to be written
// beforehand.
std::pair<std::string, std::string> words_about(const SyntheticWorld& world, const RegionKey& key, uint64_t byte,
                                                std::byte flipped_bits);

// What they have to say.
std::pair<std::string, std::string> words_expected(const SyntheticWorld& world, const RegionKey& key, uint64_t byte,
                                                   std::byte flipped_bits);

}  // namespace crossdock::testing
