#include "tests/support/store_stage.h"

#include <algorithm>

#include "model/wire/documents.h"

namespace crossdock::testing {

StoreStage::StoreStage(uint32_t chunk_bytes) {
  options.chunk_bytes = chunk_bytes;
  open();
}

TimePoint StoreStage::now() const { return world_ == nullptr ? now_ : now_ + (world_->now() - begun_); }

void StoreStage::open() {
  core_ = nullptr;
  StoreOptions own = options;
  own.clock = [this] { return now(); };
  Result<std::unique_ptr<StoreCore>> opened = StoreCore::open(tables.records(), tables.chunks(), own);
  CHECK(opened.ok());
  core_ = std::move(opened).value();
}

void StoreStage::run(StepWorld& world, const std::vector<ScheduledDeviation>& deviations, uint64_t chaos) {
  world_ = &world;
  begun_ = world.now();
  world.set_store(*core_);
  world.run(deviations, chaos);
  now_ = now();
  world_ = nullptr;
}

void StoreStage::restart() {
  open();
  if (world_ != nullptr) world_->set_store(*core_);
}

Valid<StoreLayout> small_layout(const Valid<CacheSchema>& schema, uint64_t page_tokens, ObjectOrder order) {
  StoreLayout layout;
  layout.name = "small";
  layout.cache_schema = *schema;
  layout.object_order = order;
  layout.page_tokens = page_tokens;
  const std::vector<ComponentName> names = {ComponentName("key"), ComponentName("value")};
  layout.parts = {
      StorePart{ObjectKey("l0"), IntervalSet{Range(0, 1)}, names, IntervalSet{Range(0, 4)}},
      StorePart{ObjectKey("l1_h0"), IntervalSet{Range(1, 2)}, names, IntervalSet{Range(0, 2)}},
      StorePart{ObjectKey("l1_h2"), IntervalSet{Range(1, 2)}, names, IntervalSet{Range(2, 4)}},
  };
  return valid_or_die(std::move(layout));
}

SmallUpload::SmallUpload(const Valid<CacheSchema>& schema, uint64_t tokens, const Valid<StoreLayout>& store_layout,
                         const PartitionSizes& sizes)
    : snapshot(std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(schema, Range(0, tokens)))),
      layout(std::make_shared<const Valid<StoreLayout>>(store_layout)),
      source(small_side(schema, sizes, "prefill", *snapshot, 4, 1)) {
  write_items(source);
}

UploadOptions SmallUpload::options() const {
  UploadOptions made;
  made.txn = TxnId("upload");
  made.tenant = "team-a";
  KvUpload upload;
  upload.documents = UploadDocuments{source.placement, snapshot, layout};
  made.planner = std::make_shared<const KvUploadPlanner>(std::move(upload));
  for (const BindingPointer& binding : source.bindings) made.participants.push_back((*binding)->participant);
  made.window = WindowLimits{2, 1 << 20};
  return made;
}

void SmallUpload::join(StepWorld& world, Protocol& protocol) {
  for (size_t i = 0; i < source.bindings.size(); ++i)
    world.add_runtime((*source.bindings[i])->participant, Role::kSource, source.bindings[i], *source.bytes[i]);
  world.add(PeerId("uploader"), Role::kSource, protocol);
}

SmallRestore::SmallRestore(const Valid<CacheSchema>& schema, const Valid<SnapshotDescriptor>& of,
                           const PartitionSizes& sizes, uint64_t page_tokens)
    : snapshot(of), target(small_side(schema, sizes, "decode", of, page_tokens, 2, 7)) {}

RestoreOptions SmallRestore::options() const {
  RestoreOptions made;
  made.operation = OperationId("op");
  made.attempt = AttemptId("attempt 1");
  KvRestore restore;
  restore.target = target.placement;
  restore.what = digest(snapshot);
  restore.limits.get_bytes_max = 32;  // several gets
  made.planner = std::make_shared<const KvRestorePlanner>(std::move(restore));
  for (const BindingPointer& binding : target.bindings) made.participants.push_back((*binding)->participant);
  made.lease = LeaseRequest{"restorer", Duration::from_s(60)};
  made.window = WindowLimits{2, 1 << 20};
  return made;
}

void SmallRestore::join(StepWorld& world, Protocol& protocol) {
  for (size_t i = 0; i < target.bindings.size(); ++i)
    world.add_runtime((*target.bindings[i])->participant, Role::kTarget, target.bindings[i], *target.bytes[i]);
  world.add(PeerId("restorer"), Role::kTarget, protocol);
}

}  // namespace crossdock::testing
