#include "tests/conformance/object_store_conformance.h"

#include <algorithm>
#include <utility>

#include "model/wire/documents.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

Valid<CacheSchema> one_byte_schema() {
  const Component component{ComponentName("key"), "uint8", "plain", 1, 1, 1, 1};
  return valid_or_die(CacheSchema{{LayerGroup{IntervalSet{Range(0, 1)}, LiveTokens::all(), {component}}}});
}

}  // namespace

TxnState ObjectStoreConformance::begin(const std::string& txn, std::optional<SnapshotId> snapshot,
                                       const std::string& tenant) {
  return result_of<TxnState>(user_->run(BeginPost{TxnId(txn), UploadTarget{tenant, snapshot, Duration::from_s(60)}}));
}

PutStep ObjectStoreConformance::whole(const std::string& object, const Bytes& bytes) {
  PutStep step;
  step.object = RegionId(object);
  step.object_bytes = step.payload_bytes = bytes.size();
  step.writer = "writer";
  if (bytes.empty()) return step;
  Region& source = region("put" + std::to_string(region_count_++), bytes.size());
  std::ranges::copy(bytes, source.bytes().begin());
  step.steps = steps_between({source.key}, {}, {plain_step(0, 0, bytes.size())});
  return step;
}

StoredObject ObjectStoreConformance::put(const std::string& txn, const std::string& object, const Bytes& bytes) {
  const auto receipt = result_of<PutReceipt>(user_->run(PutPost{TxnId(txn), whole(object, bytes)}));
  EXPECT_EQ(receipt.txn, TxnId(txn));
  EXPECT_EQ(receipt.object, RegionId(object));
  EXPECT_EQ(receipt.writer, "writer");
  EXPECT_EQ(receipt.bytes, bytes.size());
  EXPECT_EQ(receipt.stored, stored(object, bytes));
  return receipt.stored.value_or(StoredObject());
}

StoredObject ObjectStoreConformance::stored(const std::string& object, const Bytes& bytes) const {
  StoredObject expected{RegionId(object), bytes.size(), chunk_bytes_, {}};
  for (uint64_t begin = 0; begin < bytes.size(); begin += chunk_bytes_)
    expected.chunk_crc32c.push_back(
        naive_crc32c(std::span(bytes).subspan(begin, std::min<uint64_t>(chunk_bytes_, bytes.size() - begin))));
  return expected;
}

PageObjectKey ObjectStoreConformance::page_key(const std::string& object) {
  return PageObjectKey{PageKey(sha256(object)), sha256("layout"), ObjectKey("part"), PageObject::kRows};
}

Publication ObjectStoreConformance::pages_of(const std::vector<StoredObject>& objects) {
  std::vector<PageEntry> entries;
  for (const StoredObject& object : objects) entries.push_back(PageEntry{page_key(object.id.text()), object});
  return Publication{std::move(entries), std::nullopt};
}

TxnState ObjectStoreConformance::publish(const std::string& txn, const std::map<std::string, Bytes>& objects) {
  begin(txn);
  std::vector<StoredObject> all;
  for (const auto& [object, bytes] : objects) all.push_back(put(txn, object, bytes));
  return result_of<TxnState>(user_->run(CommitPost{TxnId(txn), pages_of(all)}));
}

Valid<SnapshotDescriptor> ObjectStoreConformance::snapshot(const std::string& resource) {
  return snapshot_of(one_byte_schema(), Range(0, 1), resource);
}

SnapshotId ObjectStoreConformance::snapshot_id(const std::string& resource) { return digest(snapshot(resource)); }

Publication ObjectStoreConformance::manifest_of(const std::string& resource, std::vector<StoredObject> objects) {
  View view;
  view.component = ComponentName("key");
  view.layers = view.tokens = view.heads = view.dims = Range(0, 1);
  view.region = objects.at(0).id;
  view.strides = {.layer = 1, .row = 1, .head = 1, .dim = 1};
  StoreManifest manifest{*snapshot(resource), *one_byte_schema(), std::move(objects), {}, {view}};
  return Publication{std::make_shared<const Valid<StoreManifest>>(valid_or_die(std::move(manifest))), std::nullopt};
}

TxnState ObjectStoreConformance::publish_snapshot(const std::string& resource,
                                                  const std::map<std::string, Bytes>& objects) {
  begin(resource, snapshot_id(resource));
  std::vector<StoredObject> all;
  for (const auto& [object, bytes] : objects) all.push_back(put(resource, object, bytes));
  return result_of<TxnState>(user_->run(CommitPost{TxnId(resource), manifest_of(resource, std::move(all))}));
}

LookupPost ObjectStoreConformance::look_up(const std::string& resource, Duration lease) {
  return LookupPost{Lookup{snapshot_id(resource), LeaseRequest{"reader", lease}}};
}

LookupPost ObjectStoreConformance::look_up_pages(const std::vector<std::string>& objects, Duration lease) {
  std::vector<PageObjectKey> keys;
  for (const std::string& object : objects) keys.push_back(page_key(object));
  return LookupPost{Lookup{std::move(keys), LeaseRequest{"reader", lease}}};
}

ObjectStoreConformance::Got ObjectStoreConformance::get(LeaseId lease, const FoundObject& object) {
  GetStep step{lease, std::make_shared<const FoundObject>(object), Range::all(), StepSpan()};
  Region& target = region("get" + std::to_string(region_count_++), object.object.bytes);
  if (object.object.bytes > 0) step.steps = steps_between({}, {target.key}, {plain_step(0, 0, object.object.bytes)});
  step.grant = grant(targets_of(step.steps))->id;
  const Completion completion = user_->run(GetPost{step});
  Got got{completion.status, {}, target.copy()};
  if (const auto* report = std::get_if<GetReport>(&completion.result)) got.report = *report;
  expect_guards();
  return got;
}

void ObjectStoreConformance::expect_bytes(const Found& found, const std::vector<Bytes>& expected) {
  ASSERT_EQ(found.objects.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Got got = get(found.lease, found.objects[i]);
    EXPECT_EQ(got.status, Status()) << "object " << i;
    EXPECT_EQ(got.bytes, expected[i]) << "object " << i;
    EXPECT_EQ(got.report.bytes, expected[i].size());
  }
}

}  // namespace crossdock::testing
