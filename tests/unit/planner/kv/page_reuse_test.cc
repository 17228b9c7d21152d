// Page keys, the catalog of layouts, and how much of a request stored pages restore: cases from the field, and random
// schemas, layouts and stores against the definition written out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/kv/partition.h"
#include "model/wire/documents.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/page_store.h"

namespace crossdock::testing {
namespace {

// Page keys.

// The domain whose keys were computed by this Python program, with adapter = None, ("support-bot", "v2") and ("", ""):
//   import hashlib, struct
//   def text(b): return struct.pack('<Q', len(b)) + b
//   def field(name, value): return text(name) + text(value)
//   domain = hashlib.sha256(
//       text(b'crossdock.page_domain.v1') + field(b'tenant', b'team-a') + field(b'model_id', b'example/hybrid-4l') +
//       field(b'model_revision', b'main') +
//       (field(b'adapter_id', adapter[0]) + field(b'adapter_revision', adapter[1]) if adapter else b'') +
//       field(b'salt', b'') + field(b'semantic_fingerprint', b'rope-base-10000') +
//       field(b'cache_schema_digest', bytes(range(32))) + field(b'page_tokens', struct.pack('<Q', 4))).digest()
//   def key(previous, tokens): return hashlib.sha256(
//       text(b'crossdock.page_key.v1') + field(b'domain', domain) +
//       (field(b'previous', previous) if previous else b'') + field(b'tokens', struct.pack('<4I', *tokens))).digest()
//   key_0 = key(None, [1, 2, 3, 4])
//   key_1 = key(key_0, [128000, 4294967294, 0, 7])
//   print(domain.hex(), key_0.hex(), key_1.hex())
PageDomain known_domain(std::optional<Adapter> adapter) {
  std::array<uint8_t, 32> bytes = {};
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return PageDomain{"team-a",          "example/hybrid-4l", "main", std::move(adapter), "",
                    "rope-base-10000", Sha256Digest(bytes), 4};
}

struct KnownKeys {
  std::optional<Adapter> adapter;
  const char* domain;
  const char* keys[2];
};

TEST(PageKeys, AreThoseThatAnotherProgramComputes) {
  const KnownKeys known[] = {
      {std::nullopt,
       "8df564ec4ae9ba01b319c7936bc7b87735c7914cbc762225ca87d594ed275e20",
       {"8d2c59cf8884319d29e12784252e6eaf4903385e8f0f2fc4935ae7b5e6665393",
        "6d664b3d1e770d5cf02866353d6af57f00921fa5ff9361adbf73f711d54a0ef5"}},
      {Adapter{"support-bot", "v2"},
       "774077b9fabd43df0bc26e0e8d1ed6a58ed618b4f71638f889c4abb84621bf3c",
       {"12d58ac1f6b0c78c850885997ac626d81829393e012d9efc5257b42aac48e9dd",
        "8cfb73e483e136276df09dd2c287d3082c89a247621831853e5e436e8337ba34"}},
      {Adapter{"", ""},
       "8ac4c4e11730520c185b767c126a4d3b40bcc8c2f349fd025d0b8a0d57aee458",
       {"f13ecac79786a9b35cc48eb61d314bd33f7f97de600a7c45d9c1fece82d8a3b0",
        "8a79d68930b926e2c30c65c1281ec52e1e4186dacb04a1572486977b4c128518"}},
  };
  for (const KnownKeys& expected : known) {
    const PageDomain domain = known_domain(expected.adapter);
    EXPECT_EQ(digest(domain).hex(), expected.domain);
    const std::vector<uint32_t> tokens = {1, 2, 3, 4, 128000, 4294967294, 0, 7, 99};
    const std::vector<PageKey> keys = page_keys(domain, tokens);
    ASSERT_EQ(keys.size(), 2u) << "the partial third page has no key";
    EXPECT_EQ(keys[0].digest().hex(), expected.keys[0]);
    EXPECT_EQ(keys[1].digest().hex(), expected.keys[1]);
  }
}

TEST(PageKeys, OnlyFullPagesHaveOne) {
  const PageDomain domain = known_domain(std::nullopt);
  for (uint64_t count = 0; count < 14; ++count) EXPECT_EQ(page_keys(domain, tokens_of(count)).size(), count / 4);
}

TEST(PageKeys, DependOnEveryTokenUpToTheEndOfThePageAndOnNoneAfterIt) {
  const PageDomain domain = known_domain(std::nullopt);
  const std::vector<uint32_t> tokens = tokens_of(12);
  const std::vector<PageKey> keys = page_keys(domain, tokens);
  for (size_t changed = 0; changed < tokens.size(); ++changed) {
    std::vector<uint32_t> other = tokens;
    other[changed] ^= 1u << 31;
    const std::vector<PageKey> other_keys = page_keys(domain, other);
    for (size_t page = 0; page < keys.size(); ++page)
      EXPECT_EQ(keys[page] == other_keys[page], page < changed / 4) << "token " << changed << " page " << page;
  }
}

TEST(PageKeys, AChainThatIsExtendedPageByPageGivesTheSameKeysAndCanFork) {
  const PageDomain domain = known_domain(std::nullopt);
  const std::vector<uint32_t> tokens = tokens_of(12);
  const std::vector<PageKey> keys = page_keys(domain, tokens);
  PageKeyChain chain(domain);
  EXPECT_FALSE(chain.last().has_value());
  for (size_t page = 0; page < 2; ++page)
    EXPECT_EQ(chain.extend(std::span(tokens).subspan(page * 4, 4)), keys[page]) << page;
  PageKeyChain fork = chain;
  EXPECT_NE(fork.extend(std::vector<uint32_t>{9, 9, 9, 9}), keys[2]);
  EXPECT_EQ(chain.page_count(), 2u);
  EXPECT_EQ(chain.extend(std::span(tokens).subspan(8, 4)), keys[2]);
  EXPECT_EQ(chain.last(), keys[2]);
}

TEST(PageDomain, EveryFieldAndTheBorderBetweenFieldsChangesIt) {
  const PageDomain base = known_domain(Adapter{"ab", "c"});
  std::vector<PageDomain> all(12, base);
  all[1].tenant = "team-b";
  all[2].model_id = "example/other";
  all[3].model_revision = "main2";
  all[4].adapter = std::nullopt;
  all[5].adapter = Adapter{"a", "bc"};
  all[6].adapter = Adapter{"", ""};
  all[7].salt = "x";
  all[8].semantic_fingerprint = "rope-base-500000";
  all[9].cache_schema_digest = Sha256Digest();
  all[10].page_tokens = 8;
  all[11].tenant = "team-aexample", all[11].model_id = "/hybrid-4l";
  std::set<Sha256Digest> digests;
  for (const PageDomain& domain : all) digests.insert(digest(domain));
  EXPECT_EQ(digests.size(), all.size());
}

TEST(PageDomain, IsAboutNeitherTheResourceNorTheIntervalOfTheSnapshot) {
  SnapshotDescriptor other = *example_snapshot();
  other.resource = ResourceId("kv:request-18");
  other.tokens = Range(0, 4711);
  other.token_fingerprint = "other tokens";
  EXPECT_EQ(domain_of(valid_or_die(other), 16), domain_of(example_snapshot(), 16));
}

TEST(PageDomain, PagesOfNoTokensAreRefused) {
  const Status status = make_page_domain(example_snapshot(), 0).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "page domain: page_tokens 0 is below 1");
}

// Case U62: the adapter (LoRA) was not part of a page's key, or only its name was; it is, by id and revision.
TEST(PageDomain, BaseModelAndTwoRevisionsOfAnAdapterShareNoPage) {
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 2), {rows("key", 2, 8)})});
  const Valid<StoreLayout> layout =
      layout_with("whole", schema, 16, {part("all", {Range(0, 2)}, {"key"}, {Range(0, 2)})});
  const std::vector<std::optional<Adapter>> adapters = {std::nullopt, Adapter{"a", "v1"}, Adapter{"a", "v2"}};
  for (size_t writer = 0; writer < adapters.size(); ++writer) {
    const PageDomain written = domain_of(tenant_snapshot(schema, "team-a", adapters[writer]), 16);
    MemoryInventory inventory;
    inventory.write(layout, page_keys(written, tokens_of(64)), pages(0, 4));
    for (size_t reader = 0; reader < adapters.size(); ++reader) {
      const PageDomain domain = domain_of(tenant_snapshot(schema, "team-a", adapters[reader]), 16);
      const LayoutCatalog catalog = catalog_of(domain, {layout});
      EXPECT_EQ(match(catalog, page_keys(domain, tokens_of(64)), inventory).page_count, reader == writer ? 4u : 0u)
          << "written by " << writer << ", read by " << reader;
    }
  }
}

