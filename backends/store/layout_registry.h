// The layouts in which a store keeps pages of KV cache, one catalog for each domain, beside the data.
#pragma once

#include <cstdint>

#include "backends/store/store_core.h"
#include "base/status.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/kv/layout_catalog.h"

namespace crossdock {

// The layouts of a domain; without any when none was registered.
Result<LayoutCatalog> layout_catalog(const StoreCore& store, const PageDomain& domain);

// Compare and swap: kConflict when the catalog's revision is not `expected_revision` any more.
Result<LayoutCatalog> register_layout(StoreCore& store, const PageDomain& domain, const Valid<StoreLayout>& layout,
                                      uint64_t expected_revision);

}  // namespace crossdock
