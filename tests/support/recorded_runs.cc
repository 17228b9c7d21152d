#include "tests/support/recorded_runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/store/heap_tables.h"
#include "model/wire/documents.h"
#include "planner/kv/store_geometry.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kPageTokens = 4;

// Everything that recorders wrote, and the protocols that stand before the recorded ones.
class Recordings {
 public:
  template <class... Options>
  Protocol& wrap(const std::string& name, Protocol& protocol, const Options&... options) {
    runs_.push_back(std::make_unique<RecordedRun>(RecordedRun{name, ""}));
    const auto sink = [run = runs_.back().get()](std::string_view line) { run->text += std::string(line) + "\n"; };
    protocols_.push_back(std::make_unique<RecordingProtocol>(protocol, std::make_unique<Recorder>(sink, options...)));
    return *protocols_.back();
  }
  RecordedRuns take(size_t step_count) const {
    RecordedRuns all;
    for (const auto& run : runs_) all.runs.push_back(*run);
    all.step_count = step_count;
    return all;
  }

 private:
  std::vector<std::unique_ptr<RecordedRun>> runs_;
  std::vector<std::unique_ptr<RecordingProtocol>> protocols_;
};

template <class Abortable>
void run(StepWorld& world, const Schedule& schedule, Abortable& protocol) {
  world.before_step = [&](size_t step) {
    if (schedule.abort_before_step == step) protocol.request_abort("somebody \"else\" \xc3\xa9");
  };
  world.run(schedule.deviations, schedule.chaos);
}

std::unique_ptr<StoreCore> store_in_memory() {
  StoreOptions options;
  options.chunk_bytes = 16;
  options.clock = [] { return TimePoint::from_ns(1'800'000'000'000'000'000); };
  return StoreCore::open(std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>(), options).value();
}

std::shared_ptr<const Valid<StoreLayout>> small_layout(const SmallSide& side) {
  Diagnostics diagnostics;
  return std::make_shared<const Valid<StoreLayout>>(
      layout_of(*side.placement, std::nullopt, ObjectOrder::kPlhd, kPageTokens, "small", diagnostics).value());
}

std::vector<ParticipantId> participants_of(const SmallSide& side) {
  std::vector<ParticipantId> participants;
  for (const BindingPointer& binding : side.bindings) participants.push_back((*binding)->participant);
  return participants;
}

void add_runtimes(StepWorld& world, SmallSide& side, Role role) {
  for (size_t i = 0; i < side.bindings.size(); ++i)
    world.add_runtime((*side.bindings[i])->participant, role, side.bindings[i], *side.bytes[i]);
}

class EveryPage : public PageInventory {
 public:
  bool has(const PageKey&, const Sha256Digest&, const ObjectKey&, PageObject) const override { return true; }
};

}  // namespace

std::string Schedule::to_text() const {
  std::string text = fmt::format("seed {}, chaos {}", seed, chaos);
  for (const ScheduledDeviation& each : deviations) text += ", " + each.to_text();
  if (abort_before_step) text += fmt::format(", abort before step {}", *abort_before_step);
  return text;
}

RecordedRuns record_transfer(const Schedule& schedule) {
  SmallTransfer transfer({.tp = 2}, {.pp = 2}, true, 5, schedule.seed);
  StepWorld world(schedule.seed);
  Recordings recordings;
  const CoordinatorOptions& options = transfer.coordinator_options;
  uint64_t number = 0;
  transfer.join(world, [&](const PeerId& peer, Protocol& protocol) -> Protocol& {
    if (peer == PeerId("coordinator")) return recordings.wrap(peer.text(), protocol, options);
    const Role role = peer.text().starts_with("source") ? Role::kSource : Role::kTarget;
    const ParticipantId participant(peer.text().substr(peer.text().find('/') + 1));
    return recordings.wrap(peer.text(), protocol, role, transfer.participant_options(participant, ++number),
                           record_of(options).value().transfer);
  });
  run(world, schedule, *transfer.coordinator);
  return recordings.take(world.step_count());
}