// Case U64: tenants shared keys, and so did caches of different dtypes.
TEST(PageDomain, TenantsAndDtypesShareNoPageOfTheSameTokens) {
  Component fp8 = rows("key", 2, 8);
  fp8.dtype = "float8_e4m3fn";
  fp8.item_bytes = 1;
  const Valid<CacheSchema> wide = schema_of({group(Range(0, 2), {rows("key", 2, 8)})});
  const Valid<CacheSchema> narrow = schema_of({group(Range(0, 2), {fp8})});
  std::set<PageKey> keys;
  for (const Valid<CacheSchema>& schema : {wide, narrow})
    for (const char* tenant : {"team-a", "team-b"})
      for (const PageKey& key : page_keys(domain_of(tenant_snapshot(schema, tenant), 16), tokens_of(32)))
        keys.insert(key);
  EXPECT_EQ(keys.size(), 2u * 2u * 2u);
}

// The catalog.

// Two layers, two heads, and layouts of them.
class TwoLayers : public ::testing::Test {
 protected:
  Valid<StoreLayout> whole(const char* name, ObjectOrder order = ObjectOrder::kPlhd, uint64_t page_tokens = 64) const {
    return layout_with(name, schema, page_tokens, {part("all", {Range(0, 2)}, {"key", "value"}, {Range(0, 2)})}, order);
  }
  Valid<StoreLayout> by_head(const char* name) const {
    return layout_with(name, schema, 64,
                       {part("h0", {Range(0, 2)}, {"key", "value"}, {Range(0, 1)}),
                        part("h1", {Range(0, 2)}, {"key", "value"}, {Range(1, 2)})});
  }

