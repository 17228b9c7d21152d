#include "planner/kv/page_keys.h"

#include <string_view>

#include "base/check.h"

namespace crossdock {
namespace {

template <class Number>
// Little-endian on every machine: keys are compared between processes.
void append_number(std::string& bytes, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) bytes.push_back(static_cast<char>(number >> (8 * i) & 0xff));
}

// The length first: without it ("ab", "c") and ("a", "bc") would have the same bytes.
void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, uint64_t{text.size()});
  bytes.append(text);
}

void append_field(std::string& bytes, std::string_view name, std::string_view value) {
  append_text(bytes, name);
  append_text(bytes, value);
}

void append_field(std::string& bytes, std::string_view name, const Sha256Digest& value) {
  append_field(bytes, name, std::string(value.bytes().begin(), value.bytes().end()));
}

}  // namespace

Result<PageDomain> make_page_domain(const Valid<SnapshotDescriptor>& snapshot, uint64_t page_tokens) {
  if (page_tokens == 0) return Status(Code::kInvalidArgument, "page domain: page_tokens 0 is below 1");
  return PageDomain{snapshot->tenant,
                    snapshot->model_id,
                    snapshot->model_revision,
                    snapshot->adapter,
                    snapshot->salt,
                    snapshot->semantic_fingerprint,
                    snapshot->cache_schema_digest,
                    page_tokens};
}

// Every field has its name and length before it, so no two domains have the same bytes. An absent adapter adds no
// field, and so differs from one with an empty id.
Sha256Digest digest(const PageDomain& domain) {
  std::string bytes;
  append_text(bytes, "crossdock.page_domain.v1");
  append_field(bytes, "tenant", domain.tenant);
  append_field(bytes, "model_id", domain.model_id);
  append_field(bytes, "model_revision", domain.model_revision);
  if (domain.adapter) {
    append_field(bytes, "adapter_id", domain.adapter->id);
    append_field(bytes, "adapter_revision", domain.adapter->revision);
  }
  append_field(bytes, "salt", domain.salt);
  append_field(bytes, "semantic_fingerprint", domain.semantic_fingerprint);
  append_field(bytes, "cache_schema_digest", domain.cache_schema_digest);
  std::string page_tokens;
  append_number(page_tokens, domain.page_tokens);
  append_field(bytes, "page_tokens", page_tokens);
  return sha256(bytes);
}

PageKeyChain::PageKeyChain(const PageDomain& domain)
    : domain_digest_(digest(domain)), page_tokens_(domain.page_tokens) {
  CHECK(page_tokens_ > 0);
}

// The key of a page depends on all tokens before it through `previous`: attention makes the cache of a page depend on
// them. A partial page has no key, since the tokens that will fill it are not known.
PageKey PageKeyChain::extend(std::span<const uint32_t> page) {
  CHECK(page.size() == page_tokens_);
  std::string bytes;
  append_text(bytes, "crossdock.page_key.v1");
  append_field(bytes, "domain", domain_digest_);
  if (last_) append_field(bytes, "previous", last_->digest());
  append_text(bytes, "tokens");
  append_number(bytes, uint64_t{page.size_bytes()});
  bytes.reserve(bytes.size() + page.size_bytes());
  for (const uint32_t token : page) append_number(bytes, token);
  last_ = PageKey(sha256(bytes));
  ++page_count_;
  return *last_;
}

std::vector<PageKey> page_keys(const PageDomain& domain, std::span<const uint32_t> tokens) {
  PageKeyChain chain(domain);
  std::vector<PageKey> keys;
  keys.reserve(tokens.size() / chain.page_tokens());
  for (; tokens.size() >= chain.page_tokens(); tokens = tokens.subspan(chain.page_tokens()))
    keys.push_back(chain.extend(tokens.first(chain.page_tokens())));
  return keys;
}

}  // namespace crossdock