RecordedStore::RecordedStore()
    : schema_(small_schema()),
      snapshot_(std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(schema_, Range(0, 8)))),
      source_(small_side(schema_, {.tp = 2}, "prefill", *snapshot_, 4, 1)),
      target_(small_side(schema_, {.pp = 2}, "decode", *snapshot_, 2, 2, 7)),
      layout_(small_layout(source_)),
      store_(store_in_memory()) {
  write_items(source_);
  const std::vector<uint32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  page_keys_ = page_keys(make_page_domain(*snapshot_, kPageTokens).value(), tokens);
}

UploadOptions RecordedStore::upload_options(const std::string& txn, bool pages) const {
  UploadOptions options;
  options.txn = TxnId(txn);
  options.tenant = (*snapshot_)->tenant;
  KvUpload upload;
  upload.documents = UploadDocuments{source_.placement, snapshot_, layout_};
  if (pages) upload.page_keys = page_keys_;
  options.planner = std::make_shared<const KvUploadPlanner>(std::move(upload));
  options.participants = participants_of(source_);
  options.ttl = Duration::from_s(3600);
  return options;
}

RecordedRuns RecordedStore::record_upload(const Schedule& schedule, bool pages) {
  UploadOptions options = upload_options(fmt::format("upload-{}", ++upload_count_), pages);
  options.seed = schedule.seed;
  Upload upload(options);
  Recordings recordings;
  StepWorld world(schedule.seed);
  world.set_store(*store_);
  add_runtimes(world, source_, Role::kSource);
  world.add(PeerId("upload"), Role::kSource, recordings.wrap(pages ? "upload of pages" : "upload", upload, options));
  run(world, schedule, upload);
  return recordings.take(world.step_count());
}

RestoreOptions RecordedStore::restore_options(bool pages) const {
  RestoreOptions options;
  options.operation = OperationId("op");
  options.attempt = AttemptId("attempt 1");
  KvRestore restore;
  restore.target = target_.placement;
  restore.limits.get_bytes_max = 32;  // several gets of an object
  restore.what = digest(*snapshot_);
  options.participants = participants_of(target_);
  options.lease.holder = "restore";
  const auto planned = [&] {
    options.planner = std::make_shared<const KvRestorePlanner>(std::move(restore));
    return options;
  };
  if (!pages) return planned();
  const LayoutCatalog empty(make_page_domain(*snapshot_, kPageTokens).value());
  LayoutCatalog catalog = empty.with_layout(*layout_, 0).value();
  PrefixMatch match = match_prefix(catalog, page_keys_, EveryPage()).value();
  restore.what = std::make_shared<const PrefixRestore>(
      PrefixRestore{std::move(catalog), std::move(match), page_keys_, *snapshot_});
  return planned();
}

RecordedRuns RecordedStore::record_restore(const Schedule& schedule, bool pages) {
  if (store_->stats().value().snapshots == 0) record_upload({}, false);
  if (store_->stats().value().page_publications == 0) record_upload({}, true);
  RestoreOptions options = restore_options(pages);
  options.seed = schedule.seed;
  Restore restore(options);
  Recordings recordings;
  StepWorld world(schedule.seed);
  world.set_store(*store_);
  add_runtimes(world, target_, Role::kTarget);
  world.add(PeerId("restore"), Role::kTarget,
            recordings.wrap(pages ? "restore of pages" : "restore", restore, options));
  run(world, schedule, restore);
  return recordings.take(world.step_count());
}

const std::vector<RecordedRun>& plain_recordings() {
  static const std::vector<RecordedRun> runs = [] {
    std::vector<RecordedRun> all = record_transfer({}).runs;
    RecordedStore store;
    for (const bool pages : {false, true})
      for (const RecordedRuns& each : {store.record_upload({}, pages), store.record_restore({}, pages)})
        all.insert(all.end(), each.runs.begin(), each.runs.end());
    return all;
  }();
  return runs;
}

const std::string& recording_of(std::string_view name) {
  for (const RecordedRun& run : plain_recordings())
    if (run.name == name) return run.text;
  ADD_FAILURE() << name;
  return plain_recordings().front().text;
}

std::vector<std::string> recording_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string recording_text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool is_round(const std::string& line) { return line.find("\"round\":") != std::string::npos; }

}  // namespace crossdock::testing
