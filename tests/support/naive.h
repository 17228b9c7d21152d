// Definitions written out element by element, to compare the real code with. Slow on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/kv/binding.h"
#include "model/kv/placement.h"

namespace crossdock::testing {

bool naive_in(const IntervalSet& set, uint64_t value);
bool naive_owns_token(const TokenOwnership& tokens, uint64_t token);

// Participants of a DP rank that own one element, sorted, each as often as an ownership of theirs holds it.
std::vector<std::string> naive_owners(const PlacementManifest& placement, uint64_t dp, uint64_t layer,
                                      const std::string& component, uint64_t head, uint64_t token);

// Whether each element of each DP rank, over these tokens, has one owner or a complete declared replica set.
bool naive_is_covered(const PlacementManifest& placement, Range tokens);
inline bool naive_is_covered(const PlacementManifest& placement, uint64_t token_count) {
  return naive_is_covered(placement, Range(0, token_count));
}

// The byte of the first item byte of an element by the formula of model/kv/view.h; empty when the view does not hold
// it.
std::optional<uint64_t> naive_address(const View& view, const std::vector<PageTable>& tables,
                                      const Component& component, uint64_t layer, uint64_t token, uint64_t head,
                                      uint64_t dim);

// Calls visit(component, layer, token, head, dim, address) for each element that the view holds of the schema's, the
// address as naive_address().
template <class Visit>
void for_each_element(const View& view, const std::vector<PageTable>& tables, const CacheSchema& schema, Visit visit) {
  for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
    const Component& component = *schema.find_group(layer)->find(view.component);
    for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token)
      for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head)
        for (uint64_t dim = view.dims.begin(); dim < view.dims.end(); ++dim)
          if (const auto address = naive_address(view, tables, component, layer, token, head, dim))
            visit(component, layer, token, head, dim, *address);
  }
}

}  // namespace crossdock::testing
