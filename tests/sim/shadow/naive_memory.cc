#include "tests/sim/shadow/naive_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/support/naive.h"

namespace crossdock::testing {

NaiveMemory::NaiveMemory(const RuntimeBinding& binding, const CacheSchema& schema, ContentTag initial)
    : instance(binding.instance) {
  for (const Region& region : binding.regions) regions[region.id].resize(region.bytes);
  for (const View& view : binding.views) add(binding, schema, view, initial);
}

std::vector<ByteTag>* NaiveMemory::find(const RegionKey& key) {
  const auto found = regions.find(key.id);
  return key.owner == instance && found != regions.end() ? &found->second : nullptr;
}

void NaiveMemory::overwrite_all(ContentTag content) {
  for (auto& [id, bytes] : regions)
    for (ByteTag& tag : bytes) tag.content = content;
}

void NaiveMemory::add(const RuntimeBinding& binding, const CacheSchema& schema, const View& view, ContentTag initial) {
  for_each_element(
      view, binding.page_tables, schema,
      [&](const Component& component, uint64_t layer, uint64_t token, uint64_t head, uint64_t dim, uint64_t address) {
        for (uint64_t i = 0; i < component.item_bytes; ++i) {
          ByteTag& tag = regions.at(view.region).at(address + i);
          if (tag.name) continue;  // another token of the same row
          const uint64_t row = token / component.tokens_per_row.value_or(1);
          tag = ByteTag{CellName{view.component.text(), layer, head, row, dim * component.item_bytes + i}, token,
                        component.is_state(), initial, 0};
        }
      });
}

std::vector<NaiveBytes> bytes_of(const CopyWork& work, const CopyStep& step, NaiveMemory& source, NaiveMemory& target) {
  std::vector<NaiveBytes> all;
  std::vector<ByteTag>* from = source.find(work.source_regions.at(step.source_region));
  std::vector<ByteTag>* to = target.find(work.target_regions.at(step.target_region));
  ByteRanges ranges(step);
  for (ByteCopy range; ranges.next(range);)
    for (uint64_t i = 0; i < range.bytes; ++i)
      all.push_back(
          {from != nullptr && range.source_offset + i < from->size() ? &(*from)[range.source_offset + i] : nullptr,
           to != nullptr && range.target_offset + i < to->size() ? &(*to)[range.target_offset + i] : nullptr});
  return all;
}

bool is_right(const std::vector<NaiveBytes>& bytes) {
  return std::ranges::all_of(bytes, [](const NaiveBytes& each) {
    return each.source != nullptr && each.target != nullptr && each.source->name &&
           each.source->name == each.target->name;
  });
}

std::string text_of(const ByteTag& tag, uint64_t byte) {
  std::string text = fmt::format("component {} layer {} head {}", tag.name->component, tag.name->layer, tag.name->head);
  if (!tag.is_state) text += fmt::format(" token {}", tag.token);
  if (byte != 0) text += fmt::format(" byte {}", byte);
  return text;
}

std::string fault_of(const ByteTag& tag, ContentTag content, bool exactly_once) {
  if (tag.content == content && (!exactly_once || tag.count == 1)) return "";
  const std::string place = text_of(tag, tag.name->byte);
  if (tag.count == 0) return place + ": was never written";
  if (tag.content == 0) return place + ": holds nothing that anybody knows";
  if (tag.content != content) return fmt::format("{}: holds content {}, not {}", place, tag.content, content);
  return fmt::format("{}: was written {} times", place, tag.count);
}

}  // namespace crossdock::testing