  const Valid<CacheSchema> schema = schema_of({group(Range(0, 2), {rows("key", 2, 8), rows("value", 2, 8)})});
  const PageDomain domain = domain_of(tenant_snapshot(schema), 64);
  const std::vector<PageKey> keys = page_keys(domain, tokens_of(uint64_t{8} * 64 + 10));
};

class LayoutCatalogTest : public TwoLayers {};

class PrefixMatchTest : public TwoLayers {};

TEST_F(LayoutCatalogTest, KeepsLayoutsByDigestInWhateverOrderTheyCame) {
  const LayoutCatalog empty(domain);
  EXPECT_EQ(empty.revision(), 0u);
  const LayoutCatalog one = empty.with_layout(whole("whole"), 0).value();
  const LayoutCatalog two = one.with_layout(by_head("by-head"), 1).value();
  EXPECT_EQ(empty.layouts().size(), 0u) << "a catalog is a value";
  EXPECT_EQ(two.revision(), 2u);
  EXPECT_EQ(two, catalog_of(domain, {by_head("by-head"), whole("whole")}));
  ASSERT_NE(two.find(digest(whole("whole"))), nullptr);
  EXPECT_EQ(two.find(digest(whole("whole")))->layout, whole("whole"));
  EXPECT_EQ(two.find(digest(whole("other"))), nullptr);
}

TEST_F(LayoutCatalogTest, AddingALayoutAgainChangesNothing) {
  const LayoutCatalog catalog = catalog_of(domain, {whole("whole")});
  EXPECT_EQ(catalog.with_layout(whole("whole"), 1).value(), catalog);
}

TEST_F(LayoutCatalogTest, ARevisionThatIsNotTheCurrentOneIsRefused) {
  const LayoutCatalog catalog = catalog_of(domain, {whole("whole")});
  for (const uint64_t expected : {0u, 2u}) {
    const Status status = catalog.with_layout(by_head("by-head"), expected).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), fmt::format("layout catalog: store layout 'by-head': revision {} is expected, but the "
                                            "catalog is at 1",
                                            expected));
  }
  EXPECT_FALSE(catalog.with_layout(whole("whole"), 0).ok());
}

TEST_F(LayoutCatalogTest, ALayoutWithOtherPagesOrAnotherSchemaIsRefused) {
  const LayoutCatalog empty(domain);
  const Status pages = empty.with_layout(whole("short", ObjectOrder::kPlhd, 32), 0).status();
  EXPECT_EQ(pages.code(), Code::kInvalidArgument);
  EXPECT_EQ(pages.message(),
            "layout catalog: store layout 'short': pages of 32 tokens, but those of the domain have 64");
  const Valid<CacheSchema> other = schema_of({group(Range(0, 2), {rows("key", 2, 8)})});
  const Status refused =
      empty.with_layout(layout_with("l", other, 64, {part("all", {Range(0, 2)}, {"key"}, {Range(0, 2)})}), 0).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(), "layout catalog: store layout 'l': its cache schema is " + digest(other).hex() +
                                   ", but that of the domain is " + digest(schema).hex());
}

