// Layout catalog: the store layouts in which pages of one domain may lie. Runtimes that are sharded differently may
// write with different layouts; a reader looks in all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/kv/page_keys.h"

namespace crossdock {

// A layout is its digest: two that differ in nothing but the order of axes in their objects are two, and a page that
// lies in one of them does not lie in the other, although the objects have the same names and sizes.
struct CatalogedLayout {
  Sha256Digest digest;
  Valid<StoreLayout> layout;

  friend bool operator==(const CatalogedLayout&, const CatalogedLayout&) = default;
};

class LayoutCatalog {
 public:
  static constexpr size_t kLayoutCountMax = 16;

  // Without layouts, at revision 0. The domain has page_tokens of at least 1.
  explicit LayoutCatalog(PageDomain domain);

  // What all of its layouts are for.
  const PageDomain& domain() const { return domain_; }
  // One more with each layout that was added.
  uint64_t revision() const { return revision_; }
  // Sorted by digest.
  const std::vector<CatalogedLayout>& layouts() const { return layouts_; }
  // Null when there is none. O(log n).
  const CatalogedLayout* find(const Sha256Digest& digest) const;

  // The catalog with one more layout, for a compare-and-swap of what `expected_revision` was read from. A layout that
  // is there already changes nothing, nor the revision. kInvalidArgument when expected_revision is not the current one,
  // or when the layout's cache schema or page size is not that of the domain; kResourceExhausted beyond kLayoutCountMax
  // layouts.
  Result<LayoutCatalog> with_layout(const Valid<StoreLayout>& layout, uint64_t expected_revision) const;

  friend bool operator==(const LayoutCatalog&, const LayoutCatalog&) = default;

 private:
  PageDomain domain_;
  uint64_t revision_ = 0;
  std::vector<CatalogedLayout> layouts_;
};

}  // namespace crossdock
