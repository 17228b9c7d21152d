// Copies as they are posted: steps, and the names of the memory they touch. Nothing here is a pointer to data, so work
// can be checked, simulated and replayed.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/ids.h"
#include "model/instance_binding.h"
#include "planner/copy/bound_region.h"
#include "planner/copy/steps.h"

namespace crossdock {

// Registered memory of an instance. A region that is registered again has another epoch.
struct RegionKey {
  InstanceId owner;
  RegionId id;
  std::optional<uint64_t> address;  // tells regions of one name apart
  uint64_t epoch = 0;

  static RegionKey of(const BoundRegion& region) {
    return RegionKey{region.instance, region.id, region.address, region.epoch};
  }
  static RegionKey of(const InstanceBinding& binding, const Region& region) {
    return RegionKey{binding.instance, region.id, region.address, region.epoch};
  }
  // "'p0-t0/key' epoch 3"
  std::string to_text() const;

  friend auto operator<=>(const RegionKey&, const RegionKey&) = default;
};

// Steps name regions by their numbers in these lists. Where one side is an object of a store its list is empty, and
// offsets of that side count in the object.
// Offsets and lengths are in bytes.
struct CopyWork {
  std::vector<RegionKey> source_regions;
  std::vector<RegionKey> target_regions;
  std::vector<CopyStep> steps;
};

// Numbers the regions of a lowering that a work uses among themselves.
class RegionNumbers {
 public:
  explicit RegionNumbers(const std::vector<BoundRegion>& all) : all_(all) {}

  // Numbers follow the order in which regions are first asked for (I7).
  uint32_t number_of(uint32_t region) {
    const auto [entry, is_new] = numbers_.try_emplace(region, static_cast<uint32_t>(keys_.size()));
    if (is_new) keys_.push_back(RegionKey::of(all_[region]));
    return entry->second;
  }
  std::vector<RegionKey> keys() && { return std::move(keys_); }

 private:
  const std::vector<BoundRegion>& all_;
  std::map<uint32_t, uint32_t> numbers_;
  std::vector<RegionKey> keys_;
};

// Some consecutive steps of a work. Spans share the work, which lives as long as one of them does (R2).
class StepSpan {
 public:
  StepSpan() = default;
  StepSpan(std::shared_ptr<const CopyWork> work, size_t begin, size_t end)
      : work_(std::move(work)), begin_(begin), end_(end) {
    CHECK(begin <= end && end <= work_->steps.size());
  }
  explicit StepSpan(std::shared_ptr<const CopyWork> work) : work_(std::move(work)), end_(work_->steps.size()) {}

  const CopyWork& work() const { return *work_; }
  std::span<const CopyStep> steps() const {
    return work_ == nullptr ? std::span<const CopyStep>() : std::span(work_->steps).subspan(begin_, end_ - begin_);
  }
  // The sum fits: no target byte is in two steps. O(steps).
  uint64_t total_bytes() const {
    uint64_t bytes = 0;
    for (const CopyStep& step : steps()) bytes += step.total_bytes();
    return bytes;
  }

 private:
  std::shared_ptr<const CopyWork> work_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace crossdock
