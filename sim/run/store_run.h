// An upload or a restore of a scenario: one process with the port of a store.
#pragma once

#include <memory>

#include "backends/store/store_core.h"
#include "sim/run/work_run.h"

namespace crossdock {

// Verdicts: committed, aborted, unknown; crashed when its process died.
class UploadRun : public WorkRun {
 public:
  using WorkRun::WorkRun;
  void request_abort() override;
  void check_end() override;
  void check_published() override;

 private:
  Status prepare() override;
  void conclude() override;
  // Empty when everything that was found is right.
  std::string read_back(StoreCore& core, Found found);

  std::unique_ptr<Upload> protocol_;
  SimNode* node_ = nullptr;
};

// Verdicts: restored, failed, partly; crashed when its process died before anything was active.
class RestoreRun : public WorkRun {
 public:
  using WorkRun::WorkRun;
  void request_abort() override;
  void check_end() override;

 private:
  Status prepare() override;
  void conclude() override;

  std::unique_ptr<Restore> protocol_;
  SimNode* node_ = nullptr;
};

}  // namespace crossdock
