#include "sim/shadow/view_layers.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace crossdock::shadow {
namespace {

// What has to be equal for two layers to share a StoredView. Names of components are in it through the view.
auto all_but_layer(const ViewLayer& each) {
  const View& view = *each.view;
  return std::tie(view.region, view.component, view.tokens, view.cycle, view.heads, view.dims, view.strides.row,
                  view.strides.head, view.strides.dim, view.pages, each.component->tokens_per_row,
                  each.component->item_bytes);
}

}  // namespace

std::vector<ViewLayer> layers_of_views(const RuntimeBinding& binding, const CacheSchema& schema) {
  std::vector<ViewLayer> all;
  for (const View& view : binding.views)
    for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
      const LayerGroup* group = schema.find_group(layer);
      CHECK(group != nullptr);
      const Component* component = group->find(view.component);
      CHECK(component != nullptr);
      const uint64_t offset = view.offset_bytes + (layer - view.layers.begin()) * view.strides.layer;
      all.push_back(ViewLayer{&view, component, layer, offset});
    }
  std::sort(all.begin(), all.end(), [](const ViewLayer& a, const ViewLayer& b) {
    return std::tuple_cat(all_but_layer(a), std::tie(a.offset)) < std::tuple_cat(all_but_layer(b), std::tie(b.offset));
  });
  return all;
}

size_t progression(std::span<const ViewLayer> layers) {
  size_t count = 1;
  while (count < layers.size() && all_but_layer(layers[count]) == all_but_layer(layers[0]) &&
         layers[count].offset - layers[count - 1].offset == layers[1].offset - layers[0].offset)
    ++count;
  return count;
}

}  // namespace crossdock::shadow
