#include "tests/crash/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "model/kv/snapshot.h"
#include "model/wire/documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kPassMaxS = 15;

// Answers to a step that may not apply, as removing what is not there.
bool is_answer(const Status& status) {
  return status.ok() || status.code() == Code::kConflict || status.code() == Code::kNotFound;
}

}  // namespace

class Workload::Thread {
 public:
  Thread(Workload& all, uint32_t number)
      : all_(all),
        options_(all.options_),
        number_(number),
        rng_(Rng(options_.seed).fork(uint64_t{options_.run} * 100 + number)) {}

  void run() {
    for (uint32_t step = 0; step < options_.step_count && !all_.stopped_; ++step) take_step();
  }

 private:
  StoreCore& core() { return *all_.store_.core; }
  std::string any_name() { return snapshot_name(number_, static_cast<uint32_t>(rng_.below(kSnapshotsPerThread))); }
  TxnId new_txn() { return TxnId(fmt::format("run-{}-{}-{}", options_.run, number_, ++txn_count_)); }
  UploadTarget target(std::optional<SnapshotId> snapshot, Duration lease = kLongLease) const {
    return {tenant_of(number_), snapshot, lease};
  }

  void take_step() {
    const uint64_t draw = rng_.below(100);
    if (draw < 30) return upload();
    if (draw < 37) return abort();
    if (draw < 44) return abandon();
    if (draw < 58) return remove();
    if (draw < 63) return pin();
    if (draw < 68) return unpin();
    if (draw < 74) return read();
    if (draw < 77) return read_of_another_thread();
    if (draw < 79) return read_again();
    if (draw < 86) return publish_pages();
    if (draw < 89) return remove_pages();
    if (draw < 91) return read_pages();
    if (draw < 94) return collect();
    if (draw < 97) return pass();
    if (options_.opens_again) open_again();
  }

  Event event(StepKind kind, std::string name = "", const TxnId& txn = TxnId()) const {
    Event made;
    made.thread = number_;
    made.kind = kind;
    made.name = std::move(name);
    made.txn = txn.text();
    return made;
  }
  void begins(const Event& event) { options_.tell(event); }
  // The store's answer to a step. Without an answer it is unknown whether the step happened.
  void ended(Event event, const Status& status) {
    if (!is_answer(status)) {
      all_.expect(status, to_text(event));
      return;
    }
    event.done = true;
    event.code = status.code();
    options_.tell(event);
  }

  Status put_some(const TxnId& txn, const std::vector<ObjectPlan>& objects) {
    const size_t count = rng_.below(objects.size());
    for (size_t i = 0; i < count; ++i)
      TRY_STATUS(put_object(core(), all_.memory_, txn, objects[i], options_.seed).status());
    return put_object(core(), all_.memory_, txn, objects[count], options_.seed, 1).status();
  }

  Status publish(const TxnId& txn, const std::vector<ObjectPlan>& objects, const UploadTarget& upload,
                 const std::function<Publication(std::vector<StoredObject>)>& publication, uint64_t& sequence) {
    TRY_STATUS(core().begin(txn, upload).status());
    std::vector<StoredObject> stored;
    for (const ObjectPlan& object : objects) {
      TRY(std::optional<StoredObject> whole, put_object(core(), all_.memory_, txn, object, options_.seed));
      if (!whole) return Status(Code::kInvalidArgument, "no receipt completes " + object.id);
      stored.push_back(std::move(*whole));
    }
    TRY(const TxnState state, core().commit(txn, publication(std::move(stored))));
    if (state.phase != TxnPhase::kCommitted) return Status(Code::kConflict, state.reason);
    sequence = *state.sequence;
    return Status();
  }

  void upload() {
    const std::string name = any_name();
    Event step = event(StepKind::kUpload, name, new_txn());
    step.expires = rng_.chance(1, 5);
    begins(step);
    const std::vector<ObjectPlan> objects = snapshot_objects(options_.seed, name);
    const auto publication = [&](std::vector<StoredObject> stored) {
      return Publication{manifest_of(name, std::move(stored)), step.expires ? std::optional(kExpiry) : std::nullopt};
    };
    const Status status = publish(TxnId(step.txn), objects, target(snapshot_id(name)), publication, step.sequence);
    if (status.ok()) step.digest = digest_of(options_.seed, objects);
    ended(step, status);
  }

