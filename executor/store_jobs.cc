#include "executor/store_jobs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/checked.h"

// The steps of a plan regrouped by object, because an object is what a store operates on. The byte pairs stay the same:
// each step goes into exactly one put, or into the gets of exactly one object, with the numbers of its regions changed
// (I1).
namespace crossdock {
namespace {

// Steps of one object, with their own numbers of the regions on the runtime's side.
struct ObjectWork {
  explicit ObjectWork(const std::vector<BoundRegion>& all) : regions(all) {}

  std::shared_ptr<CopyWork> work = std::make_shared<CopyWork>();
  RegionNumbers regions;
  Range span;  // of the object's bytes, from the first to the last that a step touches
};

// The pieces [begin, end) are disjoint and begin at chunks, so each chunk is read, and its checksum compared, once. All
// gets of an object share its steps, and a get takes those that lie within its piece; cutting the steps here would cost
// memory for each get. chunk_bytes is at least 1 (rule field-minimum of a manifest).
// The whole chunks that hold `span`, in pieces of at most get_bytes_max.
void add_gets_of(const std::shared_ptr<const FoundObject>& stored, Range span, const StepSpan& steps,
                 const RestoreLimits& limits, RestoreJob& job) {
  const uint64_t chunk = stored->object.chunk_bytes;
  // One chunk at least, also when it is larger than get_bytes_max: a checksum needs the whole chunk. The product fits,
  // because it is at most the larger of the two.
  const uint64_t unit = std::max<uint64_t>(limits.get_bytes_max / chunk, 1) * chunk;
  for (uint64_t begin = span.begin() / chunk * chunk; begin < span.end();) {
    const uint64_t end = std::min(checked_add(begin, unit).value_or(UINT64_MAX), stored->object.bytes);
    job.gets.push_back(GetStep{LeaseId(), stored, Range(begin, end), steps});
    job.get_bytes.push_back(end - begin);
    begin = end;
  }
}

}  // namespace

// Ordered maps: puts are sorted by object and writer whatever the order of pairs (I7), and objects complete one after
// another, so a store holds few of them open.
std::vector<PutStep> puts_of(const CopyPlan& copies) {
  std::map<std::pair<uint32_t, uint32_t>, ObjectWork> fragments;  // by object, then by source
  std::map<uint32_t, uint64_t> payload;
  for (const CopyPair& pair : copies.pairs())
    copies.for_each_step(pair, [&](const CopyStep& step) {
      ObjectWork& fragment =
          fragments.try_emplace({step.target_region, pair.source}, copies.source_regions()).first->second;
      CopyStep own = step;
      own.source_region = fragment.regions.number_of(step.source_region);
      own.target_region = 0;
      fragment.work->steps.push_back(own);
      // No target byte is in two steps, so the sum is at most the size of the object.
      payload[step.target_region] += step.total_bytes();
    });
  std::vector<PutStep> puts;
  for (auto& [place, fragment] : fragments) {
    const BoundRegion& object = copies.target_regions()[place.first];
    fragment.work->source_regions = std::move(fragment.regions).keys();
    puts.push_back(PutStep{object.id, object.bytes, payload[place.first], copies.sources()[place.second].text(),
                           StepSpan(fragment.work)});
  }
  return puts;
}

void add_gets(const CopyPlan& copies, const std::vector<FoundObject>& found, const RestoreLimits& limits,
              RestoreJob& job) {
  std::map<uint32_t, ObjectWork> works;
  for (const CopyPair& pair : copies.pairs())
    copies.for_each_step(pair, [&](const CopyStep& step) {
      ObjectWork& object = works.try_emplace(step.source_region, copies.target_regions()).first->second;
      CopyStep own = step;
      own.target_region = object.regions.number_of(step.target_region);
      own.source_region = 0;
      object.work->steps.push_back(own);
      const Range touched(step.source_offset, step.source_offset + step.source_span());
      object.span = object.span.empty() ? touched
                                        : Range(std::min(object.span.begin(), touched.begin()),
                                                std::max(object.span.end(), touched.end()));
    });
  std::map<RegionId, size_t> numbers;
  for (size_t i = 0; i < found.size(); ++i) numbers[found[i].object.id] = i;
  // numbers.at() finds each: the plan's source regions are the objects of the manifest that was found.
  for (auto& [region, object] : works) {
    object.work->target_regions = std::move(object.regions).keys();
    const auto stored = std::make_shared<const FoundObject>(found[numbers.at(copies.source_regions()[region].id)]);
    add_gets_of(stored, object.span, StepSpan(object.work), limits, job);
    ++job.object_count;
  }
}

}  // namespace crossdock
