// Prefix match: how many leading pages of a request stored pages can restore, from which objects, and why no more.
//
// Let P be the tokens of a page. A layer group with rows keeps the last W tokens of a prefix, or all of them; rows do
// not cross pages, so it is live in the prefix's last ceil(W / P) pages, or in all. n pages are restorable when
//   - for each of its pages with live groups, one layout of the catalog has the row objects of all its parts that hold
//     rows of these groups, and
//   - with state components in the schema, one layout has the state objects of page n-1 of all its parts with states.
// Different pages may come from different layouts. A part is there or it is not: a page without one of its components,
// heads or layers is no hit (a joint hit). No pages at all are always restorable.
//
// With N pages, L layouts and Q parts in all layouts together: at most N * Q look-ups of row objects and N * Q of state
// objects, none of them twice; O(N * (Q + L) + size of the layouts * log) steps.
// Groups that keep all tokens end the look-ups at the first page that is lost to them; where only windows and states
// remain, the longest prefix is sought from its end, and nothing is looked up that lies further back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/range.h"
#include "base/sha256.h"
#include "base/status.h"
#include "model/ids.h"
#include "model/page_object.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/page_keys.h"

namespace crossdock {

// What is stored. Its answers stay the same during one match.
class PageInventory {
 public:
  virtual ~PageInventory() = default;
  // Whether the object of `part` was published whole, under the layout with this digest.
  // I2: an object of an upload that is not committed is not there.
  virtual bool has(const PageKey& page, const Sha256Digest& layout, const ObjectKey& part, PageObject object) const = 0;
};

// The row objects of each of `pages`, from one layout.
struct RowSource {
  Range pages;  // not empty; numbers of the request's pages
  Sha256Digest layout;
  std::vector<ObjectKey> parts;  // sorted

  friend bool operator==(const RowSource&, const RowSource&) = default;
};

// The state objects of the prefix's last page, from one layout.
struct StateSource {
  uint64_t page = 0;
  Sha256Digest layout;
  std::vector<ObjectKey> parts;  // sorted

  friend bool operator==(const StateSource&, const StateSource&) = default;
};

// Why one page more cannot be restored. The reason is always that page: all that n+1 pages need of the first n, n pages
// need as well.
struct PrefixStop {
  uint64_t page = 0;                      // the first page beyond the prefix
  PageObject object = PageObject::kRows;  // what is missing of it; rows, when both are
  std::optional<Sha256Digest> layout;  // that lacks the fewest parts (then: needs the fewest; then the lowest digest)
  std::string layout_name;             // both empty when the catalog has no layout
  std::vector<ObjectKey> missing;      // its missing parts, sorted

  // "page 3: layout 'by-head': part 'h0' is missing"
  std::string to_text() const;

  friend bool operator==(const PrefixStop&, const PrefixStop&) = default;
};

struct PrefixMatch {
  uint64_t page_count = 0;
  uint64_t token_count = 0;     // page_count * page_tokens
  std::vector<RowSource> rows;  // the prefix's pages with live groups, ascending, neighbours with different sources
  std::optional<StateSource> state;  // where the schema has state components and page_count is not 0
  std::optional<PrefixStop> stop;    // empty when all pages are a hit
  uint64_t lookup_count = 0;         // of the inventory

  friend bool operator==(const PrefixMatch&, const PrefixMatch&) = default;
};

struct PrefixLimits {
  uint64_t lookup_count_max = uint64_t{1} << 24;  // pages * (parts of all layouts that hold rows + that hold state)
};

// The longest restorable prefix of `pages`, which are the keys of the request's pages in the catalog's domain. Each
// page comes from the layout that needs the fewest objects for it: of several, from that of the page before it (the
// state: from that of the last page's rows), else from that with the lowest digest. kResourceExhausted when the worst
// case would pass the limit; kInvalidArgument when the tokens of all pages pass 2^64 - 1.
Result<PrefixMatch> match_prefix(const LayoutCatalog& catalog, std::span<const PageKey> pages,
                                 const PageInventory& inventory, const PrefixLimits& limits = {});

}  // namespace crossdock