TEST_F(LayoutCatalogTest, HoldsSixteenLayouts) {
  LayoutCatalog catalog(domain);
  for (uint64_t i = 0; i < 16; ++i)
    catalog = catalog.with_layout(whole(fmt::format("layout-{}", i).c_str()), i).value();
  const Status status = catalog.with_layout(whole("one-more"), 16).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "layout catalog: store layout 'one-more': 16 layouts are there, which is the limit");
  EXPECT_EQ(catalog.with_layout(whole("layout-3"), 16).value(), catalog) << "a full catalog still knows its own";
}

// Case U18: a persistent cache was written head-major and read token-major, since its name did not tell the order.
TEST_F(LayoutCatalogTest, PagesWrittenHeadFirstAreAMissForAReaderThatKnowsTokenFirstOnly) {
  const Valid<StoreLayout> head_first = whole("pages", ObjectOrder::kHpld);
  const Valid<StoreLayout> token_first = whole("pages", ObjectOrder::kPlhd);
  ASSERT_EQ(head_first->parts, token_first->parts);
  ASSERT_NE(digest(head_first), digest(token_first));
  MemoryInventory inventory;
  inventory.write(head_first, keys, pages(0, 8));

  const PrefixMatch reopened = match(catalog_of(domain, {token_first}), keys, inventory);
  EXPECT_EQ(reopened.page_count, 0u);
  EXPECT_EQ(reopened.stop->to_text(), "page 0: layout 'pages': part 'all' is missing");

  const PrefixMatch both = match(catalog_of(domain, {token_first, head_first}), keys, inventory);
  EXPECT_EQ(both.page_count, 8u);
  ASSERT_EQ(both.rows.size(), 1u);
  EXPECT_EQ(both.rows[0].layout, digest(head_first)) << "read in the order in which it was written";
}

// The match.

TEST_F(PrefixMatchTest, WholePagesAreAHitAndNothingIsMissing) {
  const LayoutCatalog catalog = catalog_of(domain, {by_head("by-head")});
  MemoryInventory inventory;
  inventory.write(by_head("by-head"), keys, pages(0, 8));
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 8u);
  EXPECT_EQ(found.token_count, 512u);
  EXPECT_EQ(sources(catalog, found), Strings({"0-7 by-head: h0 h1"}));
  EXPECT_FALSE(found.state.has_value());
  EXPECT_FALSE(found.stop.has_value());
}

TEST_F(PrefixMatchTest, OneLostPartOfAPageEndsTheHitThereAndTheLookUpsToo) {
  const LayoutCatalog catalog = catalog_of(domain, {by_head("by-head")});
  MemoryInventory inventory;
  inventory.write(by_head("by-head"), keys, pages(0, 8));
  ASSERT_TRUE(inventory.lose(keys[3], by_head("by-head"), "h1"));
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 3u);
  EXPECT_EQ(sources(catalog, found), Strings({"0-2 by-head: h0 h1"}));
  const PrefixStop expected{3, PageObject::kRows, digest(by_head("by-head")), "by-head", {ObjectKey("h1")}};
  EXPECT_EQ(found.stop, expected);
  EXPECT_EQ(found.stop->to_text(), "page 3: layout 'by-head': part 'h1' is missing");
  EXPECT_EQ(found.lookup_count, 4u * 2u);
}

TEST_F(PrefixMatchTest, TheReasonNamesTheLayoutThatLacksLeast) {
  const Valid<StoreLayout> heads = by_head("by-head");
  const Valid<StoreLayout> layers = layout_with("by-layer", schema, 64,
                                                {part("l0-h0", {Range(0, 1)}, {"key", "value"}, {Range(0, 1)}),
                                                 part("l0-h1", {Range(0, 1)}, {"key", "value"}, {Range(1, 2)}),
                                                 part("l1", {Range(1, 2)}, {"key", "value"}, {Range(0, 2)})});
  const LayoutCatalog catalog = catalog_of(domain, {heads, layers});
  MemoryInventory inventory;
  EXPECT_EQ(match(catalog, keys, inventory).stop->to_text(),
            "page 0: layout 'by-head': part 'h0' is missing, and 1 more");
  inventory.write(layers, keys, pages(0, 1));
  ASSERT_TRUE(inventory.lose(keys[0], layers, "l0-h0"));
  EXPECT_EQ(match(catalog, keys, inventory).stop->to_text(), "page 0: layout 'by-layer': part 'l0-h0' is missing");
}

