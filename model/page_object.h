// Objects that many snapshots share: they are found by a key of their own content, not through a manifest.
#pragma once

#include <compare>
#include <string>

#include "base/sha256.h"
#include "model/ids.h"

namespace crossdock {

// Of everything up to the end of a page: equal content, equal key (planner/kv/page_keys.h).
class PageKey {
 public:
  explicit PageKey(const Sha256Digest& digest) : digest_(digest) {}

  const Sha256Digest& digest() const { return digest_; }

  friend auto operator<=>(const PageKey&, const PageKey&) = default;

 private:
  Sha256Digest digest_;
};

// For each page and each part of the layout that it was written with:
enum class PageObject {
  kRows,   // the rows of the part's components with a token axis; no such object when there are none
  kState,  // the part's state components as they are after the page's last token; only for pages where they were saved
};

// The object of one part of one page, by which every writer and reader of equal content names it.
struct PageObjectKey {
  PageKey page;
  Sha256Digest layout;
  ObjectKey part;
  PageObject object = PageObject::kRows;

  // "page 3f21.. layout 9a0c.. part 'h0' rows"
  std::string to_text() const;

  friend auto operator<=>(const PageObjectKey&, const PageObjectKey&) = default;
};

}  // namespace crossdock
