#include "sim/run/store_checks.h"

#include <fmt/format.h>

#include <utility>

#include "sim/world/sim_store.h"

namespace crossdock {
namespace {

class StoreCheck {
 public:
  StoreCheck(SimWorld& world, SimStore& store) : world_(world), store_(store) {}

  // Twice empty: first with what is published, when nothing may be open or leased, and then with nothing published,
  // when no byte may be left (I4).
  void check(StoreCore& core) {
    collect(core);
    const auto stats = core.stats();
    if (!stats.ok()) return expect(stats.status().message());
    expect(stats.value().open_transactions == 0
               ? ""
               : fmt::format("{} transactions are open", stats.value().open_transactions));
    expect(stats.value().leases == 0 ? "" : fmt::format("{} leases are held", stats.value().leases));
    const auto list = core.list();
    if (list.ok())
      for (const PublicationInfo& each : list.value()) expect(core.remove_publication(each.sequence).message());
    collect(core);
    expect(store_.disk().used_bytes() == 0
               ? ""
               : fmt::format("{} bytes are in use although nothing is published", store_.disk().used_bytes()));
  }

 private:
  void collect(StoreCore& core) {
    if (const auto collected = core.gc(); !collected.ok()) expect(collected.status().message());
  }
  void expect(const std::string& wrong) {
    world_.checks().check(Invariant::kI4, world_.now(),
                          wrong.empty() ? "" : fmt::format("store '{}': {}", store_.name(), wrong));
  }

  SimWorld& world_;
  SimStore& store_;
};

}  // namespace

void check_stores(SimWorld& world, const std::vector<std::unique_ptr<WorkRun>>& works) {
  for (const auto& [name, store] : world.stores()) store->disarm();  // a fault may have come after they were healed
  for (const auto& each : works) each->check_published();
  for (const auto& [name, store] : world.stores())
    if (StoreCore* const core = store->core()) StoreCheck(world, *store).check(*core);
}

}  // namespace crossdock
