#include "tests/crash/content.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rng.h"
#include "base/sha256.h"
#include "model/wire/documents.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

uint64_t hash(uint64_t seed, const std::string& name) {
  for (const char letter : name) {
    seed ^= static_cast<uint8_t>(letter);
    seed = splitmix64(seed);
  }
  return seed;
}

Valid<CacheSchema> one_byte_schema() {
  const Component component{ComponentName("key"), "uint8", "plain", 1, 1, 1, 1};
  return valid_or_die(CacheSchema{{LayerGroup{IntervalSet{Range(0, 1)}, LiveTokens::all(), {component}}}});
}

}  // namespace

std::string snapshot_name(uint32_t thread, uint32_t number) { return fmt::format("snapshot-{}-{}", thread, number); }
std::string tenant_of(uint32_t thread) { return fmt::format("thread-{}", thread); }

std::vector<ObjectPlan> snapshot_objects(uint64_t seed, const std::string& name) {
  Rng rng(hash(seed, name));
  std::vector<ObjectPlan> objects;
  objects.push_back({name + "/a", 0, Range(), 1});
  objects.push_back({name + "/b", 1 + rng.below(20'000), Range(), 1});
  objects.push_back({name + "/c", 3'000 + rng.below(16'000), Range(5, 5 + rng.below(1'000)), 2 + rng.below(2)});
  // Some chunks of this one are not stored, because they are zero.
  const uint64_t hole = 1 + rng.below(8'000);
  objects.push_back({name + "/d", 30'000 + rng.below(10'000), Range(hole, hole + 9'000 + rng.below(9'000)), 1});
  return objects;
}

ObjectPlan page_object(uint64_t seed, uint64_t page) {
  Rng rng(hash(seed, "page") + page);
  const uint64_t bytes = 1 + rng.below(9'000);
  return {fmt::format("page-{}", page), bytes, Range(), bytes <= 1'000 ? 1 : 1 + rng.below(2)};
}

Content content_of(uint64_t seed, const ObjectPlan& object) {
  Rng rng(hash(seed, object.id));
  Content bytes(object.bytes);
  for (uint64_t i = 0; i < object.bytes; ++i) {
    const auto byte = static_cast<std::byte>(1 + rng.below(255));
    if (!object.hole.contains(i)) bytes[i] = byte;
  }
  return bytes;
}

std::string digest_of(uint64_t seed, const std::vector<ObjectPlan>& objects) {
  Sha256 sum;
  for (const ObjectPlan& object : objects) sum.update(content_of(seed, object));
  return sum.finish().hex();
}

SnapshotId snapshot_id(const std::string& name) { return digest(snapshot_of(one_byte_schema(), Range(0, 1), name)); }

std::shared_ptr<const Valid<StoreManifest>> manifest_of(const std::string& name, std::vector<StoredObject> objects) {
  const auto not_empty =
      std::find_if(objects.begin(), objects.end(), [](const StoredObject& each) { return each.bytes > 0; });
  View view;
  view.component = ComponentName("key");
  view.layers = view.tokens = view.heads = view.dims = Range(0, 1);
  view.region = not_empty->id;
  view.strides = {.layer = 1, .row = 1, .head = 1, .dim = 1};
  const Valid<CacheSchema> schema = one_byte_schema();
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, 1), name);
  StoreManifest manifest{*snapshot, *schema, std::move(objects), {}, {view}};
  return std::make_shared<const Valid<StoreManifest>>(valid_or_die(std::move(manifest)));
}

PageObjectKey page_object_key(uint64_t page) {
  return PageObjectKey{PageKey(sha256(fmt::format("page {}", page))), sha256("layout"), ObjectKey("part"),
                       PageObject::kRows};
}

}  // namespace crossdock::testing
