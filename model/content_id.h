// What stored content is, and how it is named: for all that a store keeps, whatever its resource.
#pragma once

#include <array>
#include <string_view>

#include "base/sha256.h"

namespace crossdock {

enum class ObjectDataType {
  kKvCache,   // may be evicted: a missing page is a cache miss
  kWeight,    // may not: a missing shard is a model that cannot be served
  kMetadata,  // documents that say how the others are used
};

struct ObjectDataTypeName {
  std::string_view name;
  ObjectDataType type;
};

inline constexpr std::array<ObjectDataTypeName, 3> kObjectDataTypes = {{{"KVCACHE", ObjectDataType::kKvCache},
                                                                        {"WEIGHT", ObjectDataType::kWeight},
                                                                        {"METADATA", ObjectDataType::kMetadata}}};

constexpr std::string_view object_data_type_name(ObjectDataType type) {
  return kObjectDataTypes[static_cast<size_t>(type)].name;
}

// The identity of content: the digest of the document that describes it, so that equal content has one name. The digest
// of a snapshot descriptor (SnapshotId, model/kv/snapshot.h) is one kind.
using ContentId = Sha256Digest;

}  // namespace crossdock
