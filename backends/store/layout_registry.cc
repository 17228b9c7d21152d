#include "backends/store/layout_registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/wire/documents.h"

namespace crossdock {

// The catalog is a list of documents beside the data; the store does not know what they mean. Texts are read with all
// rules again, so a damaged one is kDataLoss and never a wrong layout.
Result<LayoutCatalog> layout_catalog(const StoreCore& store, const PageDomain& domain) {
  LayoutCatalog catalog(domain);
  TRY(const std::vector<std::string> texts, store.documents(digest(domain)));
  for (const std::string& text : texts) {
    Diagnostics diagnostics(fmt::format("a layout of the catalog of domain {}", digest(domain).hex()));
    const std::optional<Valid<StoreLayout>> layout = read_document<StoreLayout>(text, JsonLimits(), diagnostics);
    if (!layout) return Status(Code::kDataLoss, diagnostics.to_status().message());
    TRY(catalog, catalog.with_layout(*layout, catalog.revision()));
  }
  return catalog;
}

Result<LayoutCatalog> register_layout(StoreCore& store, const PageDomain& domain, const Valid<StoreLayout>& layout,
                                      uint64_t expected_revision) {
  TRY(const LayoutCatalog current, layout_catalog(store, domain));
  if (current.revision() != expected_revision)
    return Status(Code::kConflict,
                  fmt::format("the catalog is at revision {}, not {}", current.revision(), expected_revision));
  TRY(LayoutCatalog changed, current.with_layout(layout, expected_revision));
  std::vector<std::string> texts;
  for (const CatalogedLayout& each : changed.layouts()) texts.push_back(to_json(each.layout));
  // Read, change, write back, with no lock in between. The store compares the count again, so of two that register at
  // once one gets kConflict and repeats (compare and swap).
  TRY_STATUS(store.replace_documents(digest(domain), texts, current.layouts().size()));
  return changed;
}

}  // namespace crossdock
