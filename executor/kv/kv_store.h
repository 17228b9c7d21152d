// KV cache into a store and out of it: the planners that uploads and restores are given.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "executor/planners.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "planner/kv/store_geometry.h"

namespace crossdock {

// What an upload is about. No pointer is null.
struct UploadDocuments {
  std::shared_ptr<const Valid<PlacementManifest>> source;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  std::shared_ptr<const Valid<StoreLayout>> layout;
};

struct KvUpload {
  UploadDocuments documents;
  // Empty: the snapshot is published. Otherwise pages: these are the keys of all of the snapshot's full pages, which
  // begin at token 0. Only objects whose every row is live are put: a reader takes a page object for the whole page,
  // whatever prefix it restores. A window that has left a page behind leaves its parts of that page unpublished. The
  // states belong to the last page.
  std::optional<std::vector<PageKey>> page_keys;
  PlanOptions plan;
  LowerLimits lower;
};

// make_job() fails with kInvalidArgument when bindings, documents or keys do not fit together; it says which rule.
class KvUploadPlanner : public UploadPlanner {
 public:
  explicit KvUploadPlanner(KvUpload upload) : upload_(std::move(upload)) {}

  std::optional<ContentId> content() const override;
  Result<std::shared_ptr<const UploadJob>> make_job(const std::string& name,
                                                    std::span<const AnyBinding> sources) const override;
  Result<PublishedContent> publication(const std::string& name, const UploadJob& job,
                                       const std::map<RegionId, StoredObject>& stored) const override;

  const KvUpload& upload() const { return upload_; }

 private:
  KvUpload upload_;
};

// A prefix of pages that was matched before.
struct PrefixRestore {
  LayoutCatalog catalog;
  PrefixMatch match;
  std::vector<PageKey> keys;
  Valid<SnapshotDescriptor> snapshot;  // of the prefix's tokens
};

struct KvRestore {
  std::shared_ptr<const Valid<PlacementManifest>> target;
  std::variant<SnapshotId, std::shared_ptr<const PrefixRestore>> what;  // a snapshot, or a prefix of pages
  PlanOptions plan;  // without targets: those whose bindings are given
  LowerLimits lower;
  RestoreLimits limits;
};

// make_job() fails when what was found is no KV cache, or does not fit the target; it says which rule.
class KvRestorePlanner : public RestorePlanner {
 public:
  explicit KvRestorePlanner(KvRestore restore) : restore_(std::move(restore)) {}

  LookupKey key() const override;
  Result<Found> complete(Found found) const override;
  Result<std::shared_ptr<const RestoreJob>> make_job(const std::string& name, const Found& found,
                                                     std::span<const AnyBinding> targets) const override;

  const KvRestore& restore() const { return restore_; }

 private:
  KvRestore restore_;
};

// The objects that a matched prefix is restored from, in the order in which a look-up should ask for them.
std::vector<PageObjectKey> prefix_objects(const PrefixMatch& match, std::span<const PageKey> keys);

// The manifest of a prefix of pages: `found` answers prefix_objects(). Its objects have names of their own, in the
// order of `found`; `snapshot` is of the prefix's tokens. kNotFound, naming the first, when one is missing.
Result<std::shared_ptr<const Valid<StoreManifest>>> prefix_manifest(const LayoutCatalog& catalog,
                                                                    const PrefixMatch& match,
                                                                    std::span<const PageKey> keys,
                                                                    const Valid<SnapshotDescriptor>& snapshot,
                                                                    Found& found);

}  // namespace crossdock
