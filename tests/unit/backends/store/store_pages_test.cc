// Pages through a real store: uploads publish what is whole, a catalog of several layouts is matched, and prefixes are
// restored from pages of several uploads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "backends/store/layout_registry.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/store_stage.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kPageTokens = 4;
constexpr uint64_t kWindow = 6;

std::vector<Component> keys_and_values() { return {rows("key", 4, 2, {"int8", 1}), rows("value", 4, 2, {"int8", 1})}; }

// Layer 0 keeps everything, layer 1 the last 6 tokens, layer 2 a state.
const Valid<CacheSchema>& schema() {
  static const Valid<CacheSchema> made =
      schema_of({group(Range(0, 1), keys_and_values()), group(Range(1, 2), keys_and_values(), kWindow),
                 group(Range(2, 3), {state("state", 4, 2)})});
  return made;
}

const Valid<StoreLayout>& by_group() {
  static const Valid<StoreLayout> made = layout_with(
      "by-group", schema(), kPageTokens,
      {part("full", Range(0, 1), {"key", "value"}, Range(0, 4)), part("state", Range(2, 3), {"state"}, Range(0, 4)),
       part("window", Range(1, 2), {"key", "value"}, Range(0, 4))});
  return made;
}
const Valid<StoreLayout>& by_head() {
  static const Valid<StoreLayout> made = layout_with(
      "by-head", schema(), kPageTokens,
      {part("h0", Range(0, 1), {"key", "value"}, Range(0, 2)), part("h2", Range(0, 1), {"key", "value"}, Range(2, 4)),
       part("state", Range(2, 3), {"state"}, Range(0, 4)), part("w-h0", Range(1, 2), {"key", "value"}, Range(0, 2)),
       part("w-h2", Range(1, 2), {"key", "value"}, Range(2, 4))});
  return made;
}

Valid<SnapshotDescriptor> tokens_snapshot(uint64_t tokens) { return snapshot_of(schema(), Range(0, tokens)); }

PageDomain domain() { return make_page_domain(tokens_snapshot(kPageTokens), kPageTokens).value(); }

std::vector<PageKey> keys_of(uint64_t pages) {
  std::vector<uint32_t> tokens(pages * kPageTokens);
  std::iota(tokens.begin(), tokens.end(), 1000u);
  return page_keys(domain(), tokens);
}

// What an upload of this many tokens has to publish: objects of whose rows every one is live, and the states of the
// end.
std::set<PageObjectKey> naive_pages(const Valid<StoreLayout>& layout, uint64_t tokens) {
  std::set<PageObjectKey> pages;
  const std::vector<PageKey> keys = keys_of(tokens / kPageTokens);
  for (const StorePart& each : layout->parts) {
    const bool is_state = each.components[0].text() == "state";
    const bool has_window = each.layers.contains(1);
    for (uint64_t page = 0; page < keys.size(); ++page) {
      const bool is_whole = !has_window || page * kPageTokens + kWindow >= tokens;
      if (is_state ? page + 1 == keys.size() : is_whole)
        pages.insert({keys[page], digest(layout), each.key, is_state ? PageObject::kState : PageObject::kRows});
    }
  }
  return pages;
}

// All page objects that there may be, asked of the store.
class StoreInventory : public PageInventory {
 public:
  explicit StoreInventory(StoreCore& core) {
    std::vector<PageObjectKey> all;
    for (const PageKey& key : keys_of(6))
      for (const Valid<StoreLayout>* layout : {&by_group(), &by_head()})
        for (const StorePart& each : (*layout)->parts)
          for (const PageObject object : {PageObject::kRows, PageObject::kState})
            all.push_back({key, digest(*layout), each.key, object});
    const Found found = core.lookup(Lookup{all, LeaseRequest{"test"}}).value();
    EXPECT_TRUE(core.release(found.lease).ok());
    stored.insert(found.pages.begin(), found.pages.end());
  }
  bool has(const PageKey& page, const Sha256Digest& layout, const ObjectKey& key, PageObject object) const override {
    return stored.contains({page, layout, key, object});
  }

  std::set<PageObjectKey> stored;
};

