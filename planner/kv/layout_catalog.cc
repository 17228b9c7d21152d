#include "planner/kv/layout_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/sorted.h"
#include "model/wire/documents.h"

namespace crossdock {

LayoutCatalog::LayoutCatalog(PageDomain domain) : domain_(std::move(domain)) { CHECK(domain_.page_tokens > 0); }

const CatalogedLayout* LayoutCatalog::find(const Sha256Digest& digest) const {
  return find_sorted(layouts_, &CatalogedLayout::digest, digest);
}

// A new value instead of a change in place: the caller publishes it with a compare-and-swap, and a reader never sees
// half of it. The revision is compared before anything else, since the other answers are about a catalog that may be
// out of date.
Result<LayoutCatalog> LayoutCatalog::with_layout(const Valid<StoreLayout>& layout, uint64_t expected_revision) const {
  const auto refused = [&](Code code, const std::string& why) {
    return Status(code, fmt::format("layout catalog: store layout '{}': {}", layout->name, why));
  };
  if (expected_revision != revision_)
    return refused(Code::kInvalidArgument,
                   fmt::format("revision {} is expected, but the catalog is at {}", expected_revision, revision_));
  if (layout->page_tokens != domain_.page_tokens)
    return refused(Code::kInvalidArgument, fmt::format("pages of {} tokens, but those of the domain have {}",
                                                       layout->page_tokens, domain_.page_tokens));
  if (const Sha256Digest schema = digest_of_part(layout->cache_schema); schema != domain_.cache_schema_digest)
    return refused(Code::kInvalidArgument, fmt::format("its cache schema is {}, but that of the domain is {}",
                                                       schema.hex(), domain_.cache_schema_digest.hex()));
  const Sha256Digest layout_digest = digest(layout);
  // Before the limit: adding what is there already must work with a full catalog.
  if (find(layout_digest) != nullptr) return *this;
  if (layouts_.size() == kLayoutCountMax)
    return refused(Code::kResourceExhausted, fmt::format("{} layouts are there, which is the limit", kLayoutCountMax));
  LayoutCatalog next = *this;
  const auto place = std::lower_bound(next.layouts_.begin(), next.layouts_.end(), layout_digest,
                                      [](const CatalogedLayout& a, const Sha256Digest& b) { return a.digest < b; });
  next.layouts_.insert(place, CatalogedLayout{layout_digest, layout});
  ++next.revision_;
  return next;
}

}  // namespace crossdock
