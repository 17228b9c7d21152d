// Page keys: names of token pages that every writer and every reader of the same content computes alike, whatever their
// parallel layouts. The key of a page depends on its domain and on all tokens up to its end; it is a hash chain.
//
// Byte form, so that other programs can compute the same keys. All numbers are little-endian.
//   text(s)        = u64(bytes of s) s
//   field(name, v) = text(name) text(v)
//   domain digest  = SHA-256( text("crossdock.page_domain.v1")
//                             field("tenant", tenant) field("model_id", ...) field("model_revision", ...)
//                             [field("adapter_id", ...) field("adapter_revision", ...)]     only with an adapter
//                             field("salt", ...) field("semantic_fingerprint", ...)
//                             field("cache_schema_digest", its 32 bytes) field("page_tokens", u64(page_tokens)) )
//   key of page i  = SHA-256( text("crossdock.page_key.v1") field("domain", domain digest)
//                             [field("previous", key of page i-1)]                          not for page 0
//                             field("tokens", u32(token id) for each token of the page) )
// Every text has its length before it and its name before that, so ("ab", "c") and ("a", "bc") differ, and so do an
// adapter with an empty name and none.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "model/kv/snapshot.h"
#include "model/page_object.h"
#include "model/valid.h"

namespace crossdock {

// Everything that decides what a page holds except the tokens. Not the resource, nor any placement or store layout:
// pages are shared by all requests and topologies of a domain.
struct PageDomain {
  std::string tenant;
  std::string model_id;
  std::string model_revision;
  std::optional<Adapter> adapter;
  std::string salt;
  std::string semantic_fingerprint;
  Sha256Digest cache_schema_digest;
  uint64_t page_tokens = 0;  // at least 1

  friend bool operator==(const PageDomain&, const PageDomain&) = default;
};

// The domain of a snapshot's pages. kInvalidArgument when page_tokens is 0.
Result<PageDomain> make_page_domain(const Valid<SnapshotDescriptor>& snapshot, uint64_t page_tokens);

Sha256Digest digest(const PageDomain& domain);

// The keys of one sequence of tokens, page by page; a copy goes on from where the original stood. Token ids are all
// that tells pages of a domain apart: what the model sees besides them, as an image behind placeholder ids, belongs
// into the salt or into ids of its own.
class PageKeyChain {
 public:
  // The domain has page_tokens of at least 1.
  explicit PageKeyChain(const PageDomain& domain);

  uint64_t page_tokens() const { return page_tokens_; }
  uint64_t page_count() const { return page_count_; }
  // Of the page that was added last; empty before the first.
  const std::optional<PageKey>& last() const { return last_; }

  // Adds the next page, of exactly page_tokens() tokens, and returns its key.
  PageKey extend(std::span<const uint32_t> page);

 private:
  Sha256Digest domain_digest_;
  uint64_t page_tokens_;
  uint64_t page_count_ = 0;
  std::optional<PageKey> last_;
};

// The keys of all full pages; a partial last page has none.
std::vector<PageKey> page_keys(const PageDomain& domain, std::span<const uint32_t> tokens);

}  // namespace crossdock
