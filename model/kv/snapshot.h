// Snapshot descriptor: what the bytes of a KV cache mean. Two snapshots are the same content exactly when their digests
// are equal, so what does not change content (pool sizes, host names) is not a part of it.
// Wire form: docs/formats/snapshot.md.
#pragma once

#include <optional>
#include <string>

#include "base/range.h"
#include "base/sha256.h"
#include "model/content_id.h"
#include "model/diagnostics.h"
#include "model/ids.h"

namespace crossdock {

// A fine-tuned variant of the model, for example a LoRA. Its name alone is not its identity.
struct Adapter {
  std::string id;
  std::string revision;

  friend bool operator==(const Adapter&, const Adapter&) = default;
};

// The identity of a snapshot: the digest of its descriptor.
using SnapshotId = ContentId;

struct SnapshotDescriptor {
  std::string tenant;  // the namespace; equal tokens of two tenants are two snapshots
  ResourceId resource;
  std::string model_id;
  std::string model_revision;
  std::optional<Adapter> adapter;
  std::string salt;  // may be empty: separates caches on purpose
  std::string
      semantic_fingerprint;  // all else that changes the values: position encoding, kernels, quantisation recipe
  Sha256Digest cache_schema_digest;
  Range tokens;                   // the interval of token positions that the snapshot holds
  std::string token_fingerprint;  // of all tokens up to tokens.end()

  friend bool operator==(const SnapshotDescriptor&, const SnapshotDescriptor&) = default;
};

// See model/valid.h.
void canonicalize(SnapshotDescriptor& snapshot);
void validate(const SnapshotDescriptor& snapshot, Diagnostics& diagnostics);

}  // namespace crossdock
