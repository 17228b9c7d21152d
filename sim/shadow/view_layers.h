// The layers of a binding's views, put into groups that lie regularly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"

namespace crossdock::shadow {

// One layer of a view.
struct ViewLayer {
  const View* view;
  const Component* component;
  uint64_t layer;
  uint64_t offset;
};

// Sorted so that layers which differ in nothing but number and offset stand together, by offset. They point into the
// binding and the schema.
std::vector<ViewLayer> layers_of_views(const RuntimeBinding& binding, const CacheSchema& schema);

// How many of the first ones lie at equal distances and differ in nothing else.
size_t progression(std::span<const ViewLayer> layers);

}  // namespace crossdock::shadow
