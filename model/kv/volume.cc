#include "model/kv/volume.h"

// In double on purpose: these numbers are for people, and products of a schema may pass 64 bits without being wrong.
namespace crossdock {
namespace {

CacheVolume volume_of(const Component& component, double layer_count, double head_count, double token_share) {
  const double bytes = layer_count * head_count * static_cast<double>(component.head_bytes());
  if (component.is_state()) return CacheVolume{0, bytes};
  return CacheVolume{bytes * token_share / static_cast<double>(*component.tokens_per_row), 0};
}

// A cycle's share in the long run; stated intervals have none without a length, and count as all.
double share_of(const TokenOwnership& tokens) {
  const auto* cyclic = std::get_if<CyclicTokens>(&tokens);
  if (cyclic == nullptr) return 1;
  return static_cast<double>(cyclic->blocks.count()) / static_cast<double>(cyclic->cycle_blocks);
}

}  // namespace

CacheVolume volume_of(const CacheSchema& schema) {
  CacheVolume total;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components)
      total +=
          volume_of(component, static_cast<double>(group.layers.count()), static_cast<double>(component.head_count), 1);
  return total;
}

// The ownerships passed the rules of a placement, so each layer has a group and each group the component.
CacheVolume volume_of(const CacheSchema& schema, const LayerIndex& index, const std::vector<Ownership>& owns) {
  CacheVolume total;
  for (const Ownership& ownership : owns)
    index.for_each_piece(ownership.layers, [&](Range layers, size_t group) {
      for (const ComponentName& name : ownership.components)
        total += volume_of(*schema.groups[group].find(name), static_cast<double>(layers.size()),
                           static_cast<double>(ownership.heads.count()), share_of(ownership.tokens));
    });
  return total;
}

}  // namespace crossdock
