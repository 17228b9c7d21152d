#include "tests/support/synthetic_world.h"

#include <fmt/format.h>

#include "tests/support/naive.h"

namespace crossdock::testing {

uint64_t next_splitmix(uint64_t state) { return splitmix64(state); }

uint8_t stream_byte(uint64_t seed, const std::string& component, uint64_t layer, uint64_t head, uint64_t row,
                    uint64_t byte) {
  uint64_t base = next_splitmix(next_splitmix(seed) ^ layer);
  for (const char letter : component) base = next_splitmix(base ^ static_cast<uint8_t>(letter));
  const uint64_t start = next_splitmix(base + head * 0xc2b2ae3d27d4eb4f + row * 0xa0761d6478bd642f);
  const uint64_t x = start + byte / 8 * 0x9e3779b97f4a7c15;
  const uint64_t y = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return static_cast<uint8_t>((y ^ (y >> 32)) >> (8 * (byte % 8)));
}

SyntheticItem item_of(const View& view, const Component& component, uint64_t seed, uint64_t layer, uint64_t head,
                      uint64_t token, uint64_t dim) {
  const uint64_t row = token / component.tokens_per_row.value_or(1);
  const uint64_t first_token = std::max(row * component.tokens_per_row.value_or(1), view.tokens.begin());
  SyntheticItem item{fmt::format("component {} layer {} head {} token {} dim {}", component.name.text(), layer, head,
                                 first_token, dim),
                     {}};
  for (uint64_t i = 0; i < component.item_bytes; ++i)
    item.bytes.push_back(
        std::byte{stream_byte(seed, component.name.text(), layer, head, row, dim * component.item_bytes + i)});
  return item;
}

RegionKey key_of(const RuntimeBinding& binding, const RegionId& id) {
  for (const Region& region : binding.regions)
    if (region.id == id) return RegionKey{binding.instance, id, region.address, region.epoch};
  return RegionKey{};
}

SyntheticItems items_of(const SyntheticBindings& bindings, const CacheSchema& schema, uint64_t seed) {
  SyntheticItems items;
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
        const Component& component = *schema.find_group(layer)->find(view.component);
        auto& region = items[key_of(*binding, view.region)];
        for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token)
          for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head)
            for (uint64_t dim = view.dims.begin(); dim < view.dims.end(); ++dim)
              if (const auto at = naive_address(view, binding->page_tables, component, layer, token, head, dim))
                region[*at] = item_of(view, component, seed, layer, head, token, dim);
      }
  return items;
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::string wrong_region(const SyntheticWorld& world) {
  for (const auto& [key, mapping] : world.memory.regions())
    if (const auto wanted = world.expected(key); !std::ranges::equal(world.memory.find(key), wanted))
      return fmt::format("region {} holds\n{}, should hold\n{}", key.to_text(), hex_of(world.memory.find(key)),
                         hex_of(wanted));
  return "";
}

std::pair<std::string, std::string> words_about(const SyntheticWorld& world, const RegionKey& key, uint64_t byte,
                                                std::byte flipped_bits) {
  world.write();
  world.memory.find(key)[byte] ^= flipped_bits;
  const std::string taken = world.take();
  const std::string checked = taken == "all right" ? world.check() : "not looked at";
  fill_guards(world.memory);
  return {taken, checked};
}

std::pair<std::string, std::string> words_expected(const SyntheticWorld& world, const RegionKey& key, uint64_t byte,
                                                   std::byte flipped_bits) {
  const auto* entry = world.item_at(key, byte);
  if (entry == nullptr)
    return {"all right", fmt::format("region {} byte {}: holds {:02x}, belongs to no item", key.to_text(), byte,
                                     static_cast<unsigned>(std::byte{0xa5} ^ flipped_bits))};
  const auto& [offset, item] = *entry;
  std::vector<std::byte> held = item.bytes;
  held[byte - offset] ^= flipped_bits;
  return {fmt::format("region {} byte {}: {}: holds {} instead of {}", key.to_text(), offset, item.name, hex_of(held),
                      hex_of(item.bytes)),
          "not looked at"};
}

}  // namespace crossdock::testing