UploadOutcome upload_pages_of(StoreStage& stage, const std::string& txn, uint64_t tokens,
                              const Valid<StoreLayout>& layout,
                              const std::vector<ScheduledDeviation>& deviations = {}) {
  SmallUpload upload(schema(), tokens, layout);
  UploadOptions options = upload.options();
  options.txn = TxnId(txn);
  KvUpload pages;
  pages.documents = UploadDocuments{upload.source.placement, upload.snapshot, upload.layout};
  pages.page_keys = keys_of(tokens / kPageTokens);
  options.planner = std::make_shared<const KvUploadPlanner>(std::move(pages));
  Upload protocol(std::move(options));
  StepWorld world;
  upload.join(world, protocol);
  stage.run(world, deviations);
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  EXPECT_TRUE(protocol.outcome().released || !protocol.outcome().lost.empty());
  return protocol.outcome();
}

LayoutCatalog registered_catalog(StoreStage& stage) {
  const LayoutCatalog one = register_layout(stage.core(), domain(), by_group(), 0).value();
  return register_layout(stage.core(), domain(), by_head(), one.revision()).value();
}

struct PrefixRan {
  RestoreOutcome outcome;
  size_t step_count = 0;
};

PrefixRan restore_prefix(StoreStage& stage, const PrefixMatch& match, const LayoutCatalog& catalog,
                         const PartitionSizes& to, const std::vector<ScheduledDeviation>& deviations = {}) {
  const Valid<SnapshotDescriptor> snapshot = tokens_snapshot(match.token_count);
  SmallRestore restore(schema(), snapshot, to, 3);
  RestoreOptions options = restore.options();
  KvRestore prefix;
  prefix.target = restore.target.placement;
  prefix.what = std::make_shared<const PrefixRestore>(PrefixRestore{catalog, match, keys_of(6), snapshot});
  prefix.limits.get_bytes_max = 32;  // several gets
  options.planner = std::make_shared<const KvRestorePlanner>(std::move(prefix));
  Restore protocol(std::move(options));
  StepWorld world;
  restore.join(world, protocol);
  stage.run(world, deviations);
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  for (size_t i = 0; i < restore.target.bindings.size(); ++i) {
    const RuntimeState& runtime = world.runtime(Role::kTarget, (*restore.target.bindings[i])->participant);
    if (runtime.activations > 0) {
      EXPECT_EQ(wrong_items(restore.target, i), "") << "I1, I5";
    }
    EXPECT_TRUE(!protocol.outcome().activated || runtime.activations == 1);
  }
  return {protocol.outcome(), world.step_count()};
}

TEST(StorePages, AnUploadPublishesWholePagesOnlyAndStatesOfItsEnd) {
  for (const Valid<StoreLayout>* layout : {&by_group(), &by_head()})
    for (uint64_t pages = 1; pages <= 5; ++pages) {
      SCOPED_TRACE(fmt::format("{}, {} pages", (*layout)->name, pages));
      StoreStage stage;
      const UploadOutcome outcome = upload_pages_of(stage, "a", pages * kPageTokens, *layout);
      ASSERT_TRUE(outcome.committed) << outcome.cause.message();
      EXPECT_EQ(StoreInventory(stage.core()).stored, naive_pages(*layout, pages * kPageTokens));
    }
}

TEST(StorePages, KeysThatAreNotThoseOfTheTokensAreRefusedBeforeAnythingIsPut) {
  for (const uint64_t tokens : {uint64_t{7}, uint64_t{9}}) {
    StoreStage stage;
    const UploadOutcome outcome = upload_pages_of(stage, "a", tokens, by_group());
    EXPECT_EQ(outcome.cause.code(), Code::kInvalidArgument) << "a page is not full";
    EXPECT_EQ(outcome.operations, 0u);
    EXPECT_TRUE(StoreInventory(stage.core()).stored.empty());
  }
}

// Pages 0 and 1 from the first upload, page 2 and the state from the second, in another layout.
class StoredPages : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(upload_pages_of(stage_, "first", 8, by_group()).committed);
    ASSERT_TRUE(upload_pages_of(stage_, "second", 12, by_head()).committed);
  }
  PrefixMatch match(uint64_t pages) {
    return match_prefix(catalog_, keys_of(pages), StoreInventory(stage_.core())).value();
  }

  StoreStage stage_;
  LayoutCatalog catalog_ = registered_catalog(stage_);
};

