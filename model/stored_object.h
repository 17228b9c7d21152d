// What a store keeps of any resource: objects with checksums, and the envelope of a manifest, which names them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/content_id.h"
#include "model/ids.h"

namespace crossdock {

struct StoredObject {
  RegionId id;
  uint64_t bytes = 0;
  uint64_t chunk_bytes = 0;            // every chunk but the last has this length
  std::vector<uint32_t> chunk_crc32c;  // of the bytes as stored, one per chunk

  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

// The half of a manifest that says nothing of what the bytes mean. Lease and time to live belong to its publication.
struct ManifestEnvelope {
  ContentId content;
  ObjectDataType type = ObjectDataType::kKvCache;
  std::string tenant;                 // whose quota it counts against
  std::vector<StoredObject> objects;  // sorted by id

  friend bool operator==(const ManifestEnvelope&, const ManifestEnvelope&) = default;
};

}  // namespace crossdock
