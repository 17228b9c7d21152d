// The rules of a runtime binding that need other documents: the placement it binds, the snapshot, and the other
// bindings of the same runtime instance.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/kv/binding.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"

namespace crossdock {

// How messages name a binding: "binding 'move-17' of 'p0-t0'".
std::string binding_label(const RuntimeBinding& binding);

// A placement, and the snapshot where there is one, with their identities computed once for many bindings.
// The documents outlive the context.
class BindingContext {
 public:
  explicit BindingContext(const Valid<PlacementManifest>& placement,
                          const Valid<SnapshotDescriptor>* snapshot = nullptr);

  // The same placement with another snapshot; only the snapshot's identity is computed.
  BindingContext with_snapshot(const Valid<SnapshotDescriptor>& snapshot) const;
  BindingContext without_snapshot() const;

  const PlacementManifest& placement() const { return **placement_; }
  const SnapshotDescriptor* snapshot() const { return snapshot_ == nullptr ? nullptr : &**snapshot_; }
  const Sha256Digest& placement_digest() const { return placement_digest_; }
  const Sha256Digest& cache_schema_digest() const { return cache_schema_digest_; }
  const std::optional<Sha256Digest>& snapshot_digest() const { return snapshot_digest_; }

 private:
  const Valid<PlacementManifest>* placement_;
  const Valid<SnapshotDescriptor>* snapshot_;
  Sha256Digest placement_digest_;
  Sha256Digest cache_schema_digest_;
  std::optional<Sha256Digest> snapshot_digest_;
};

// The identity of a placement's cache schema as a document of its own.
Sha256Digest cache_schema_digest(const Valid<PlacementManifest>& placement);

// Only that the binding is about this placement, snapshot and one of its participants.
void check_binding_identity(const RuntimeBinding& binding, const BindingContext& context, Diagnostics& diagnostics);

// Identity, and that the views hold exactly what the participant owns of the snapshot's live tokens.
void check_binding(const Valid<RuntimeBinding>& binding, const BindingContext& context, Diagnostics& diagnostics);
void check_binding(const Valid<RuntimeBinding>& binding, const Valid<PlacementManifest>& placement,
                   const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics);

struct BoundParticipant {
  const Valid<RuntimeBinding>* binding;
  const BindingContext* context;
  std::string name = {};  // in messages; empty: the operation and participant of the binding
};

// Bindings that passed check_binding, together: one instance has one endpoint and one generation, its bindings describe
// each device and region alike, no two of its regions share addresses, and no two views in it share a byte.
void check_instances(std::span<const BoundParticipant> bound, Diagnostics& diagnostics);

}  // namespace crossdock
