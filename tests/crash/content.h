// What the crash tests store: names, and bytes that are functions of a seed and a name, so that no copy is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/store_types.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "model/wire/documents.h"

namespace crossdock::testing {

using Content = std::vector<std::byte>;

// Each thread of a workload has names of its own, so what happened to a name happened in the order of one thread.
inline constexpr uint32_t kThreadsMax = 4;
inline constexpr uint32_t kSnapshotsPerThread = 4;
inline constexpr uint32_t kPagesPerThread = 6;

std::string snapshot_name(uint32_t thread, uint32_t number);
inline uint64_t page_number(uint32_t thread, uint32_t number) { return uint64_t{thread} * kPagesPerThread + number; }
std::string tenant_of(uint32_t thread);

struct ObjectPlan {
  std::string id;
  uint64_t bytes = 0;
  Range hole;                 // is not written, so its bytes are zero
  uint64_t writer_count = 1;  // each has every writer_count-th run of bytes
};

// In the order in which they are put. The first has no bytes; it is never alone in a segment, because others follow.
std::vector<ObjectPlan> snapshot_objects(uint64_t seed, const std::string& name);
ObjectPlan page_object(uint64_t seed, uint64_t page);
// Bytes outside of the hole are not zero.
Content content_of(uint64_t seed, const ObjectPlan& object);
// In hexadecimal, of all bytes of some objects.
std::string digest_of(uint64_t seed, const std::vector<ObjectPlan>& objects);

SnapshotId snapshot_id(const std::string& name);
// A manifest with these objects; its one view is of the first byte of one of them.
std::shared_ptr<const Valid<StoreManifest>> manifest_of(const std::string& name, std::vector<StoredObject> objects);
PageObjectKey page_object_key(uint64_t page);

}  // namespace crossdock::testing
