// A placement with a snapshot of it, of which pools are bound.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "model/kv/binding_rules.h"
#include "model/kv/pool_binding.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {

// A placement with a snapshot of it.
struct PoolSubject {
  PoolSubject(PlacementManifest manifest, Range tokens)
      : placement(valid_or_die(std::move(manifest))),
        snapshot(snapshot_of(placement, tokens)),
        context(placement, &snapshot) {}
  PoolSubject(const PoolSubject&) = delete;
  PoolSubject& operator=(const PoolSubject&) = delete;

  static Valid<SnapshotDescriptor> snapshot_of(const Valid<PlacementManifest>& placement, Range tokens) {
    SnapshotDescriptor snapshot = *example_snapshot();
    snapshot.resource = placement->resource;
    snapshot.cache_schema_digest = cache_schema_digest(placement);
    snapshot.tokens = tokens;
    return valid_or_die(snapshot);
  }

  std::optional<Valid<RuntimeBinding>> bind(const char* participant, const PoolRequest& request,
                                            Diagnostics& diagnostics) const {
    return pool_binding(placement, context.placement_digest(), ParticipantId(participant), snapshot->tokens,
                        *context.snapshot_digest(), request, diagnostics);
  }

  // The binding, which has to be made and to be right.
  RuntimeBinding bind(const char* participant, const PoolRequest& request) const {
    Diagnostics diagnostics;
    const auto binding = bind(participant, request, diagnostics);
    EXPECT_TRUE(binding) << diagnostic_lines(diagnostics);
    if (!binding) return RuntimeBinding();
    check_binding(*binding, context, diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostic_lines(diagnostics);
    return **binding;
  }

  std::string refusal(const char* participant, const PoolRequest& request) const {
    Diagnostics diagnostics;
    EXPECT_FALSE(bind(participant, request, diagnostics));
    return diagnostic_lines(diagnostics);
  }

  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  BindingContext context;
};

PoolRequest pages_of(uint64_t page_tokens);

}  // namespace crossdock::testing