TEST_F(PrefixMatchTest, ACatalogWithoutLayoutsIsAMiss) {
  const PrefixMatch found = match(LayoutCatalog(domain), keys, MemoryInventory());
  EXPECT_EQ(found.page_count, 0u);
  EXPECT_EQ(found.stop->to_text(), "page 0: the catalog has no layout");
}

TEST_F(PrefixMatchTest, ARequestWithoutAFullPageNeedsNothing) {
  EXPECT_EQ(match(LayoutCatalog(domain), {}, MemoryInventory()), PrefixMatch());
  EXPECT_EQ(match(catalog_of(domain, {whole("whole")}), {}, MemoryInventory()), PrefixMatch());
}

TEST_F(PrefixMatchTest, TwoLayoutsThatEachLostAPageServeAllOfThemTogether) {
  const LayoutCatalog catalog = catalog_of(domain, {whole("whole"), by_head("by-head")});
  MemoryInventory inventory;
  inventory.write(whole("whole"), keys, pages(0, 8));
  inventory.write(by_head("by-head"), keys, pages(0, 8));
  ASSERT_TRUE(inventory.lose(keys[2], whole("whole"), "all"));
  ASSERT_TRUE(inventory.lose(keys[5], by_head("by-head"), "h0"));
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 8u);
  EXPECT_EQ(sources(catalog, found), Strings({"0-1 whole: all", "2-2 by-head: h0 h1", "3-7 whole: all"}));
  ASSERT_TRUE(inventory.lose(keys[5], whole("whole"), "all"));
  EXPECT_EQ(match(catalog, keys, inventory).page_count, 5u);
}

TEST_F(PrefixMatchTest, OfLayoutsThatNeedEquallyManyObjectsThatOfThePageBeforeIsKept) {
  Valid<StoreLayout> first = whole("a");
  Valid<StoreLayout> second = whole("b");
  if (digest(second) < digest(first)) std::swap(first, second);
  const LayoutCatalog catalog = catalog_of(domain, {first, second});
  MemoryInventory inventory;
  inventory.write(first, keys, {0, 2, 3, 5, 6, 7});
  inventory.write(second, keys, {0, 1, 2, 4, 5, 6, 7});
  // Page 0: the lowest digest. Page 1 exists in the second only, which then serves page 2 as well.
  EXPECT_EQ(sources(catalog, match(catalog, keys, inventory)),
            Strings({"0-0 " + first->name + ": all", "1-2 " + second->name + ": all", "3-3 " + first->name + ": all",
                     "4-7 " + second->name + ": all"}));
}

TEST_F(PrefixMatchTest, WorkBeyondTheLimitIsRefusedBeforeAnyLookUp) {
  const LayoutCatalog catalog = catalog_of(domain, {whole("whole"), by_head("by-head")});
  const MemoryInventory inventory;
  EXPECT_TRUE(match_prefix(catalog, keys, inventory, PrefixLimits{24}).ok());
  inventory.forget_questions();
  const Status status = match_prefix(catalog, keys, inventory, PrefixLimits{23}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "prefix match: 8 pages may take more look-ups than 23");
  EXPECT_EQ(inventory.asked_count(), 0u);
}

TEST_F(PrefixMatchTest, MoreTokensThanNumbersAreRefused) {
  PageDomain huge = domain;
  huge.page_tokens = uint64_t{1} << 62;
  const Status status = match_prefix(LayoutCatalog(huge), keys, MemoryInventory()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "prefix match: 8 pages of 4611686018427387904 tokens pass 2^64 - 1 tokens");
}

// Case U13: a look-up ignored context-parallel ranks; what one of them did not write is missing for every reader.
TEST_F(PrefixMatchTest, PagesOrPartsOfAnAbsentContextParallelRankAreAMiss) {
  const LayoutCatalog catalog = catalog_of(domain, {by_head("by-head")});
  // Two ranks own every other page.
  MemoryInventory rank_0_only;
  rank_0_only.write(by_head("by-head"), keys, {0, 2, 4, 6});
  const PrefixMatch by_page = match(catalog, keys, rank_0_only);
  EXPECT_EQ(by_page.page_count, 1u);
  EXPECT_EQ(by_page.stop->to_text(), "page 1: layout 'by-head': part 'h0' is missing, and 1 more");
  // One part of every page was written by the absent rank.
  MemoryInventory one_part;
  one_part.write(by_head("by-head"), keys, pages(0, 8));
  for (const PageKey& key : keys) ASSERT_TRUE(one_part.lose(key, by_head("by-head"), "h1"));
  const PrefixMatch by_part = match(catalog, keys, one_part);
  EXPECT_EQ(by_part.page_count, 0u);
  EXPECT_EQ(by_part.stop->to_text(), "page 0: layout 'by-head': part 'h1' is missing");
}

