#include "tests/conformance/conformance_test.h"

#include <algorithm>
#include <utility>

namespace crossdock::testing {
namespace {

struct End {
  uint64_t span = 0;
  std::vector<uint64_t> strides;
};

// Nested strides with gaps, the axes in any order.
End random_end(Rng& rng, uint64_t bytes, const std::vector<uint64_t>& extents) {
  std::vector<size_t> order(extents.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  rng.shuffle(order);
  End end{bytes, std::vector<uint64_t>(extents.size())};
  for (const size_t k : order) {
    end.strides[k] = end.span + rng.below(3) * rng.below(8);
    end.span += end.strides[k] * (extents[k] - 1);
  }
  return end;
}

}  // namespace

Bytes random_bytes(Rng& rng, uint64_t count) {
  Bytes bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(rng.below(256));
  return bytes;
}

uint32_t naive_crc32c(std::span<const std::byte> bytes) {
  uint32_t sum = 0xffffffff;
  for (const std::byte byte : bytes) {
    sum ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~sum;
}

CopyStep random_step(Rng& rng, Range source, Range target) {
  constexpr int kTriesMax = 20;
  for (int i = 0; i < kTriesMax; ++i) {
    std::vector<uint64_t> extents(rng.below(4));
    for (uint64_t& extent : extents) extent = 2 + rng.below(3);
    const uint64_t bytes = 1 + rng.below(24);
    const End source_end = random_end(rng, bytes, extents);
    const End target_end = random_end(rng, bytes, extents);
    if (source_end.span > source.size() || target_end.span > target.size()) continue;
    CopyStep step = plain_step(source.begin() + rng.below(source.size() - source_end.span + 1),
                               target.begin() + rng.below(target.size() - target_end.span + 1), bytes);
    for (size_t k = 0; k < extents.size(); ++k)
      step.push_axis(CopyAxis{extents[k], source_end.strides[k], target_end.strides[k]});
    return step;
  }
  return plain_step(rng.in(source), rng.in(target), 1);
}

std::vector<CopyStep> random_steps(Rng& rng, uint64_t source_bytes, uint64_t target_bytes, uint64_t count) {
  std::vector<CopyStep> steps;
  const uint64_t share = target_bytes / count;
  for (uint64_t i = 0; i < count; ++i)
    steps.push_back(random_step(rng, Range(0, source_bytes), Range(i * share, (i + 1) * share)));
  rng.shuffle(steps);
  return steps;
}

CopyStep plain_step(uint64_t source_offset, uint64_t target_offset, uint64_t bytes) {
  CopyStep step;
  step.source_offset = source_offset;
  step.target_offset = target_offset;
  step.bytes = bytes;
  return step;
}

CopyStep wrapping_step(uint64_t source_stride_bytes, uint64_t target_stride_bytes) {
  CopyStep step = plain_step(0, 0, 5);
  step.push_axis(CopyAxis{3, source_stride_bytes, target_stride_bytes});
  return step;
}

RegionKey region_key(const std::string& name, uint64_t epoch) {
  return RegionKey{InstanceId("instance"), RegionId(name), std::nullopt, epoch};
}

StepSpan steps_between(const std::vector<RegionKey>& sources, const std::vector<RegionKey>& targets,
                       std::vector<CopyStep> steps) {
  return StepSpan(std::make_shared<const CopyWork>(CopyWork{sources, targets, std::move(steps)}));
}

void ConformanceTest::open(const BackendOptions& options) {
  granter_ = nullptr;
  grants_.clear();
  participants_.clear();
  backend_.reset();
  backend_ = GetParam().make(options);
}

Participant& ConformanceTest::join(const std::string& name) {
  return participants_.emplace_back(backend_->join(PeerId(name)));
}

Region& ConformanceTest::region(const std::string& name, uint64_t bytes, uint64_t epoch) {
  Region& made = regions_.emplace_back(region_key(name, epoch), bytes);
  EXPECT_EQ(backend_->add_memory(made.key, made.bytes()), Status());
  return made;
}

std::shared_ptr<const Grant> ConformanceTest::grant(const std::vector<RegionKey>& keys) {
  if (keys.empty()) return std::make_shared<const Grant>();
  std::shared_ptr<const Grant>& known = grants_[keys];
  if (known != nullptr) return known;
  if (granter_ == nullptr) granter_ = &join("granter");
  static uint64_t count = 0;  // a grant is never given twice, and one world may serve several tests
  GrantRequest request{GrantId("grant " + std::to_string(++count)), {}, {InstanceId("instance")}};
  for (const RegionKey& key : keys) {
    // The last one: a backend that was opened before may have had a region of the same name.
    const auto found =
        std::find_if(regions_.rbegin(), regions_.rend(), [&](const Region& each) { return each.key == key; });
    CHECK(found != regions_.rend());
    request.ranges.push_back(GrantRange{key, Range(0, found->bytes().size())});
  }
  known = std::make_shared<const Grant>(result_of<Grant>(granter_->run(GrantPost{request})));
  return known;
}

void ConformanceTest::expect_guards() const {
  for (const Region& each : regions_) {
    const std::span memory(each.memory);
    const auto is_fill = [](std::byte byte) { return byte == Region::kFill; };
    const auto before = memory.first(Region::kGuardBytes);
    const auto after = memory.last(Region::kGuardBytes);
    EXPECT_TRUE(std::all_of(before.begin(), before.end(), is_fill)) << "bytes before " << each.key.to_text();
    EXPECT_TRUE(std::all_of(after.begin(), after.end(), is_fill)) << "bytes after " << each.key.to_text();
  }
}

ConformanceTest::Blocked ConformanceTest::block_workers(Participant& participant, size_t worker_count) {
  Blocked blocked;
  for (size_t i = 0; i < worker_count; ++i) {
    const RegionKey key = region("blocked" + std::to_string(i), 8).key;
    blocked.holds.push_back(backend_->hold(grant({key})->id, key));
    if (blocked.holds.back() == nullptr) return {};
    blocked.revokes.push_back(participant.post(revoke_of(key)));
  }
  return blocked;
}

}  // namespace crossdock::testing
