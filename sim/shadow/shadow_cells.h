// The cells of all views of a binding, and the way to them from bytes of its regions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/copy_work.h"
#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "model/valid.h"
#include "sim/shadow/cells.h"
#include "sim/shadow/slot_index.h"
#include "sim/shadow/stored_view.h"
#include "sim/shadow/view_layers.h"

namespace crossdock::shadow {

// A byte of a region, found in a view.
struct BytePlace {
  uint32_t view = 0;
  Digits digits = {};
  uint64_t row = 0;
};

class ShadowCells {
 public:
  ShadowCells(std::shared_ptr<const Valid<RuntimeBinding>> binding, std::shared_ptr<const Valid<CacheSchema>> schema,
              ContentTag initial);
  ShadowCells(const ShadowCells&) = delete;
  ShadowCells& operator=(const ShadowCells&) = delete;

  const RuntimeBinding& binding() const { return **binding_; }
  const std::vector<StoredView>& views() const { return views_; }
  std::vector<Cells>& cells() { return cells_; }  // of each view
  const std::vector<Cells>& cells() const { return cells_; }
  std::optional<uint32_t> find_region(const RegionKey& key) const;
  // False when no view holds the byte. Looks first into the view where `place` is.
  bool find(uint32_t region, uint64_t byte, BytePlace& place) const {
    // No two views share a byte, so the one that was hit before is right if it holds the byte.
    if (region_of_.empty()) return false;
    if (region_of_[place.view] == region && views_[place.view].locate(byte, place.digits, place.row)) return true;
    return search(region, byte, place);
  }
  // A number that was not given before.
  uint64_t count_unknown() { return ++unknown_count_; }

 private:
  struct RegionViews {
    std::vector<uint32_t> views;     // sorted by begin
    std::vector<uint64_t> ends_max;  // the highest end of a view up to there
  };

  // False when the layers together cannot be told apart by division.
  bool store(std::span<const ViewLayer> layers);
  void index_regions();
  bool search(uint32_t region, uint64_t byte, BytePlace& place) const;

  std::shared_ptr<const Valid<RuntimeBinding>> binding_;
  std::shared_ptr<const Valid<CacheSchema>> schema_;
  std::map<PageTableId, SlotIndex> slots_;
  std::vector<StoredView> views_;
  std::vector<Cells> cells_;
  std::vector<RegionViews> regions_;  // as in the binding
  std::vector<uint32_t> region_of_;   // of each view
  uint64_t unknown_count_ = 0;        // checksums of unknown content so far
};

}  // namespace crossdock::shadow