// A latent of 576 x 2 = 1152 bytes and an indexer key of 132 bytes for each token, on three layers.
Valid<CacheSchema> latent_with_indexer() {
  Component indexer = rows("indexer", 1, 132);
  indexer.dtype = "uint8";
  indexer.item_bytes = 1;
  return schema_of({group(Range(0, 3), {rows("latent", 1, 576), indexer})});
}

// Case U17: a cache saved by one tensor-parallel rank was never found by two; neither keys nor the hit depend on that.
TEST(PrefixMatchOfLatents, PagesOfATensorParallelSizeOfOneAreAFullHitForTwoAndFour) {
  const Valid<CacheSchema> schema = latent_with_indexer();
  const Valid<StoreLayout> layout =
      layout_with("tp1", schema, 64, {part("all", {Range(0, 3)}, {"indexer", "latent"}, {Range(0, 1)})});
  const auto schema_at = [&](uint64_t tp) {
    PartitionRequest request;
    request.name = "runtime";
    request.resource = ResourceId(fmt::format("kv:tp{}", tp));
    request.revision = RevisionId("1");
    request.tp = tp;
    request.layer_count = 3;
    Diagnostics diagnostics;
    return valid_or_die((*partition(schema, request, diagnostics))->cache_schema);
  };
  const auto domain_at = [&](uint64_t tp) {
    return domain_of(tenant_snapshot(schema_at(tp), "team-a", std::nullopt, fmt::format("kv:tp{}", tp).c_str()), 64);
  };
  const std::vector<uint32_t> tokens = tokens_of(uint64_t{5} * 64 + 1);
  MemoryInventory inventory;
  inventory.write(layout, page_keys(domain_at(1), tokens), pages(0, 5));
  const LayoutCatalog catalog = catalog_of(domain_at(1), {layout});
  for (const uint64_t tp : {1u, 2u, 4u}) {
    EXPECT_EQ(domain_at(tp), catalog.domain());
    const PrefixMatch found = match(catalog, page_keys(domain_at(tp), tokens), inventory);
    EXPECT_EQ(found.page_count, 5u) << "tp " << tp;
    EXPECT_EQ(sources(catalog, found), Strings({"0-4 tp1: all"}));
  }
}

// Case U21: the keys of a sparse-attention indexer were not saved; a page without them is no hit.
TEST(PrefixMatchOfLatents, APageThatLostItsIndexerEndsTheHit) {
  const Valid<CacheSchema> schema = latent_with_indexer();
  const Valid<StoreLayout> layout = layout_with("by-component", schema, 64,
                                                {part("indexer", {Range(0, 3)}, {"indexer"}, {Range(0, 1)}),
                                                 part("latent", {Range(0, 3)}, {"latent"}, {Range(0, 1)})});
  const PageDomain domain = domain_of(tenant_snapshot(schema), 64);
  const std::vector<PageKey> keys = page_keys(domain, tokens_of(uint64_t{6} * 64));
  const LayoutCatalog catalog = catalog_of(domain, {layout});
  MemoryInventory inventory;
  inventory.write(layout, keys, pages(0, 6));
  EXPECT_EQ(match(catalog, keys, inventory).page_count, 6u);
  ASSERT_TRUE(inventory.lose(keys[3], layout, "indexer"));
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 3u);
  EXPECT_EQ(found.stop->to_text(), "page 3: layout 'by-component': part 'indexer' is missing");
}

