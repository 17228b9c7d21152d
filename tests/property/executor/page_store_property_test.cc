// What the planners of pages promise, for the schema of every model config here: the pages of a prompt that were put
// are found again by a longer prompt that begins alike, and can be restored into another layout. No bytes move here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "executor/kv/kv_store.h"
#include "model/hf/config.h"
#include "model/kv/partition.h"
#include "model/kv/pool_binding.h"
#include "model/wire/documents.h"
#include "tests/support/example_documents.h"
#include "tests/support/paths.h"

namespace crossdock {
namespace {

using testing::diagnostic_lines;

std::vector<std::string> config_paths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("examples/models")))
    if (entry.is_directory()) paths.push_back((entry.path() / "config.json").string());
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/golden/configs")))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

using Placement = std::shared_ptr<const Valid<PlacementManifest>>;

// Tensor-parallel ranks where the heads divide, else one.
Placement place(const Valid<CacheSchema>& schema, uint64_t layer_count, uint64_t tp, uint64_t pp) {
  for (const uint64_t size : {tp, uint64_t{1}}) {
    PartitionRequest request;
    request.name = fmt::format("tp{}pp{}", size, pp);
    request.resource = ResourceId("kv:cache");
    request.revision = RevisionId("1");
    request.tp = size;
    request.pp = pp;
    request.layer_count = layer_count;
    Diagnostics diagnostics;
    if (auto made = partition(schema, request, diagnostics))
      return std::make_shared<const Valid<PlacementManifest>>(std::move(*made));
  }
  return nullptr;
}

std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot_of(const Valid<CacheSchema>& schema, uint64_t tokens) {
  SnapshotDescriptor descriptor;
  descriptor.tenant = "t";
  descriptor.resource = ResourceId("kv:cache");
  descriptor.model_id = "m";
  descriptor.model_revision = "1";
  descriptor.semantic_fingerprint = "f";
  descriptor.token_fingerprint = "x";
  descriptor.cache_schema_digest = digest(schema);
  descriptor.tokens = Range(0, tokens);
  Diagnostics diagnostics;
  auto valid = Valid<SnapshotDescriptor>::make(std::move(descriptor), diagnostics);
  EXPECT_TRUE(valid.has_value()) << diagnostic_lines(diagnostics);
  return std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*valid));
}

std::vector<AnyBinding> bindings_of(const Placement& placement, const Valid<SnapshotDescriptor>& snapshot,
                                    uint64_t page_tokens, bool whole_pages, const std::string& prefix) {
  std::vector<AnyBinding> bindings;
  PoolRequest request;
  request.operation = OperationId("op");
  request.page_tokens = page_tokens;
  request.whole_pages = whole_pages;
  request.instance_prefix = prefix;
  for (const Part& part : (*placement)->parts) {
    Diagnostics diagnostics;
    auto binding = pool_binding(*placement, digest(*placement), part.participant, snapshot->tokens, digest(snapshot),
                                request, diagnostics);
    EXPECT_TRUE(binding.has_value()) << diagnostic_lines(diagnostics);
    if (!binding) return {};
    bindings.emplace_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*binding)));
  }
  return bindings;
}

class StoredPages : public PageInventory {
 public:
  bool has(const PageKey& page, const Sha256Digest& layout, const ObjectKey& part, PageObject object) const override {
    return entries.contains(PageObjectKey{page, layout, part, object});
  }
  std::map<PageObjectKey, StoredObject> entries;
};

// Lengths around each window and chunk of the schema, and a short one.
std::vector<uint64_t> lengths_of(const CacheSchema& schema, uint64_t page_tokens, Rng& rng) {
  std::set<uint64_t> lengths = {3 * page_tokens + rng.below(page_tokens)};
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components) {
      const LiveTokens& live = group.live_of(component.name);
      if (component.is_state() || live.kind == LiveTokens::Kind::kAll || live.tokens > 9000) continue;
      lengths.insert(live.tokens + page_tokens + rng.below(2 * page_tokens));
    }
  return {lengths.begin(), lengths.end()};
}

