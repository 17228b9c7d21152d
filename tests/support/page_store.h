// Pages of a store as sets of objects, for look-ups of prefixes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/wire/documents.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "tests/support/builders.h"

namespace crossdock::testing {

using Strings = std::vector<std::string>;

Valid<SnapshotDescriptor> tenant_snapshot(const Valid<CacheSchema>& schema, const char* tenant = "team-a",
                                          std::optional<Adapter> adapter = std::nullopt, const char* resource = "kv:1");

PageDomain domain_of(const Valid<SnapshotDescriptor>& snapshot, uint64_t page_tokens);

LayoutCatalog catalog_of(PageDomain domain, const std::vector<Valid<StoreLayout>>& layouts);

std::vector<uint32_t> tokens_of(uint64_t count, uint32_t first = 1000);

// Whether the part has rows (or states) of the group, by looking at each of its layers and components.
bool part_holds(const StorePart& part, const LayerGroup& group, PageObject object);

bool has_object(const StoreLayout& layout, const StorePart& part, PageObject object);

// Objects as a store would list them. Counts the look-ups and fails a test that makes one of them twice.
class MemoryInventory : public PageInventory {
 public:
  using Object = std::tuple<PageKey, Sha256Digest, ObjectKey, PageObject>;

  bool has(const PageKey& page, const Sha256Digest& layout, const ObjectKey& part, PageObject object) const override {
    const Object key(page, layout, part, object);
    is_asked_twice_ = !asked_.insert(key).second || is_asked_twice_;
    return stored_.contains(key);
  }

  // What a writer with this layout leaves: the rows of pages, and the states after some of them.
  void write(const Valid<StoreLayout>& layout, const std::vector<PageKey>& keys, const std::vector<size_t>& row_pages,
             const std::vector<size_t>& state_pages = {}) {
    for (const StorePart& part : layout->parts) {
      if (has_object(*layout, part, PageObject::kRows))
        for (const size_t page : row_pages) put(keys[page], digest(layout), part.key, PageObject::kRows);
      if (has_object(*layout, part, PageObject::kState))
        for (const size_t page : state_pages) put(keys[page], digest(layout), part.key, PageObject::kState);
    }
  }
  void put(const PageKey& page, const Sha256Digest& layout, const ObjectKey& part, PageObject object) {
    stored_.emplace(page, layout, part, object);
  }
  // False when there is no such object.
  bool lose(const PageKey& page, const Valid<StoreLayout>& layout, const char* part,
            PageObject object = PageObject::kRows) {
    return stored_.erase(Object(page, digest(layout), ObjectKey(part), object)) == 1;
  }

  const std::set<Object>& stored() const { return stored_; }
  uint64_t asked_count() const { return asked_.size(); }
  const std::set<Object>& asked() const { return asked_; }
  bool is_asked_twice() const { return is_asked_twice_; }
  void forget_questions() const {
    asked_.clear();
    is_asked_twice_ = false;
  }

 private:
  std::set<Object> stored_;
  mutable std::set<Object> asked_;
  mutable bool is_asked_twice_ = false;
};

std::vector<size_t> pages(size_t begin, size_t end);

PrefixMatch match(const LayoutCatalog& catalog, const std::vector<PageKey>& keys, const MemoryInventory& inventory);

// "0-3 by-head: a b": where rows come from, a line for each source.
Strings sources(const LayoutCatalog& catalog, const PrefixMatch& match);

}  // namespace crossdock::testing
