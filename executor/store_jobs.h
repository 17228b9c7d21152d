// What an upload puts, and what a restore gets: plans against a store, lowered and cut into operations. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/copy_work.h"
#include "executor/ports.h"
#include "executor/store_types.h"
#include "executor/transfer_job.h"
#include "model/diagnostics.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/store_geometry.h"

namespace crossdock {

struct UploadDocuments {
  std::shared_ptr<const Valid<PlacementManifest>> source;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  std::shared_ptr<const Valid<StoreLayout>> layout;
};

enum class UploadKind {
  kSnapshot,
  // Only objects whose every row is live: whoever finds a page object takes it for the whole page, whatever prefix it
  // restores. A window that has left a page behind leaves its parts of that page unpublished.
  kPages,
};

struct UploadJob {
  UploadDocuments documents;
  std::shared_ptr<const Valid<TransferPlan>> plan;
  SnapshotObjects objects;
  std::vector<PutStep> puts;  // sorted by object, then by writer: objects are completed one after another
  StepCounts counts;
};

// Plans, proves, binds and lowers; one put for each object and each source that has bytes of it. Null, and diagnostics
// are added, when documents or bindings do not fit together.
std::shared_ptr<const UploadJob> make_upload_job(const UploadDocuments& documents,
                                                 const std::vector<BindingPointer>& bindings,
                                                 const PlanOptions& options, const LowerLimits& limits, UploadKind kind,
                                                 Diagnostics& diagnostics);

// What the store has to publish: the objects with their checksums as stored. `stored` has each of the job's objects.
std::optional<Valid<StoreManifest>> upload_manifest(const UploadJob& job,
                                                    const std::map<RegionId, StoredObject>& stored,
                                                    Diagnostics& diagnostics);

// The same as page objects. `keys` are those of the pages of the snapshot's tokens, which begin at token 0. Row objects
// of full pages only; the states belong to the last page, and only when the snapshot ends with it.
std::vector<PageEntry> upload_pages(const UploadJob& job, std::span<const PageKey> keys,
                                    const std::map<RegionId, StoredObject>& stored);

// The objects that a matched prefix is restored from, in the order in which a look-up should ask for them.
std::vector<PageObjectKey> prefix_objects(const PrefixMatch& match, std::span<const PageKey> keys);

// The manifest of a prefix of pages: `found` answers prefix_objects(). Its objects have names of their own, in the
// order of `found`; `snapshot` is of the prefix's tokens. kNotFound, naming the first, when one is missing.
Result<std::shared_ptr<const Valid<StoreManifest>>> prefix_manifest(const LayoutCatalog& catalog,
                                                                    const PrefixMatch& match,
                                                                    std::span<const PageKey> keys,
                                                                    const Valid<SnapshotDescriptor>& snapshot,
                                                                    Found& found);

struct RestoreJob {
  std::shared_ptr<const Valid<TransferPlan>> plan;
  std::vector<GetStep> gets;  // without the lease
  std::vector<uint64_t> get_bytes;
  uint64_t bytes = 0;  // that the targets need
  uint64_t object_count = 0;
  StepCounts counts;
};

struct RestoreLimits {
  uint64_t get_bytes_max = uint64_t{4} << 20;  // of an object that one operation reads, in whole chunks
};

// From what a store has found to the targets whose bindings these are. Each chunk of each object belongs to one get, so
// it is read at most once. Null, and diagnostics are added, when things do not fit together.
std::shared_ptr<const RestoreJob> make_restore_job(const Found& found,
                                                   const std::shared_ptr<const Valid<PlacementManifest>>& target,
                                                   const std::vector<BindingPointer>& bindings,
                                                   const PlanOptions& options, const LowerLimits& limits,
                                                   const RestoreLimits& restore, Diagnostics& diagnostics);

}  // namespace crossdock