TEST_F(StoredPages, APrefixIsRestoredFromPagesOfSeveralLayouts) {
  const PrefixMatch found = match(5);
  ASSERT_EQ(found.page_count, 3u) << found.stop->to_text();
  ASSERT_EQ(found.rows.size(), 2u + (found.rows.front().pages.size() == 1 ? 1u : 0u));
  EXPECT_EQ(found.rows.front().layout, digest(by_group()));
  EXPECT_EQ(found.rows.back().layout, digest(by_head()));
  EXPECT_EQ(found.state->layout, digest(by_head()));
  for (const PartitionSizes& to : {PartitionSizes{.pp = 3}, PartitionSizes{.tp = 4}, PartitionSizes{}}) {
    const PrefixRan ran = restore_prefix(stage_, found, catalog_, to);
    EXPECT_TRUE(ran.outcome.activated) << ran.outcome.cause.message();
    // 2 components x 4 heads x 2 bytes: 12 tokens of layer 0 and 6 of layer 1; a state of
    // 4 heads x 2 items x 4 bytes.
    EXPECT_EQ(ran.outcome.read.bytes, 16u * 18 + 32);
  }
  EXPECT_EQ(match(2).page_count, 0u) << "its window reaches into page 0, of which the first upload had but a part";
}

TEST_F(StoredPages, EachSingleDeviationOfAPrefixRestoreEndsRightOrInactive) {
  const PrefixMatch found = match(3);
  const size_t step_count = restore_prefix(stage_, found, catalog_, {.tp = 2}).step_count;
  for (size_t step = 0; step <= step_count; ++step)
    for (const Deviation what : {Deviation::kTakeOther, Deviation::kFail, Deviation::kFailLate, Deviation::kTimePasses,
                                 Deviation::kRefuse, Deviation::kNever}) {
      const ScheduledDeviation deviation{step, what, 1};
      SCOPED_TRACE(deviation.to_text());
      const PrefixRan ran = restore_prefix(stage_, found, catalog_, {.tp = 2}, {deviation});
      const bool may_end = what == Deviation::kTimePasses || what == Deviation::kNever;
      EXPECT_TRUE(ran.outcome.activated || may_end) << ran.outcome.cause.message();
    }
  stage_.pass(Duration::from_s(100'000));
  ASSERT_TRUE(stage_.core().gc().ok());
  EXPECT_EQ(stage_.core().stats().value().leases, 0u) << "I4";
}

TEST_F(StoredPages, EachSingleDeviationOfAPageUploadPublishesAllOfItOrNothing) {
  const std::set<PageObjectKey> before = StoreInventory(stage_.core()).stored;
  std::set<PageObjectKey> after = before;
  after.merge(naive_pages(by_group(), 16));
  for (size_t step = 0; step < 16; ++step)
    for (const Deviation what : {Deviation::kTakeOther, Deviation::kFail, Deviation::kFailLate, Deviation::kTimePasses,
                                 Deviation::kRefuse, Deviation::kNever}) {
      const ScheduledDeviation deviation{step, what, 1};
      SCOPED_TRACE(deviation.to_text());
      const std::string txn = fmt::format("txn-{}-{}", step, static_cast<int>(what));
      const UploadOutcome outcome = upload_pages_of(stage_, txn, 16, by_group(), {deviation});
      EXPECT_EQ(StoreInventory(stage_.core()).stored, outcome.committed ? after : before) << "I2";
      if (!outcome.committed) continue;
      ASSERT_TRUE(stage_.core().remove_publication(*outcome.sequence).ok());
      EXPECT_EQ(StoreInventory(stage_.core()).stored, before);
    }
  stage_.pass(Duration::from_s(100'000));
  ASSERT_TRUE(stage_.core().gc().ok());
  EXPECT_EQ(stage_.tables.all_chunks().segments().value().size(), 2u) << "I4";
}

TEST_F(StoredPages, APageThatIsGoneSinceTheMatchIsNamedAndNothingIsReserved) {
  const PrefixMatch found = match(3);
  ASSERT_TRUE(stage_.core().remove_publication(2).ok());
  const PrefixRan ran = restore_prefix(stage_, found, catalog_, {.tp = 2});
  EXPECT_FALSE(ran.outcome.activated);
  EXPECT_EQ(ran.outcome.cause.code(), Code::kNotFound);
  EXPECT_NE(ran.outcome.cause.message().find("is not stored any more"), std::string::npos)
      << ran.outcome.cause.message();
  EXPECT_TRUE(ran.outcome.released);
  EXPECT_EQ(match(3).page_count, 0u);
  EXPECT_EQ(StoreInventory(stage_.core()).stored, naive_pages(by_group(), 8)) << "what is left of it";
}

}  // namespace
}  // namespace crossdock::testing
