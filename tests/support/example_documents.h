// One small example of each document: for docs/formats/, for tests that break one rule at a time, and as fuzz seeds.
#pragma once

#include <string>
#include <vector>

#include "model/wire/documents.h"

namespace crossdock::testing {

// Four layers: 0-1 keep fp8 keys and values with scales, 2 keeps the last 6 tokens, 3 keeps a state.
Valid<CacheSchema> example_cache_schema();
Valid<Topology> example_topology();                     // pp 2 x tp 2
Valid<PlacementManifest> example_placement();           // 'decode': the schema over the topology
Valid<SnapshotDescriptor> example_snapshot();           // tokens [0,10)
Valid<RuntimeBinding> example_binding();                // of p0-t0: two pages of a packed pool
Valid<RuntimeBinding> example_binding_without_pages();  // of p1-t1: a window and a padded state
Valid<StoreLayout> example_store_layout();
Valid<StoreManifest> example_store_manifest();

struct ExampleDocument {
  std::string title;
  AnyDocument document;
};

// All of them, in the order of the index in docs/formats/README.md.
std::vector<ExampleDocument> example_documents();

// The value inside, or a test failure that shows the diagnostics.
template <class Document>
Valid<Document> valid_or_die(Document document);

struct PartitionSizes {
  uint64_t dp = 1;
  uint64_t pp = 1;
  uint64_t tp = 1;
  uint64_t cp = 1;
  uint64_t cp_block_tokens = 1;
  std::vector<uint64_t> layers_per_stage = {};
};

// The schema over parallel sizes by model/kv/partition.h, revision 1.
Valid<PlacementManifest> placed(const Valid<CacheSchema>& schema, const PartitionSizes& sizes,
                                const std::string& name = "p", const std::string& resource = "r");

// example_snapshot(), but of other tokens, another schema and another resource.
Valid<SnapshotDescriptor> snapshot_of(const Valid<CacheSchema>& schema, Range tokens,
                                      const std::string& resource = "r");

// The diagnostics kept, a line each.
std::string diagnostic_lines(const Diagnostics& diagnostics);

}  // namespace crossdock::testing