  void abort() {
    const std::string name = any_name();
    const TxnId txn = new_txn();
    const Event step = event(StepKind::kAbort, name, txn);
    begins(step);
    Status status = core().begin(txn, target(snapshot_id(name))).status();
    if (status.ok()) status = put_some(txn, snapshot_objects(options_.seed, name));
    if (status.ok()) status = core().abort(txn).status();
    ended(step, status);
  }

  void abandon() {
    const std::string name = any_name();
    const TxnId txn = new_txn();
    const Event step = event(StepKind::kAbandon, name, txn);
    begins(step);
    const Duration lease = rng_.chance(1, 2) ? kShortLease : kLongLease;
    Status status = core().begin(txn, target(snapshot_id(name), lease)).status();
    if (status.ok()) status = put_some(txn, snapshot_objects(options_.seed, name));
    ended(step, status);
  }

  void remove() {
    const Event step = event(StepKind::kRemove, any_name());
    begins(step);
    ended(step, core().remove(snapshot_id(step.name)));
  }

  // The publication that look-ups find a snapshot in; 0, which none has, when there is none.
  Result<uint64_t> sequence_of(const std::string& name) {
    TRY(const std::vector<PublicationInfo> infos, core().list());
    const SnapshotId id = snapshot_id(name);
    for (const PublicationInfo& info : infos)
      if (info.content == id && !info.removed) return info.sequence;
    return uint64_t{0};
  }

  void pin() {
    const Event step = event(StepKind::kPin, any_name());
    begins(step);
    const Result<uint64_t> sequence = sequence_of(step.name);
    ended(step, sequence.ok() ? core().pin(sequence.value(), "pin") : sequence.status());
  }

  void unpin() {
    const Event step = event(StepKind::kUnpin, any_name());
    begins(step);
    const Result<uint64_t> sequence = sequence_of(step.name);
    ended(step, sequence.ok() ? core().unpin(sequence.value(), "pin") : sequence.status());
  }

  // Reads all of a snapshot; some leases are kept until the end.
  Status look(const std::string& name, std::string* digest) {
    TRY(const Found found, core().lookup(Lookup{snapshot_id(name), LeaseRequest{"reader", kLongLease}}));
    if (const Status status = check_snapshot(core(), all_.memory_, found, name, options_.seed); !status.ok())
      return is_answer(status) ? Status(Code::kDataLoss, status.message()) : status;  // under a lease nothing goes away
    if (digest != nullptr) *digest = digest_of(options_.seed, snapshot_objects(options_.seed, name));
    if (rng_.chance(1, 4))
      held_.emplace_back(name, found);
    else
      TRY_STATUS(core().release(found.lease));
    return Status();
  }

  void read() {
    Event step = event(StepKind::kRead, any_name());
    begins(step);
    const Status status = look(step.name, &step.digest);
    ended(step, status);
  }

  void read_of_another_thread() {
    const auto other = static_cast<uint32_t>(rng_.below(options_.thread_count));
    const std::string name = snapshot_name(other, static_cast<uint32_t>(rng_.below(kSnapshotsPerThread)));
    if (const Status status = look(name, nullptr); !is_answer(status)) all_.expect(status, "read " + name);
  }

  void read_again() {
    if (held_.empty()) return;
    const auto& [name, found] = held_[rng_.below(held_.size())];
    all_.expect(check_snapshot(core(), all_.memory_, found, name, options_.seed), "read again " + name);
  }

