#include "tests/support/page_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/support/example_documents.h"

namespace crossdock::testing {

Valid<SnapshotDescriptor> tenant_snapshot(const Valid<CacheSchema>& schema, const char* tenant,
                                          std::optional<Adapter> adapter, const char* resource) {
  SnapshotDescriptor snapshot = *example_snapshot();
  snapshot.tenant = tenant;
  snapshot.resource = ResourceId(resource);
  snapshot.adapter = std::move(adapter);
  snapshot.cache_schema_digest = digest(schema);
  return valid_or_die(snapshot);
}

PageDomain domain_of(const Valid<SnapshotDescriptor>& snapshot, uint64_t page_tokens) {
  return make_page_domain(snapshot, page_tokens).value();
}

LayoutCatalog catalog_of(PageDomain domain, const std::vector<Valid<StoreLayout>>& layouts) {
  LayoutCatalog catalog(std::move(domain));
  for (const Valid<StoreLayout>& layout : layouts) catalog = catalog.with_layout(layout, catalog.revision()).value();
  return catalog;
}

std::vector<uint32_t> tokens_of(uint64_t count, uint32_t first) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

bool part_holds(const StorePart& part, const LayerGroup& group, PageObject object) {
  for (uint64_t layer = 0; layer < 64; ++layer)
    for (const ComponentName& name : part.components)
      for (const Component& component : group.components)
        if (part.layers.contains(layer) && group.layers.contains(layer) && component.name == name &&
            component.tokens_per_row.has_value() == (object == PageObject::kRows))
          return true;
  return false;
}

bool has_object(const StoreLayout& layout, const StorePart& part, PageObject object) {
  return std::any_of(layout.cache_schema.groups.begin(), layout.cache_schema.groups.end(),
                     [&](const LayerGroup& group) { return part_holds(part, group, object); });
}

std::vector<size_t> pages(size_t begin, size_t end) {
  std::vector<size_t> list(end - begin);
  std::iota(list.begin(), list.end(), begin);
  return list;
}

PrefixMatch match(const LayoutCatalog& catalog, const std::vector<PageKey>& keys, const MemoryInventory& inventory) {
  inventory.forget_questions();
  PrefixMatch found = match_prefix(catalog, keys, inventory).value();
  EXPECT_FALSE(inventory.is_asked_twice());
  EXPECT_EQ(inventory.asked_count(), found.lookup_count);
  EXPECT_EQ(found.token_count, found.page_count * catalog.domain().page_tokens);
  EXPECT_EQ(found.stop.has_value(), found.page_count < keys.size());
  return found;
}

Strings sources(const LayoutCatalog& catalog, const PrefixMatch& match) {
  Strings lines;
  const auto add = [&](const std::string& pages, const Sha256Digest& layout, const std::vector<ObjectKey>& parts) {
    const CatalogedLayout* cataloged = catalog.find(layout);
    std::string line = pages + " " + (cataloged ? cataloged->layout->name : "?") + ":";
    for (const ObjectKey& key : parts) line += " " + key.text();
    lines.push_back(line);
  };
  for (const RowSource& source : match.rows)
    add(fmt::format("{}-{}", source.pages.begin(), source.pages.end() - 1), source.layout, source.parts);
  if (match.state) add(fmt::format("state {}", match.state->page), match.state->layout, match.state->parts);
  return lines;
}

}  // namespace crossdock::testing
