#include "sim/run/store_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/memory/synthetic.h"
#include "executor/kv/kv_store.h"
#include "model/wire/documents.h"
#include "sim/world/sim_store.h"

namespace crossdock {
namespace {

std::vector<SimMember*> pointers(const ScenarioSide& side) {
  std::vector<SimMember*> members;
  for (const auto& member : side.members) members.push_back(member.get());
  return members;
}

}  // namespace

Status UploadRun::prepare() {
  result_.kind = "upload";
  TRY_STATUS(make_side(Role::kSource, source_));
  Diagnostics diagnostics(fmt::format("work '{}'", spec_.name));
  std::optional<Valid<StoreLayout>> layout = scenario_layout(side_request(Role::kSource), *source_, diagnostics);
  if (!layout) return diagnostics.to_status();
  UploadOptions options;
  // Names of works differ, so no transaction is begun twice.
  options.txn = TxnId(spec_.name);
  options.tenant = "default";
  KvUpload upload;
  upload.documents =
      UploadDocuments{source_->placement, snapshot_, std::make_shared<const Valid<StoreLayout>>(std::move(*layout))};
  options.planner = std::make_shared<const KvUploadPlanner>(std::move(upload));
  for (const auto& member : source_->members) options.participants.push_back((*member->binding)->participant);
  options.ttl = spec_.ttl;
  options.lease = spec_.lease;
  options.timeout = spec_.timeout;
  options.drain = spec_.drain;
  options.window = WindowLimits{spec_.window_operations, spec_.window_bytes};
  options.seed = world_.options().seed;
  protocol_ = std::make_unique<Upload>(options);
  node_ = &launch(PeerId(spec_.name + " uploader"), coordinator_place(), *protocol_, pointers(*source_),
                  world_.find_store(spec_.store));
  return Status();
}

void UploadRun::request_abort() {
  if (node_->is_dead() || is_over()) return;
  protocol_->request_abort("asked to");
  node_->wake();
}

// A process that died has no outcome: what it left is found by check_published() and by the checks of stores.
void UploadRun::conclude() {
  if (node_->is_dead()) {
    result_.verdict = "crashed";
    return;
  }
  const UploadOutcome& outcome = protocol_->outcome();
  result_.verdict = outcome.committed ? "committed" : outcome.unknown ? "unknown" : "aborted";
  result_.cause = outcome.cause.message();
  result_.bytes = outcome.bytes;
}

void UploadRun::check_end() {
  if (node_ == nullptr || node_->is_dead()) return;
  const UploadOutcome& outcome = protocol_->outcome();
  check_node(*node_, outcome.lost);
  for (const auto& member : source_->members) check_pages(*member, outcome.quarantined);
  world_.checks().check(Invariant::kI5, world_.now(),
                        !outcome.committed && outcome.cause.ok() ? "the upload failed without a cause" : "");
}

// Reads everything into a placement like the source's, without links and protocols, and looks at each byte.
std::string UploadRun::read_back(StoreCore& core, Found found) {
  WorkSpec as_restore = spec_;
  as_restore.name = spec_.name + " read back";
  as_restore.snapshot = spec_.snapshot.empty() ? spec_.name : spec_.snapshot;
  as_restore.target = spec_.source;
  SideRequest request = side_request(Role::kSource);
  request.work = &as_restore;
  request.side = &*as_restore.target;
  request.role = Role::kTarget;
  Diagnostics diagnostics;
  const std::unique_ptr<ScenarioSide> side = make_scenario_side(request, true, diagnostics);
  if (side == nullptr) return diagnostics.to_status().message();
  // A registry of its own: reading back touches nothing of the simulated world, and takes no simulated time.
  MemoryRegistry registry;
  std::vector<AnyBinding> bindings;
  for (const auto& member : side->members) {
    member->memory.emplace();
    if (const Status added = member->memory->add(**member->binding); !added.ok()) return added.message();
    fill_guards(*member->memory);
    if (const Status added = member->memory->register_in(registry); !added.ok()) return added.message();
    bindings.push_back(member->binding);
  }
  const GrantId grant("read back");
  GrantRequest request_all{grant, {}, {}};
  for (const AnyBinding& binding : bindings)
    for (GrantRange& range : grant_ranges(*binding)) request_all.ranges.push_back(std::move(range));
  if (const Status granted = registry.grant(request_all); !granted.ok()) return granted.message();
  const LeaseId lease = found.lease;
  KvRestore restore;
  restore.target = side->placement;
  const auto job = KvRestorePlanner(std::move(restore)).make_job("the audit", found, bindings);
  if (!job.ok()) return job.status().message();
  for (GetStep get : job.value()->gets) {
    get.lease = lease;
    get.grant = grant;
    if (const auto got = core.get(get, registry); !got.ok()) return got.status().message();
  }
  for (const auto& member : side->members) {
    if (const auto wrong = take_synthetic(*member->binding, **schema_, scenario_content(spec_), *member->memory))
      return *wrong;
    if (const auto wrong = check_guards(*member->memory)) return *wrong;
  }
  return "";
}

void UploadRun::check_published() {
  SimStore* const store = world_.find_store(spec_.store);
  StoreCore* const core = store == nullptr || snapshot_ == nullptr ? nullptr : store->core();
  if (core == nullptr) return;
  // Of every upload, whatever its verdict: what is found has to be complete and right (I2). Whether it may be found at
  // all is checked only for uploads that were committed.
  const Result<Found> found = core->lookup(Lookup{digest(*snapshot_), LeaseRequest{"audit", Duration::from_ms(1)}});
  if (found.ok()) {
    // A damaged byte is not a torn publication: its reader gets an error (CRC-32C).
    std::string wrong = read_back(*core, found.value());
    const bool is_damage = wrong.find("CRC-32C") != std::string::npos;
    world_.checks().check(Invariant::kI2, world_.now(), is_damage ? "" : wrong);
    const Status released = core->release(found.value().lease);
    world_.checks().check(Invariant::kI4, world_.now(), released.ok() ? "" : released.message());
    return;
  }
  // Not found is right for an upload that was not committed, or unknown, or has expired; only a committed one has to be
  // there (I2).
  const bool is_expired = spec_.ttl && result_.end + *spec_.ttl <= world_.now();
  world_.checks().check(
      Invariant::kI2, world_.now(),
      result_.verdict == "committed" && !is_expired
          ? fmt::format("'{}' was committed and is not found: {}", spec_.name, found.status().message())
          : "");
}

Status RestoreRun::prepare() {
  result_.kind = "restore";
  TRY_STATUS(make_side(Role::kTarget, target_));
  RestoreOptions options;
  options.operation = OperationId(spec_.name);
  options.attempt = attempt();
  KvRestore restore;
  restore.target = target_->placement;
  restore.what = digest(*snapshot_);
  restore.limits.get_bytes_max = spec_.batch_bytes;
  options.planner = std::make_shared<const KvRestorePlanner>(std::move(restore));
  for (const auto& member : target_->members) options.participants.push_back((*member->binding)->participant);
  options.lease = LeaseRequest{spec_.name, spec_.lease};
  options.timeout = spec_.timeout;
  options.drain = spec_.drain;
  options.window = WindowLimits{spec_.window_operations, spec_.window_bytes};
  options.seed = world_.options().seed;
  protocol_ = std::make_unique<Restore>(options);
  node_ = &launch(PeerId(spec_.name + " restorer"), coordinator_place(), *protocol_, pointers(*target_),
                  world_.find_store(spec_.store));
  return Status();
}

void RestoreRun::request_abort() {
  if (node_->is_dead() || is_over()) return;
  protocol_->request_abort("asked to");
  node_->wake();
}

void RestoreRun::conclude() {
  const auto active = static_cast<size_t>(std::count_if(target_->members.begin(), target_->members.end(),
                                                        [](const auto& member) { return member->is_active; }));
  // By what the runtime has made active, which is what a user would see, and not by the protocol's word.
  result_.verdict = active == target_->members.size() ? "restored" : active > 0 ? "partly" : "failed";
  if (node_->is_dead()) {
    if (active == 0) result_.verdict = "crashed";
    return;
  }
  result_.cause = protocol_->outcome().cause.message();
  result_.bytes = protocol_->outcome().read.bytes;
}

void RestoreRun::check_end() {
  if (node_ == nullptr || node_->is_dead()) return;
  const RestoreOutcome& outcome = protocol_->outcome();
  check_node(*node_, outcome.lost);
  for (const auto& member : target_->members) {
    check_pages(*member, outcome.quarantined);
    world_.checks().check(Invariant::kI5, world_.now(),
                          outcome.activated && !member->is_active
                              ? fmt::format("the restore succeeded although '{}' is not active", member->name)
                              : "");
  }
  world_.checks().check(Invariant::kI5, world_.now(),
                        !outcome.activated && outcome.cause.ok() ? "the restore failed without a cause" : "");
}

}  // namespace crossdock
