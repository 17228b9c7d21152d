// Where the bytes of one end of a plan lie.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/kv/view.h"

namespace crossdock {

// The views of one end of a plan. In a store all ends share one, without a name.
// Refers to the binding, the manifest or the objects that the side was made from.
struct BoundEnd {
  std::string_view end;
  const std::vector<View>* views;
  const std::vector<PageTable>* page_tables;
  std::vector<uint32_t> view_regions;  // of each view, a number in the side's regions
  std::vector<uint32_t> regions;       // the same of each region of a binding
};

}  // namespace crossdock
