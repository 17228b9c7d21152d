// The memory of this process that region keys name, while their grants last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/copy_work.h"

namespace crossdock {

// Thread-safe. The same bytes may be registered under several keys, one for each grant.
class MemoryRegistry {
  struct Grant;

 public:
  // Access to the bytes of one grant: while it lives they are not revoked.
  class Access {
   public:
    Access() = default;
    Access(Access&&) = default;
    Access& operator=(Access&& other) noexcept {
      std::swap(grant_, other.grant_);  // what this had ends with `other`
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Access();
    std::span<std::byte> bytes() const { return bytes_; }

   private:
    friend class MemoryRegistry;
    std::shared_ptr<Grant> grant_;
    std::span<std::byte> bytes_;
  };

  // kConflict when the key is registered, or was revoked before: an epoch is used once.
  Status add(const RegionKey& key, std::span<std::byte> bytes);
  // kNotFound when nothing is registered under the key; kConflict when it was revoked.
  Result<Access> access(const RegionKey& key) const;
  // The same for the owner of the memory, who may look at it after it was revoked.
  Result<Access> owner_access(const RegionKey& key) const;
  // Access to each of the regions, in order; to none when one cannot be had.
  Result<std::vector<Access>> access_all(const std::vector<RegionKey>& keys) const;
  Result<std::vector<Access>> owner_access_all(const std::vector<RegionKey>& keys) const;
  // Waits for all accesses under the key to end; no new one can begin (R6). OK again when the key was revoked before;
  // kNotFound when it is unknown.
  Status revoke(const RegionKey& key);
  // Forgets a key, revoked or not; an access that is open stays valid.
  void remove(const RegionKey& key);

  // Keys that are known, revoked ones included.
  size_t size() const;

 private:
  Result<Access> open(const RegionKey& key, bool by_owner) const;
  Result<std::vector<Access>> open_all(const std::vector<RegionKey>& keys, bool by_owner) const;

  mutable std::mutex mutex_;
  std::map<RegionKey, std::shared_ptr<Grant>> grants_;
};

}  // namespace crossdock
