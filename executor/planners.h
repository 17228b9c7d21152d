// What a protocol asks of the resource that it moves: three small planners. Protocols know regions, objects and copies;
// a planner of the resource (executor/kv/) knows what the bytes mean. Planners are pure and never change, so protocols
// of several threads may share one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "executor/store_jobs.h"
#include "executor/store_types.h"
#include "executor/transfer_job.h"
#include "model/any_binding.h"

namespace crossdock {

class TransferPlanner {
 public:
  virtual ~TransferPlanner() = default;
  // Binds, plans, proves and lowers; who the peers are is for the caller to add. A failure says what does not fit
  // together; `name` is what it calls the transfer.
  virtual Result<std::shared_ptr<TransferJob>> make_job(const std::string& name, std::vector<AnyBinding> sources,
                                                        std::vector<AnyBinding> targets) const = 0;
};

class UploadPlanner {
 public:
  virtual ~UploadPlanner() = default;
  // What the upload is going to publish; empty: objects that are shared by their keys.
  virtual std::optional<ContentId> content() const = 0;
  // The puts of an upload: one for each object and each source that has bytes of it.
  virtual Result<std::shared_ptr<const UploadJob>> make_job(const std::string& name,
                                                            std::span<const AnyBinding> sources) const = 0;
  // What the store has to publish. `stored` has each of the job's objects, with its checksums.
  virtual Result<PublishedContent> publication(const std::string& name, const UploadJob& job,
                                               const std::map<RegionId, StoredObject>& stored) const = 0;
};

class RestorePlanner {
 public:
  virtual ~RestorePlanner() = default;
  virtual LookupKey key() const = 0;
  // What was found, complete with its manifest. kNotFound, naming the first, when an object is missing.
  virtual Result<Found> complete(Found found) const = 0;
  // Each chunk of each object belongs to one get, so it is read at most once. `targets` are those that are restored;
  // `found` was completed.
  virtual Result<std::shared_ptr<const RestoreJob>> make_job(const std::string& name, const Found& found,
                                                             std::span<const AnyBinding> targets) const = 0;
};

}  // namespace crossdock
