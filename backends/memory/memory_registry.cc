#include "backends/memory/memory_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace crossdock {
namespace {

Status not_registered(const RegionKey& key) {
  return Status(Code::kNotFound, "region " + key.to_text() + " is not registered");
}

}  // namespace

// One lock for the maps and one for each grant, so that a revoke that waits for a long copy does not stop accesses
// under other grants. A grant outlives its place in the map for as long as an access has it.
struct MemoryRegistry::Granted {
  GrantRequest request;
  std::mutex mutex;
  std::condition_variable idle;
  uint64_t access_count = 0;
  bool revoked = false;
};

MemoryRegistry::Access::~Access() {
  if (grant_ == nullptr) return;  // the owner's, or moved from
  const std::lock_guard lock(grant_->mutex);
  if (--grant_->access_count == 0) grant_->idle.notify_all();
}

Status MemoryRegistry::add(const RegionKey& key, std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (regions_.emplace(key, bytes).second) return Status();
  return Status(Code::kConflict, "region " + key.to_text() + " is registered already");
}

void MemoryRegistry::remove(const RegionKey& key) {
  const std::lock_guard lock(mutex_);
  regions_.erase(key);
}

Result<MemoryRegistry::Access> MemoryRegistry::access(const RegionKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(key);
  if (found == regions_.end()) return not_registered(key);
  Access access;
  access.bytes_ = found->second;
  access.range_ = Range(0, found->second.size());
  return access;
}

Result<std::vector<MemoryRegistry::Access>> MemoryRegistry::access_all(const std::vector<RegionKey>& keys) const {
  std::vector<Access> accesses;
  for (const RegionKey& key : keys) {
    TRY(Access own, access(key));
    accesses.push_back(std::move(own));
  }
  return accesses;
}

Status MemoryRegistry::grant(const GrantRequest& request) {
  const std::lock_guard lock(mutex_);
  for (const GrantRange& range : request.ranges) {
    const auto found = regions_.find(range.region);
    if (found == regions_.end()) return not_registered(range.region);
    if (range.bytes.end() > found->second.size())
      return Status(Code::kInvalidArgument,
                    fmt::format("bytes [{},{}) end past region {} of {} bytes", range.bytes.begin(), range.bytes.end(),
                                range.region.to_text(), found->second.size()));
  }
  const auto [entry, is_new] = grants_.try_emplace(request.id);
  if (is_new) {
    entry->second = std::make_shared<Granted>();
    entry->second->request = request;
    return Status();
  }
  Granted& known = *entry->second;
  const std::lock_guard own(known.mutex);
  if (known.revoked) return Status(Code::kConflict, fmt::format("grant '{}' was revoked", request.id.text()));
  if (known.request == request) return Status();
  return Status(Code::kConflict, fmt::format("grant '{}' was given for other memory or writers", request.id.text()));
}

std::shared_ptr<MemoryRegistry::Granted> MemoryRegistry::find_grant(const GrantId& grant) const {
  const auto found = grants_.find(grant);
  return found == grants_.end() ? nullptr : found->second;
}

// An access is counted under the grant's lock, together with the look at `revoked`. So it either began before the
// revoke, which then waits for it, or is refused (R6).
Result<std::vector<MemoryRegistry::Access>> MemoryRegistry::write_access_all(const std::vector<RegionKey>& keys,
                                                                             const GrantId& grant,
                                                                             const InstanceId* writer) const {
  std::shared_ptr<Granted> granted;
  std::vector<Access> accesses;
  {
    const std::lock_guard lock(mutex_);
    granted = find_grant(grant);
    if (granted == nullptr) return Status(Code::kConflict, fmt::format("there is no grant '{}'", grant.text()));
    for (const RegionKey& key : keys) {
      const auto found = regions_.find(key);
      if (found == regions_.end()) return not_registered(key);
      Access& access = accesses.emplace_back();
      access.bytes_ = found->second;
    }
  }
  const GrantRequest& request = granted->request;
  if (writer != nullptr && !std::binary_search(request.writers.begin(), request.writers.end(), *writer))
    return Status(Code::kConflict,
                  fmt::format("grant '{}' does not name the writer '{}'", grant.text(), writer->text()));
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto range = std::find_if(request.ranges.begin(), request.ranges.end(),
                                    [&](const GrantRange& each) { return each.region == keys[i]; });
    if (range == request.ranges.end())
      return Status(Code::kConflict,
                    fmt::format("grant '{}' does not cover region {}", grant.text(), keys[i].to_text()));
    accesses[i].range_ = range->bytes;
  }
  const std::lock_guard lock(granted->mutex);
  if (granted->revoked) return Status(Code::kConflict, fmt::format("grant '{}' was revoked", grant.text()));
  for (Access& access : accesses) {
    ++granted->access_count;
    access.grant_ = granted;
  }
  return accesses;
}

// R6, I3: sets the flag first, so that no access begins any more, and then waits for those that are open. Blocks as
// long as the longest copy, so it runs on a thread of the backend and never in post_revoke() (R1). A grant that is not
// known is remembered as revoked: its post may still be on its way.
Status MemoryRegistry::revoke(const GrantId& grant) {
  std::shared_ptr<Granted> granted;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = grants_.try_emplace(grant);
    if (is_new) entry->second = std::make_shared<Granted>();
    granted = entry->second;
    const std::lock_guard own(granted->mutex);
    if (!std::exchange(granted->revoked, true)) {
      revoked_.push_back(grant);
      if (revoked_.size() > kRevokedMax) {
        grants_.erase(revoked_.front());
        revoked_.pop_front();
      }
    }
  }
  std::unique_lock lock(granted->mutex);
  granted->idle.wait(lock, [&] { return granted->access_count == 0; });
  return Status();
}

size_t MemoryRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return regions_.size();
}

size_t MemoryRegistry::grant_count() const {
  const std::lock_guard lock(mutex_);
  return grants_.size() - revoked_.size();
}

}  // namespace crossdock