TEST(PrefixMatchOfWindows, OnlyTheLastPagesOfAWindowAreNeeded) {
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 2), {rows("key", 1, 8)}, 128)});
  const Valid<StoreLayout> layout =
      layout_with("whole", schema, 64, {part("all", {Range(0, 2)}, {"key"}, {Range(0, 1)})});
  const PageDomain domain = domain_of(tenant_snapshot(schema), 64);
  const std::vector<PageKey> keys = page_keys(domain, tokens_of(uint64_t{8} * 64));
  const LayoutCatalog catalog = catalog_of(domain, {layout});
  MemoryInventory inventory;
  inventory.write(layout, keys, {6, 7});
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 8u);
  EXPECT_EQ(sources(catalog, found), Strings({"6-7 whole: all"}));
  EXPECT_EQ(found.lookup_count, 2u) << "nothing further back is looked up";

  // Without page 6 neither seven nor eight pages are a hit; pages 4 and 5 make six of them one.
  ASSERT_TRUE(inventory.lose(keys[6], layout, "all"));
  EXPECT_EQ(match(catalog, keys, inventory).page_count, 0u);
  inventory.write(layout, keys, {4, 5});
  const PrefixMatch shorter = match(catalog, keys, inventory);
  EXPECT_EQ(shorter.page_count, 6u);
  EXPECT_EQ(sources(catalog, shorter), Strings({"4-5 whole: all"}));
  EXPECT_EQ(shorter.stop->to_text(), "page 6: layout 'whole': part 'all' is missing");
}

TEST(PrefixMatchOfWindows, AWindowThatEndsWithinAPageNeedsAllOfThatPage) {
  for (const auto& [window, first] : std::map<uint64_t, uint64_t>{
           {1, 3}, {64, 3}, {65, 2}, {128, 2}, {129, 1}, {192, 1}, {193, 0}, {1000, 0}, {Range::kUnbounded, 0}}) {
    const Valid<CacheSchema> schema = schema_of({group(Range(0, 2), {rows("key", 1, 8)}, window)});
    const Valid<StoreLayout> layout =
        layout_with("whole", schema, 64, {part("all", {Range(0, 2)}, {"key"}, {Range(0, 1)})});
    const PageDomain domain = domain_of(tenant_snapshot(schema), 64);
    const std::vector<PageKey> keys = page_keys(domain, tokens_of(uint64_t{4} * 64));
    MemoryInventory inventory;
    inventory.write(layout, keys, pages(0, 4));
    const PrefixMatch found = match(catalog_of(domain, {layout}), keys, inventory);
    ASSERT_EQ(found.rows.size(), 1u);
    EXPECT_EQ(found.rows[0].pages, Range(first, 4)) << "window " << window;
    EXPECT_EQ(first, live_tokens(schema->groups[0], schema->groups[0].components[0], Range(0, 256)).begin() / 64);
  }
}

// Layers 0-1 keep all tokens, layers 2-3 the last 128; two layouts differ in what they put together.
TEST(PrefixMatchOfWindows, PartsOfWindowsAreNotNeededFarBackAndSharedPartsAre) {
  const Valid<CacheSchema> schema =
      schema_of({group(Range(0, 2), {rows("key", 1, 8)}), group(Range(2, 4), {rows("key", 1, 8)}, 128)});
  const Valid<StoreLayout> apart = layout_with(
      "apart", schema, 64,
      {part("full", {Range(0, 2)}, {"key"}, {Range(0, 1)}), part("window", {Range(2, 4)}, {"key"}, {Range(0, 1)})});
  const Valid<StoreLayout> mixed = layout_with(
      "mixed", schema, 64,
      {part("even", {Range(0, 1)}, {"key"}, {Range(0, 1)}), part("odd", {Range(1, 2)}, {"key"}, {Range(0, 1)}),
       part("window", {Range(2, 4)}, {"key"}, {Range(0, 1)})});
  const PageDomain domain = domain_of(tenant_snapshot(schema), 64);
  const std::vector<PageKey> keys = page_keys(domain, tokens_of(uint64_t{8} * 64));

  MemoryInventory inventory;
  inventory.write(apart, keys, pages(0, 8));
  for (size_t page = 0; page < 6; ++page) ASSERT_TRUE(inventory.lose(keys[page], apart, "window"));
  const LayoutCatalog catalog = catalog_of(domain, {apart, mixed});
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 8u);
  EXPECT_EQ(sources(catalog, found), Strings({"0-5 apart: full", "6-7 apart: full window"}));
  // Seven pages would need the window of page 5.
  ASSERT_TRUE(inventory.lose(keys[7], apart, "full"));
  EXPECT_EQ(match(catalog, keys, inventory).page_count, 0u);

  MemoryInventory shared;
  shared.write(mixed, keys, pages(0, 8));
  EXPECT_EQ(sources(catalog, match(catalog, keys, shared)),
            Strings({"0-5 mixed: even odd", "6-7 mixed: even odd window"}));
  ASSERT_TRUE(shared.lose(keys[1], mixed, "odd"));
  const PrefixMatch stopped = match(catalog, keys, shared);
  EXPECT_EQ(stopped.page_count, 1u);
  EXPECT_EQ(stopped.stop->to_text(), "page 1: layout 'mixed': part 'odd' is missing");
}