  void publish_pages() {
    Event step = event(StepKind::kPages, "", new_txn());
    std::set<uint64_t> pages;
    for (uint64_t left = 1 + rng_.below(4); left > 0; --left)
      pages.insert(page_number(number_, static_cast<uint32_t>(rng_.below(kPagesPerThread))));
    step.pages.assign(pages.begin(), pages.end());
    begins(step);
    std::vector<ObjectPlan> objects;
    for (const uint64_t page : step.pages) objects.push_back(page_object(options_.seed, page));
    const auto publication = [&](std::vector<StoredObject> stored) {
      std::vector<PageEntry> entries;
      for (size_t i = 0; i < stored.size(); ++i) entries.push_back({page_object_key(step.pages[i]), stored[i]});
      return Publication{std::move(entries), std::nullopt};
    };
    const Status status = publish(TxnId(step.txn), objects, target(std::nullopt), publication, step.sequence);
    if (status.ok()) step.digest = digest_of(options_.seed, objects);
    ended(step, status);
  }

  void remove_pages() {
    Event step = event(StepKind::kRemovePages);
    const Result<std::vector<PublicationInfo>> infos = core().list();
    if (!all_.expect(infos.status(), "list")) return;
    std::vector<uint64_t> own;
    for (const PublicationInfo& info : infos.value())
      if (!info.content && !info.removed && info.tenant == tenant_of(number_)) own.push_back(info.sequence);
    if (own.empty()) return;
    step.sequence = own[rng_.below(own.size())];
    begins(step);
    ended(step, core().remove_publication(step.sequence));
  }

  Status look_at_pages(std::vector<uint64_t>& found_pages) {
    std::vector<PageObjectKey> keys;
    for (uint32_t i = 0; i < kPagesPerThread; ++i) keys.push_back(page_object_key(page_number(number_, i)));
    TRY(const Found found, core().lookup(Lookup{keys, LeaseRequest{"reader", kLongLease}}));
    for (size_t i = 0; i < found.pages.size(); ++i) {
      const auto at = static_cast<uint32_t>(std::find(keys.begin(), keys.end(), found.pages[i]) - keys.begin());
      found_pages.push_back(page_number(number_, at));
      const Status status = check_page(core(), all_.memory_, found, i, found_pages.back(), options_.seed);
      if (!status.ok()) return is_answer(status) ? Status(Code::kDataLoss, status.message()) : status;
    }
    return core().release(found.lease);
  }

  void read_pages() {
    Event step = event(StepKind::kReadPages);
    begins(step);
    const Status status = look_at_pages(step.pages);
    ended(step, status);
  }

  void collect() {
    const Event step = event(StepKind::kCollect);
    begins(step);
    ended(step, core().gc().status());
  }

  void pass() { all_.now_ns_ += Duration::from_s(static_cast<int64_t>(1 + rng_.below(kPassMaxS))).ns(); }

  void open_again() {
    const Event step = event(StepKind::kOpen);
    begins(step);
    if (all_.open()) ended(step, Status());
  }

  Workload& all_;
  const WorkloadOptions& options_;
  const uint32_t number_;
  Rng rng_;
  uint64_t txn_count_ = 0;
  std::vector<std::pair<std::string, Found>> held_;
};

Workload::Workload(WorkloadOptions options) : options_(std::move(options)), now_ns_(begin_of_run(options_.run).ns()) {}

Workload::~Workload() = default;

bool Workload::open() {
  store_ = OpenStore();
  StoreOptions store = small_options();
  store.clock = [this] { return now(); };
  store.crash_point = options_.crash_point;
  Result<OpenStore> opened = open_store(options_.tables, std::move(store));
  if (!expect(opened.status(), "open")) return false;
  store_ = std::move(opened).value();
  return true;
}

bool Workload::expect(const Status& status, const std::string& what) {
  if (status.ok()) return true;
  if (!options_.complain(fmt::format("{}: {} ({})", what, status.message(), code_name(status.code())))) stopped_ = true;
  return false;
}

void Workload::run() {
  CHECK(!options_.opens_again || options_.thread_count == 1);
  Event opened;
  options_.tell(opened);
  if (!open()) return;
  opened.done = true;
  options_.tell(opened);
  std::vector<std::thread> threads;
  for (uint32_t number = 1; number < options_.thread_count; ++number)
    threads.emplace_back([this, number] { Thread(*this, number).run(); });
  Thread(*this, 0).run();
  for (std::thread& thread : threads) thread.join();
  store_ = OpenStore();
}

}  // namespace crossdock::testing
