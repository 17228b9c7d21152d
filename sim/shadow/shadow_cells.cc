#include "sim/shadow/shadow_cells.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/sorted.h"

namespace crossdock::shadow {

ShadowCells::ShadowCells(std::shared_ptr<const Valid<RuntimeBinding>> of_binding,
                         std::shared_ptr<const Valid<CacheSchema>> schema, ContentTag initial)
    : binding_(std::move(of_binding)), schema_(std::move(schema)) {
  for (const PageTable& table : binding().page_tables) slots_.emplace(table.id, table.slots);
  const std::vector<ViewLayer> all = layers_of_views(binding(), **schema_);
  for (size_t i = 0; i < all.size();) {
    // Layers at equal distances become one view with a layer digit: a pool of 80 layers costs one entry instead of 80.
    // Where the digits would not be unique, each layer is a view of its own.
    const size_t count = progression(std::span(all).subspan(i));
    if (!store(std::span(all).subspan(i, count)))
      for (size_t k = 0; k < count; ++k) CHECK(store(std::span(all).subspan(i + k, 1)));  // by the rule of strides
    i += count;
  }
  for (const StoredView& view : views_) cells_.emplace_back(view, initial);
  index_regions();
}

bool ShadowCells::store(std::span<const ViewLayer> layers) {
  const View& like = *layers[0].view;
  const PageTable* table = like.pages ? find_sorted(binding().page_tables, &PageTable::id, like.pages->table) : nullptr;
  CHECK((table != nullptr) == like.pages.has_value());
  std::vector<uint64_t> ids;
  for (const ViewLayer& each : layers) ids.push_back(each.layer);
  const uint64_t stride = layers.size() == 1 ? 0 : layers[1].offset - layers[0].offset;
  StoredView view(like, *layers[0].component, std::move(ids), stride, layers[0].offset, table,
                  table == nullptr ? nullptr : &slots_.at(table->id));
  if (!view.is_nested()) return false;
  views_.push_back(std::move(view));
  return true;
}

// Views of a region are sorted by their first byte. `ends_max` ends the search backwards: no view at or before that
// index reaches the byte.
void ShadowCells::index_regions() {
  const std::vector<Region>& all = binding().regions;
  regions_.resize(all.size());
  for (uint32_t i = 0; i < views_.size(); ++i) {
    const Region* region = find_sorted(all, &Region::id, views_[i].view().region);
    CHECK(region != nullptr);
    region_of_.push_back(static_cast<uint32_t>(region - all.data()));
    regions_[region_of_.back()].views.push_back(i);
  }
  for (RegionViews& region : regions_) {
    std::ranges::sort(region.views, {}, [&](uint32_t view) { return views_[view].begin(); });
    uint64_t end_max = 0;
    for (const uint32_t view : region.views) {
      end_max = std::max(end_max, views_[view].end());
      region.ends_max.push_back(end_max);
    }
  }
}

std::optional<uint32_t> ShadowCells::find_region(const RegionKey& key) const {
  const Region* region = find_sorted(binding().regions, &Region::id, key.id);
  if (region == nullptr || RegionKey::of(binding(), *region) != key) return std::nullopt;
  return static_cast<uint32_t>(region - binding().regions.data());
}

bool ShadowCells::search(uint32_t region, uint64_t byte, BytePlace& place) const {
  const RegionViews& in = regions_[region];
  const auto after = std::ranges::upper_bound(in.views, byte, {}, [&](uint32_t view) { return views_[view].begin(); });
  for (size_t i = static_cast<size_t>(after - in.views.begin()); i > 0 && in.ends_max[i - 1] > byte; --i) {
    place.view = in.views[i - 1];
    if (views_[place.view].locate(byte, place.digits, place.row)) return true;
  }
  return false;
}

}  // namespace crossdock::shadow