// Layer 0 keeps rows, layer 1 a state.
class PrefixMatchOfStates : public ::testing::Test {
 protected:
  const Valid<CacheSchema> schema =
      schema_of({group(Range(0, 1), {rows("key", 1, 8)}), group(Range(1, 2), {state("state", 2, 16)})});
  const Valid<StoreLayout> layout = layout_with(
      "hybrid", schema, 64,
      {part("rows", {Range(0, 1)}, {"key"}, {Range(0, 1)}), part("state-h0", {Range(1, 2)}, {"state"}, {Range(0, 1)}),
       part("state-h1", {Range(1, 2)}, {"state"}, {Range(1, 2)})});
  const PageDomain domain = domain_of(tenant_snapshot(schema), 64);
  const std::vector<PageKey> keys = page_keys(domain, tokens_of(uint64_t{8} * 64));
  const LayoutCatalog catalog = catalog_of(domain, {layout});
  MemoryInventory inventory;
};

TEST_F(PrefixMatchOfStates, TheHitEndsWhereAStateWasSavedAlthoughThereAreMoreRows) {
  inventory.write(layout, keys, pages(0, 8), {4});
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 5u);
  EXPECT_EQ(sources(catalog, found), Strings({"0-4 hybrid: rows", "state 4 hybrid: state-h0 state-h1"}));
  const PrefixStop expected{
      5, PageObject::kState, digest(layout), "hybrid", {ObjectKey("state-h0"), ObjectKey("state-h1")}};
  EXPECT_EQ(found.stop, expected);
  EXPECT_EQ(found.stop->to_text(), "page 5: layout 'hybrid': the state of part 'state-h0' is missing, and 1 more");
}

TEST_F(PrefixMatchOfStates, HalfAStateIsNone) {
  inventory.write(layout, keys, pages(0, 8), {1, 4});
  ASSERT_TRUE(inventory.lose(keys[4], layout, "state-h1", PageObject::kState));
  EXPECT_EQ(match(catalog, keys, inventory).page_count, 2u);
}

TEST_F(PrefixMatchOfStates, AStateBeyondTheRowsIsOfNoUse) {
  inventory.write(layout, keys, pages(0, 3), {1, 4});
  const PrefixMatch found = match(catalog, keys, inventory);
  EXPECT_EQ(found.page_count, 2u);
  EXPECT_EQ(found.stop->to_text(), "page 2: layout 'hybrid': the state of part 'state-h0' is missing, and 1 more");
}

TEST_F(PrefixMatchOfStates, RowsAndStateMayComeFromDifferentLayouts) {
  const Valid<StoreLayout> other = layout_with(
      "other", schema, 64,
      {part("rows", {Range(0, 1)}, {"key"}, {Range(0, 1)}), part("state", {Range(1, 2)}, {"state"}, {Range(0, 2)})});
  const LayoutCatalog both = catalog_of(domain, {layout, other});
  inventory.write(layout, keys, pages(0, 8));
  inventory.write(other, keys, {}, {7});
  EXPECT_EQ(sources(both, match(both, keys, inventory)), Strings({"0-7 hybrid: rows", "state 7 other: state"}));
}

TEST_F(PrefixMatchOfStates, AModelThatKeepsNothingButStatesNeedsTheLastOneOnly) {
  const Valid<CacheSchema> states = schema_of({group(Range(0, 2), {state("state", 1, 16)})});
  const Valid<StoreLayout> whole =
      layout_with("whole", states, 64, {part("all", {Range(0, 2)}, {"state"}, {Range(0, 1)})});
  const PageDomain of_states = domain_of(tenant_snapshot(states), 64);
  const std::vector<PageKey> own_keys = page_keys(of_states, tokens_of(uint64_t{8} * 64));
  inventory.write(whole, own_keys, {}, {2, 5});
  const LayoutCatalog own = catalog_of(of_states, {whole});
  const PrefixMatch found = match(own, own_keys, inventory);
  EXPECT_EQ(found.page_count, 6u);
  EXPECT_EQ(sources(own, found), Strings({"state 5 whole: all"}));
}

}  // namespace
}  // namespace crossdock::testing
