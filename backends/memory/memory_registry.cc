#include "backends/memory/memory_registry.h"

#include <condition_variable>
#include <utility>

namespace crossdock {

// One lock for the map and one for each grant, so that a revoke that waits for a long copy does not stop accesses to
// other regions. A grant outlives its key in the map for as long as an access has it.
struct MemoryRegistry::Grant {
  std::span<std::byte> bytes;
  std::mutex mutex;
  std::condition_variable idle;
  uint64_t access_count = 0;
  bool revoked = false;
};

MemoryRegistry::Access::~Access() {
  if (grant_ == nullptr) return;  // moved from
  const std::lock_guard lock(grant_->mutex);
  if (--grant_->access_count == 0) grant_->idle.notify_all();
}

Status MemoryRegistry::add(const RegionKey& key, std::span<std::byte> bytes) {
  auto grant = std::make_shared<Grant>();
  grant->bytes = bytes;
  const std::lock_guard lock(mutex_);
  if (grants_.emplace(key, std::move(grant)).second) return Status();
  return Status(Code::kConflict, "region " + key.to_text() + " is registered, or was revoked under this epoch");
}

Result<MemoryRegistry::Access> MemoryRegistry::access(const RegionKey& key) const { return open(key, false); }

Result<MemoryRegistry::Access> MemoryRegistry::owner_access(const RegionKey& key) const { return open(key, true); }

// An access is counted under the grant's lock, together with the look at `revoked`. So it either began before the
// revoke, which then waits for it, or is refused (R6).
Result<MemoryRegistry::Access> MemoryRegistry::open(const RegionKey& key, bool by_owner) const {
  Access access;
  {
    const std::lock_guard lock(mutex_);
    const auto found = grants_.find(key);
    if (found == grants_.end()) return Status(Code::kNotFound, "region " + key.to_text() + " is not registered");
    access.grant_ = found->second;
  }
  Grant& grant = *access.grant_;
  {
    const std::lock_guard lock(grant.mutex);
    if (!grant.revoked || by_owner) {
      ++grant.access_count;
      access.bytes_ = grant.bytes;
      return access;
    }
  }
  // Not counted, so its destructor must not count it off.
  access.grant_ = nullptr;
  return Status(Code::kConflict, "region " + key.to_text() + " was revoked");
}

Result<std::vector<MemoryRegistry::Access>> MemoryRegistry::access_all(const std::vector<RegionKey>& keys) const {
  return open_all(keys, false);
}

Result<std::vector<MemoryRegistry::Access>> MemoryRegistry::owner_access_all(const std::vector<RegionKey>& keys) const {
  return open_all(keys, true);
}

Result<std::vector<MemoryRegistry::Access>> MemoryRegistry::open_all(const std::vector<RegionKey>& keys,
                                                                     bool by_owner) const {
  std::vector<Access> accesses;
  for (const RegionKey& key : keys) {
    // An error gives back those that were opened before.
    TRY(Access access, open(key, by_owner));
    accesses.push_back(std::move(access));
  }
  return accesses;
}

// R6, I3: sets the flag first, so that no access begins any more, and then waits for those that are open. Blocks as
// long as the longest copy, so it runs on a thread of the backend and never in post_revoke() (R1). The key stays in the
// map: its epoch cannot be registered again until remove().
Status MemoryRegistry::revoke(const RegionKey& key) {
  std::shared_ptr<Grant> grant;
  {
    const std::lock_guard lock(mutex_);
    const auto found = grants_.find(key);
    if (found == grants_.end()) return Status(Code::kNotFound, "region " + key.to_text() + " is not registered");
    grant = found->second;
  }
  std::unique_lock lock(grant->mutex);
  grant->revoked = true;
  grant->idle.wait(lock, [&] { return grant->access_count == 0; });
  return Status();
}

void MemoryRegistry::remove(const RegionKey& key) {
  const std::lock_guard lock(mutex_);
  grants_.erase(key);
}

size_t MemoryRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return grants_.size();
}

}  // namespace crossdock
