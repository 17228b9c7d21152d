// Shared by 'store put' and 'store pages put'.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/store/store_core.h"
#include "cli/local_side.h"
#include "executor/upload.h"
#include "model/kv/placement.h"
#include "model/kv/store.h"
#include "planner/kv/plan_options.h"

namespace crossdock::cli {

class Command;

// Times in seconds. ttl_s 0: never expires; threads 0: one for each processor.
struct UploadSettings {
  std::string layout;  // a file; or made from the placement:
  std::string object_order = "plhd";
  uint64_t page_tokens = 64;
  std::string selection = "deterministic";
  std::string transaction;
  std::string tenant = "default";
  uint64_t ttl_s = 0;
  uint64_t timeout_s = 3600;
  uint64_t threads = 0;
  std::string record_dir;
  bool json = false;
  bool quiet = false;
};

void add_upload_options(Command& command, UploadSettings& settings);

size_t threads_of(const UploadSettings& settings);
inline bool is_quiet(const UploadSettings& settings) { return settings.json || settings.quiet; }

// How replicas share the writing, with pages of the layout.
PlanOptions plan_options(const UploadSettings& settings, const StoreLayout& layout);

// Prints an error and returns null on failure.
std::shared_ptr<const Valid<StoreLayout>> load_layout(const UploadSettings& settings,
                                                      const Valid<PlacementManifest>& placement);

struct UploadReport {
  Status problem;  // failure outside of the upload itself
  UploadOutcome outcome;
  Duration total;
  std::shared_ptr<const UploadJob> job;  // what was to be put; null when it did not come so far
};

// `options` has the planner. Fills in the other options from the settings and the side.
UploadReport run_upload(const UploadSettings& settings, StoreCore& store, const LocalSide& side, UploadOptions options);

// Prints why the upload was not committed, and returns the exit code.
int fail_upload(const UploadOutcome& outcome);

}  // namespace crossdock::cli
