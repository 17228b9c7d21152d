// Background traffic of a scenario: flows that belong to no transfer and share links with the other works.
#pragma once

#include "sim/run/work_run.h"

namespace crossdock {

// One sender for each participant of the source. Its flows land nowhere: they have no steps, grants or checks.
class TrafficRun : public WorkRun {
 public:
  using WorkRun::WorkRun;
  void request_abort() override { is_stopped_ = true; }
  void check_end() override {}

 private:
  Status prepare() override;
  void conclude() override { result_.verdict = "done"; }

  std::vector<std::unique_ptr<Protocol>> senders_;
  bool is_stopped_ = false;
};

}  // namespace crossdock
