// Fault desk: which faults of a scenario meet which operation or event. It only counts and matches; whoever asks makes
// the fault come true.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

// The faults that meet one operation; of several of a kind the last counts.
class MetFaults {
 public:
  MetFaults() = default;
  explicit MetFaults(std::vector<const FaultSpec*> faults) : faults_(std::move(faults)) {}

  const std::vector<const FaultSpec*>& all() const { return faults_; }
  // Null when there is none of the kind.
  const FaultSpec* find(FaultKind kind) const {
    const FaultSpec* found = nullptr;
    for (const FaultSpec* fault : faults_)
      if (fault->kind == kind) found = fault;
    return found;
  }
  bool has(FaultKind kind) const { return find(kind) != nullptr; }
  // By how much a fault of the kind puts something off.
  Duration delay(FaultKind kind) const {
    const FaultSpec* const fault = find(kind);
    return fault == nullptr ? Duration() : fault->delay;
  }

 private:
  std::vector<const FaultSpec*> faults_;
};

class FaultDesk {
 public:
  // The faults outlive it; `origin` is the start of the run.
  FaultDesk(const std::vector<FaultSpec>& faults, TimePoint origin) : origin_(origin) {
    for (const FaultSpec& fault : faults) armed_.push_back(Armed{&fault, 0, 0});
  }

  // The operation faults that meet this operation, which `event` names ("post copy").
  MetFaults meet(std::string_view peer, std::string_view event, TimePoint now);
  // Other faults whose event this is.
  std::vector<const FaultSpec*> triggered_by(std::string_view peer, std::string_view event);
  // Faults whose event never came: "faults[2] link_off, when '*' does 'post copy' for the 7th time".
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
