// What a backend provides to the conformance suites: ports for participants, and the few actions that no port has. The
// suites use nothing else of it. local_backend.h is an example; a backend registers with
//
//   INSTANTIATE_TEST_SUITE_P(Local, TransportConformance, testing::Values(BackendCase{"local", make_local}));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "executor/ports.h"
#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"

namespace crossdock::testing {

struct BackendOptions {
  size_t worker_count = 2;  // operations that are carried out at the same time, where the backend has such a number
  size_t waiting_max = 64;  // operations that wait besides
  uint32_t chunk_bytes = 64;
  uint64_t quota_bytes = UINT64_MAX;  // of each tenant
};

// What a store holds: the suites check that nothing leaks (I4).
struct StoreUse {
  uint64_t open_transactions = 0;
  uint64_t publications = 0;  // that are found, or wait for leases
  uint64_t leases = 0;
  uint64_t segments = 0;  // of bulk data
  friend bool operator==(const StoreUse&, const StoreUse&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StoreUse& use) {
    return out << use.open_transactions << " open transactions, " << use.publications << " publications, " << use.leases
               << " leases, " << use.segments << " segments";
  }
};

class Backend {
 public:
  virtual ~Backend() = default;
  // The ports of one more participant, those that the backend has. They live as long as it.
  virtual Ports join(const PeerId& name) = 0;
  // The same with a runtime that has pages for one participant, as the binding describes them.
  virtual Ports join_with_pages(const PeerId& name, Role role, const BindingPointer& binding,
                                const std::shared_ptr<const Valid<CacheSchema>>& schema) = 0;
  virtual Status add_memory(const RegionKey& key, std::span<std::byte> bytes) = 0;
  // Keeps an access to the memory under the grant open while it lives. Null where the backend cannot.
  virtual std::shared_ptr<void> hold(const GrantId& grant, const RegionKey& key) = 0;
  // A completion comes into the participant's queue, from the calling thread. Thread-safe.
  virtual void complete(const PeerId& name, Completion completion) = 0;

  // Runs the bodies at the same time and returns when each has: as threads, or as what a simulation has instead.
  virtual void run_together(const std::vector<std::function<void()>>& bodies) = 0;
  // In one of them: lets the others go on.
  virtual void pause() = 0;

  // For stores only. pass_time() alone moves the store's clock.
  virtual void pass_time(Duration duration) = 0;
  virtual Status remove(const ContentId& content) = 0;
  virtual Status collect_garbage() = 0;
  virtual StoreUse store_use() = 0;
};

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>(const BackendOptions&)> make;

  friend void PrintTo(const BackendCase& each, std::ostream* out) { *out << each.name; }
};

// The same backend with fault decorators around the ports of each participant, whose plans are empty.
BackendCase decorated(BackendCase inside);

}  // namespace crossdock::testing
