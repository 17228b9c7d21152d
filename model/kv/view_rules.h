// The rules of views, shared by runtime bindings and store manifests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/geometry/strided_overlap.h"
#include "model/kv/cache_schema.h"
#include "model/kv/placement.h"
#include "model/kv/view.h"

namespace crossdock {

// A region or an object, as far as views care.
struct ByteSpace {
  RegionId id;
  uint64_t bytes;
};

// What a document with views consists of. All lists are in canonical order.
struct ViewDocument {
  const std::vector<PageTable>& page_tables;
  const std::vector<View>& views;
  std::vector<ByteSpace> spaces;  // sorted by id
  Range tokens;                   // the snapshot's interval
};

// Sorts both: tables by id, views by all their fields.
void canonicalize_views(std::vector<PageTable>& page_tables, std::vector<View>& views);

// The rules that need no schema: names, page tables, empty views, unknown regions.
void check_views_alone(const ViewDocument& document, Diagnostics& diagnostics);

// Against a schema and what is required of the views. The rules above hold. Rules: alignment, strides, bounds, pages,
// no shared bytes, and exact cover of `required` (ownerships of one part, whose tokens are cut to `token_universe`).
void check_views(const ViewDocument& document, const CacheSchema& schema, const std::vector<Ownership>& required,
                 Range token_universe, Diagnostics& diagnostics);

// The bytes of all views, by the space they lie in; each set is owned by its view's index. The views passed the rules.
std::map<RegionId, std::vector<StridedBytes>> bytes_by_space(const ViewDocument& document, const CacheSchema& schema);

// "view 3 (component key, layers 0-31, tokens [0,64), heads [0,8))"
std::string view_place(size_t index, const View& view);

inline constexpr uint64_t kViewPiecesMax = uint64_t{1} << 22;   // pages of all views together
inline constexpr uint64_t kOverlapWorkMax = uint64_t{1} << 24;  // steps of looking for shared bytes

}  // namespace crossdock
