// Fault desk: which faults of a scenario meet which operation or event. It only counts and matches: operation_faults.h
// says what a fault does to an operation, and sim/run/fault_actions.h carries out the others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

class FaultDesk {
 public:
  // The faults outlive it; `origin` is the start of the run.
  FaultDesk(const std::vector<FaultSpec>& faults, TimePoint origin) : origin_(origin) {
    for (const FaultSpec& fault : faults) armed_.push_back(Armed{&fault, 0, 0});
  }

  // The operation faults that meet this operation, which `event` names ("post copy").
  std::vector<const FaultSpec*> meet(std::string_view peer, std::string_view event, TimePoint now);
  // Other faults whose event this is.
  std::vector<const FaultSpec*> triggered_by(std::string_view peer, std::string_view event);
  // Faults whose event never came: "faults[2] link_off: '*' came 3 times to 'post copy', not 7".
  std::vector<std::string> unmet() const;

 private:
  struct Armed {
    const FaultSpec* fault;
    uint64_t seen;
    uint64_t hits;
  };
  bool counts(Armed& armed, std::string_view peer, std::string_view event) const;

  TimePoint origin_;
  std::vector<Armed> armed_;
};

}  // namespace crossdock