void expect_found_again(const HfModel& model, uint64_t length, uint64_t page_tokens, bool whole_pages, Rng& rng) {
  const Valid<CacheSchema>& schema = model.cache_schema;
  const uint64_t pages = length / page_tokens;
  const uint64_t pp = model.layer_count > 1 ? 1 + rng.below(2) : 1;
  const Placement source = place(schema, model.layer_count, uint64_t{1} << rng.below(3), pp);
  const Placement target = place(schema, model.layer_count, uint64_t{1} << rng.below(3), 3 - pp);
  ASSERT_TRUE(source != nullptr && target != nullptr);
  const auto snapshot = snapshot_of(schema, pages * page_tokens);
  Diagnostics diagnostics("layout");
  std::optional<Valid<StoreLayout>> layout =
      layout_of(*source, std::nullopt, ObjectOrder::kPlhd, page_tokens, "pages", diagnostics);
  ASSERT_TRUE(layout.has_value()) << diagnostic_lines(diagnostics);
  const PageDomain domain = make_page_domain(*snapshot, page_tokens).value();
  std::vector<uint32_t> tokens(length + 5 * page_tokens);
  for (uint32_t& token : tokens) token = static_cast<uint32_t>(rng.below(50'000));
  const std::vector<PageKey> all_keys = page_keys(domain, tokens);

  KvUpload upload;
  upload.documents = {source, snapshot, std::make_shared<const Valid<StoreLayout>>(*layout)};
  upload.page_keys = std::vector<PageKey>(all_keys.begin(), all_keys.begin() + static_cast<ptrdiff_t>(pages));
  const KvUploadPlanner uploads(upload);
  const auto job = uploads.make_job("put", bindings_of(source, *snapshot, page_tokens, whole_pages, "a"));
  ASSERT_TRUE(job.ok()) << job.status().message();
  std::map<RegionId, StoredObject> stored;
  for (const UploadObject& object : job.value()->objects)
    stored[object.id] = StoredObject{object.id, object.bytes, object.bytes, {0}};
  const auto content = uploads.publication("put", *job.value(), stored);
  ASSERT_TRUE(content.ok()) << content.status().message();
  StoredPages store;
  for (const PageEntry& entry : std::get<std::vector<PageEntry>>(content.value()))
    store.entries.emplace(entry.key, entry.object);

  const Result<LayoutCatalog> catalog = LayoutCatalog(domain).with_layout(*layout, 0);
  ASSERT_TRUE(catalog.ok());
  const Result<PrefixMatch> match = match_prefix(catalog.value(), all_keys, store, PrefixLimits());
  ASSERT_TRUE(match.ok()) << match.status().message();
  ASSERT_EQ(match.value().token_count, pages * page_tokens)
      << (match.value().stop ? match.value().stop->to_text() : "");

  KvRestore restore;
  restore.target = target;
  restore.what =
      std::make_shared<const PrefixRestore>(PrefixRestore{catalog.value(), match.value(), all_keys, *snapshot});
  const KvRestorePlanner restores(restore);
  Found found;
  for (const PageObjectKey& key : prefix_objects(match.value(), all_keys)) {
    ASSERT_TRUE(store.entries.contains(key)) << key.to_text();
    found.pages.push_back(key);
    found.objects.push_back(FoundObject{store.entries.at(key), ObjectNumber(found.objects.size())});
  }
  const Result<Found> complete = restores.complete(std::move(found));
  ASSERT_TRUE(complete.ok()) << complete.status().message();
  const auto gets = restores.make_job("get", complete.value(), bindings_of(target, *snapshot, page_tokens, false, "b"));
  ASSERT_TRUE(gets.ok()) << gets.status().message();
}

// Case V01 of the field, for every model: window and full layers in one stored part lost the pages of both.
TEST(PageStoreProperty, V01WhatWasPutOfAnyModelIsFoundAndRestored) {
  uint64_t number = 0;
  for (const std::string& path : config_paths()) {
    SCOPED_TRACE(path);
    Result<std::string> text = read_file(path, 1 << 20);
    ASSERT_TRUE(text.ok());
    Diagnostics diagnostics("config");
    const auto model = read_hf_config(text.value(), {}, JsonLimits(), diagnostics);
    ASSERT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
    uint64_t page_tokens = 64;
    for (const LayerGroup& group : model->cache_schema->groups)
      for (const Component& component : group.components)
        page_tokens = std::max(page_tokens, component.tokens_per_row.value_or(1));
    Rng rng(++number);
    for (const uint64_t length : lengths_of(*model->cache_schema, page_tokens, rng)) {
      SCOPED_TRACE(fmt::format("{} tokens, seed {}", length, number));
      expect_found_again(*model, length, page_tokens, true, rng);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace crossdock
