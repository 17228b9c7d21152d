// The memory of this process that region keys name while it is registered, and the grants under which others may write
// into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/copy_work.h"
#include "executor/grant.h"

namespace crossdock {

// Thread-safe. The same bytes may be registered under several keys, and granted several times.
class MemoryRegistry {
  struct Granted;

 public:
  // Access to the bytes of a region: of its owner, or under a grant, which is then not revoked while the access lives.
  class Access {
   public:
    Access() = default;
    Access(Access&&) = default;
    Access& operator=(Access&& other) noexcept {
      std::swap(grant_, other.grant_);  // what this had ends with `other`
      std::swap(bytes_, other.bytes_);
      std::swap(range_, other.range_);
      return *this;
    }
    ~Access();
    // Of the whole region; what is outside of range() is not to be touched.
    std::span<std::byte> bytes() const { return bytes_; }
    Range range() const { return range_; }

   private:
    friend class MemoryRegistry;
    std::shared_ptr<Granted> grant_;
    std::span<std::byte> bytes_;
    Range range_;
  };

  // kConflict when the key is registered.
  Status add(const RegionKey& key, std::span<std::byte> bytes);
  // Forgets a key; an access that is open stays valid.
  void remove(const RegionKey& key);
  // The owner's own access. kNotFound when nothing is registered under the key.
  Result<Access> access(const RegionKey& key) const;
  // Access to each of the regions, in order; to none when one cannot be had.
  Result<std::vector<Access>> access_all(const std::vector<RegionKey>& keys) const;

  // Lets the writers write. The same request again is OK (R4); kConflict when the grant was another one, or was revoked
  // before. kNotFound when a region is not registered, kInvalidArgument when a range leaves it.
  Status grant(const GrantRequest& request);
  // Waits for all accesses under the grant to end; no new one can begin (R6), nor can it be granted afterwards. OK for
  // one that is not known, or was revoked before.
  Status revoke(const GrantId& grant);
  // Access to each of the regions for a writer, in order; to none when one cannot be had. `writer` null: the owner, who
  // writes by itself what the grant covers. kConflict when the grant was revoked, is not known, does not cover a region
  // or names other writers; kNotFound when a region is not registered.
  Result<std::vector<Access>> write_access_all(const std::vector<RegionKey>& keys, const GrantId& grant,
                                               const InstanceId* writer) const;

  size_t size() const;         // keys that are registered
  size_t grant_count() const;  // grants that are live

 private:
  std::shared_ptr<Granted> find_grant(const GrantId& grant) const;

  // Revoked grants that are remembered, so that a late post cannot give them again.
  static constexpr size_t kRevokedMax = 65536;

  mutable std::mutex mutex_;
  std::map<RegionKey, std::span<std::byte>> regions_;
  std::map<GrantId, std::shared_ptr<Granted>> grants_;  // live, and revoked ones that are remembered
  std::deque<GrantId> revoked_;                         // in order
};

}  // namespace crossdock
