// A store against a model of it, over random sequences of everything that can be asked of it, restarts included: after
// each step the store lists, counts and reads back exactly what the model says (I2, I4).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/small_store.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kSnapshots = 3;
constexpr uint64_t kPages = 5;
constexpr Duration kTxnLease = Duration::from_s(40);

struct ModelTxn {
  TxnPhase phase = TxnPhase::kOpen;
  std::optional<uint64_t> snapshot;  // its number; empty: pages
  TimePoint begun;
  TimePoint lease_end;
  std::map<std::string, StoredObject> objects;
  std::set<uint64_t> pages;
  std::optional<uint64_t> sequence;
};

struct ModelPublication {
  std::optional<uint64_t> snapshot;
  uint64_t object_count = 0;
  uint64_t bytes = 0;
  std::optional<TimePoint> expires;
  bool removed = false;
  std::set<std::string> pins;
  bool has_data = false;
};

struct ModelLease {
  TimePoint end;
  std::set<uint64_t> sequences;
  Found found;
  std::vector<ObjectBytes> bytes;  // of each object found
};

class Model {
 public:
  std::map<std::string, ModelTxn> txns;
  std::map<uint64_t, ModelPublication> publications;
  std::map<uint64_t, uint64_t> page_owners;  // by page: the publication that it is found through
  std::map<LeaseId, ModelLease> leases;
  TimePoint now;
  uint64_t last_sequence = 0;

  bool is_live(uint64_t sequence) const {
    const auto found = publications.find(sequence);
    if (found == publications.end() || found->second.removed) return false;
    const ModelPublication& publication = found->second;
    return !publication.expires || *publication.expires > now || !publication.pins.empty();
  }
  std::optional<uint64_t> of_snapshot(uint64_t snapshot) const {
    for (const auto& [sequence, publication] : publications)
      if (publication.snapshot == snapshot && !publication.removed) return sequence;
    return std::nullopt;
  }
  uint64_t lease_count(uint64_t sequence) const {
    uint64_t count = 0;
    for (const auto& [id, lease] : leases) count += lease.sequences.contains(sequence);
    return count;
  }
  void mark_removed(uint64_t sequence) {
    publications.at(sequence).removed = true;
    std::erase_if(page_owners, [&](const auto& page) { return page.second == sequence; });
  }
  void drop_if_free(uint64_t sequence) {
    if (publications.at(sequence).removed && lease_count(sequence) == 0) publications.erase(sequence);
  }
  void abort(ModelTxn& txn) { txn.phase = TxnPhase::kAborted, txn.objects.clear(), txn.pages.clear(); }
  void collect() {
    for (auto& [name, txn] : txns)
      if (txn.phase == TxnPhase::kOpen && txn.lease_end <= now) abort(txn);
    std::erase_if(leases, [&](const auto& lease) { return lease.second.end <= now; });
    std::vector<uint64_t> all;
    for (const auto& [sequence, publication] : publications) all.push_back(sequence);
    for (const uint64_t sequence : all) {
      if (!publications.at(sequence).removed && !is_live(sequence)) mark_removed(sequence);
      drop_if_free(sequence);
    }
  }
  // What a process leaves behind: bytes of open uploads are lost, and what was heard of them since their begin.
  void restart() {
    for (auto& [name, txn] : txns)
      if (txn.phase == TxnPhase::kOpen) txn.objects.clear(), txn.pages.clear(), txn.lease_end = txn.begun + kTxnLease;
    collect();
  }
};

class ModelRun {
 public:
  explicit ModelRun(uint64_t seed) : rng_(seed) {
    store_.options.ledger.closed_kept = Duration::from_s(1'000'000'000);
    EXPECT_TRUE(store_.open().ok());
    model_.now = store_.now;
  }

  void step() {
    model_.now = store_.now;
    switch (rng_.below(16)) {
      case 0: return begin();
      case 1:
      case 2:
      case 3: return put();
      case 4:
      case 5: return commit();
      case 6: return rng_.chance(1, 3) ? abort() : begin();
      case 7: return remove();
      case 8: return pin();
      case 9: return unpin();
      case 10:
      case 11: return look_up();
      case 12: return read();
      case 13: return release();
      case 14: return pass();
      default: return rng_.chance(1, 2) ? collect() : reopen();
    }
  }

  void check() {
    const std::vector<PublicationInfo> infos = store_.core().list().value();
    StoreStats expected;
    auto info = infos.begin();
    ASSERT_EQ(infos.size(), model_.publications.size()) << last_;
    for (const auto& [sequence, publication] : model_.publications) {
      EXPECT_EQ(info->sequence, sequence) << last_;
      EXPECT_EQ(info->content.has_value(), publication.snapshot.has_value());
      EXPECT_EQ(info->object_count, publication.object_count);
      EXPECT_EQ(info->bytes, publication.bytes);
      EXPECT_EQ(info->expires, publication.expires);
      EXPECT_EQ(info->removed, publication.removed) << last_ << " publication " << sequence;
      EXPECT_EQ(info->pins, std::vector<std::string>(publication.pins.begin(), publication.pins.end()));
      EXPECT_EQ(info->lease_count, model_.lease_count(sequence)) << last_;
      ++info;
      expected.segments += publication.has_data;
      expected.pins += publication.pins.size();
      if (publication.removed) {
        ++expected.removed;
        expected.removed_bytes += publication.bytes;
        continue;
      }
      ++(publication.snapshot ? expected.snapshots : expected.page_publications);
      expected.objects += publication.object_count;
      expected.bytes += publication.bytes;
    }
    for (const auto& [name, txn] : model_.txns) expected.open_transactions += txn.phase == TxnPhase::kOpen;
    expected.leases = model_.leases.size();
    const StoreStats actual = store_.stats();
    expected.staging_bytes_most = actual.staging_bytes_most;
    EXPECT_TRUE(actual == expected) << last_ << ": segments " << actual.segments << " not " << expected.segments
                                    << ", open " << actual.open_transactions << " not " << expected.open_transactions
                                    << ", leases " << actual.leases << " not " << expected.leases;
    EXPECT_EQ(store_.tables.all_chunks().segments().value().size(), expected.segments) << "I4 " << last_;
  }

  // No lease is held, and everything has expired: nothing is left but publications without end.
  void check_the_end() {
    store_.pass(Duration::from_s(100'000));
    model_.now = store_.now;
    collect();
    check();
    EXPECT_EQ(model_.leases.size(), 0u);
    EXPECT_TRUE(store_.core().verify({}).value().damaged.empty());
  }

 private:
  std::string any_txn() const { return fmt::format("txn{}", rng_value_ % std::max<uint64_t>(txn_count_, 1)); }
  void draw() { rng_value_ = rng_.next(); }
  void note(std::string what) { last_ = std::move(what); }

  void begin() {
    draw();
    const bool is_new = rng_.chance(3, 4);
    const std::string name = is_new ? fmt::format("txn{}", txn_count_++) : any_txn();
    std::optional<uint64_t> snapshot;
    if (rng_.chance(1, 2)) snapshot = rng_.below(kSnapshots);
    note("begin " + name);
    UploadTarget target{"team-a", std::nullopt, kTxnLease};
    if (snapshot) target.content = digest(numbered_snapshot(*snapshot));
    const Result<TxnState> state = store_.core().begin(TxnId(name), target);
    const auto known = model_.txns.find(name);
    if (known != model_.txns.end()) {
      if (known->second.phase == TxnPhase::kAborted || known->second.snapshot == snapshot) {
        ASSERT_TRUE(state.ok()) << last_ << state.status().message();
        EXPECT_EQ(state.value().phase, known->second.phase);
        if (known->second.phase == TxnPhase::kOpen) known->second.lease_end = model_.now + kTxnLease;
      } else {
        EXPECT_EQ(state.status().code(), Code::kConflict) << last_;
      }
      return;
    }
    if (snapshot && model_.of_snapshot(*snapshot) && model_.is_live(*model_.of_snapshot(*snapshot))) {
      EXPECT_EQ(state.status().code(), Code::kConflict) << last_;
      return;
    }
    ASSERT_TRUE(state.ok()) << last_ << state.status().message();
    EXPECT_EQ(state.value().phase, TxnPhase::kOpen);
    ModelTxn txn;
    txn.snapshot = snapshot;
    txn.begun = model_.now;
    txn.lease_end = model_.now + kTxnLease;
    model_.txns[name] = txn;
  }

  void put() {
    draw();
    const std::string name = any_txn();
    const auto txn = model_.txns.find(name);
    const bool of_snapshot = txn != model_.txns.end() && txn->second.snapshot;
    const uint64_t number = of_snapshot ? rng_.below(2) : rng_.below(kPages);
    const std::string object = of_snapshot ? kSnapshotObjects[number] : fmt::format("page{}", number);
    note(fmt::format("put {} {}", name, object));
    const Result<StoredObject> stored =
        of_snapshot ? store_.put(TxnId(name), object, snapshot_bytes(*txn->second.snapshot, number), Range(), 2)
                    : store_.put(TxnId(name), object, page_bytes(number), Range(9, 17), 1 + number % 3);
    if (txn == model_.txns.end() || txn->second.phase != TxnPhase::kOpen) {
      EXPECT_EQ(stored.status().code(), Code::kConflict) << last_;
      return;
    }
    ASSERT_TRUE(stored.ok()) << last_ << stored.status().message();
    txn->second.lease_end = model_.now + kTxnLease;
    txn->second.objects[object] = stored.value();
    if (!of_snapshot) txn->second.pages.insert(number);
  }

  void commit() {
    draw();
    const std::string name = any_txn();
    note("commit " + name);
    const auto found = model_.txns.find(name);
    Publication publication;
    if (rng_.chance(1, 3)) publication.ttl = Duration::from_s(static_cast<int64_t>(1 + rng_.below(60)));
    if (found == model_.txns.end()) {
      publication.content = std::vector<PageEntry>();
      EXPECT_EQ(store_.core().commit(TxnId(name), publication).status().code(), Code::kConflict) << last_;
      return;
    }
    ModelTxn& txn = found->second;
    if (txn.snapshot) {
      // Of what is stored, or of what should be.
      std::vector<StoredObject> objects;
      for (size_t i = 0; i < 2; ++i) {
        const auto object = txn.objects.find(kSnapshotObjects[i]);
        objects.push_back(object != txn.objects.end()
                              ? object->second
                              : StoredObject{RegionId(kSnapshotObjects[i]), i == 0 ? 640u : 512u, 640, {1}});
      }
      publication.content = numbered_manifest(*txn.snapshot, objects);
    } else {
      std::vector<PageEntry> entries;
      for (const uint64_t page : txn.pages)
        entries.push_back(PageEntry{numbered_page(page), txn.objects.at(fmt::format("page{}", page))});
      publication.content = std::move(entries);
    }
    const Result<TxnState> state = store_.core().commit(TxnId(name), publication);
    if (txn.phase != TxnPhase::kOpen) {
      ASSERT_TRUE(state.ok()) << last_;
      EXPECT_EQ(state.value().phase, txn.phase) << last_;
      EXPECT_EQ(state.value().sequence, txn.sequence) << last_;
      return;
    }
    txn.lease_end = model_.now + kTxnLease;
    if (txn.snapshot && txn.objects.size() < 2) {
      EXPECT_EQ(state.status().code(), Code::kNotFound) << last_;
      return;
    }
    const std::optional<uint64_t> other = txn.snapshot ? model_.of_snapshot(*txn.snapshot) : std::nullopt;
    if (other && model_.is_live(*other)) {
      EXPECT_EQ(state.status().code(), Code::kConflict) << last_;
      return;
    }
    ASSERT_TRUE(state.ok()) << last_ << state.status().message();
    if (other) model_.mark_removed(*other);
    ASSERT_GT(state.value().sequence.value_or(0), model_.last_sequence) << "sequences are given once";
    model_.last_sequence = *state.value().sequence;
    ModelPublication made;
    made.snapshot = txn.snapshot;
    made.object_count = txn.objects.size();
    for (const auto& [id, object] : txn.objects) made.bytes += object.bytes;
    made.has_data = !txn.objects.empty();
    if (publication.ttl) made.expires = model_.now + *publication.ttl;
    for (const uint64_t page : txn.pages)
      if (!model_.page_owners.contains(page) || !model_.is_live(model_.page_owners[page]))
        model_.page_owners[page] = model_.last_sequence;
    model_.publications[model_.last_sequence] = made;
    txn.phase = TxnPhase::kCommitted;
    txn.sequence = model_.last_sequence;
    txn.objects.clear();
    txn.pages.clear();
  }

  void abort() {
    draw();
    const std::string name = any_txn();
    note("abort " + name);
    const Result<TxnState> state = store_.core().abort(TxnId(name));
    ASSERT_TRUE(state.ok()) << last_;
    const auto [txn, is_new] = model_.txns.try_emplace(name);
    if (is_new || txn->second.phase == TxnPhase::kOpen) model_.abort(txn->second);
    EXPECT_EQ(state.value().phase, txn->second.phase) << last_;
  }

  void remove() {
    if (rng_.chance(1, 2)) {
      const uint64_t snapshot = rng_.below(kSnapshots);
      note(fmt::format("remove snapshot {}", snapshot));
      const Status status = store_.core().remove(digest(numbered_snapshot(snapshot)));
      bool aborted = false;
      for (auto& [name, txn] : model_.txns)
        if (txn.phase == TxnPhase::kOpen && txn.snapshot == snapshot) model_.abort(txn), aborted = true;
      const std::optional<uint64_t> sequence = model_.of_snapshot(snapshot);
      if (!sequence) {
        EXPECT_EQ(status.code(), aborted ? Code::kOk : Code::kNotFound) << last_;
        return;
      }
      return removed(*sequence, status);
    }
    const uint64_t sequence = rng_.below(model_.last_sequence + 2);
    note(fmt::format("remove publication {}", sequence));
    removed(sequence, store_.core().remove_publication(sequence));
  }

  void removed(uint64_t sequence, const Status& status) {
    const auto found = model_.publications.find(sequence);
    if (found == model_.publications.end() || found->second.removed) {
      EXPECT_EQ(status.code(), Code::kNotFound) << last_;
    } else if (!found->second.pins.empty()) {
      EXPECT_EQ(status.code(), Code::kConflict) << last_;
      EXPECT_NE(status.message().find(*found->second.pins.begin()), std::string::npos) << "the holder is named";
    } else {
      EXPECT_TRUE(status.ok()) << last_ << status.message();
      model_.mark_removed(sequence);
      model_.drop_if_free(sequence);
    }
  }

  void pin() {
    const uint64_t sequence = rng_.below(model_.last_sequence + 2);
    const std::string holder = fmt::format("holder{}", rng_.below(2));
    note(fmt::format("pin {}", sequence));
    const auto found = model_.publications.find(sequence);
    const bool is_there = found != model_.publications.end() && !found->second.removed;
    EXPECT_EQ(store_.core().pin(sequence, holder).code(), is_there ? Code::kOk : Code::kNotFound) << last_;
    if (is_there) found->second.pins.insert(holder);
  }

  void unpin() {
    const uint64_t sequence = rng_.below(model_.last_sequence + 2);
    const std::string holder = fmt::format("holder{}", rng_.below(2));
    note(fmt::format("unpin {}", sequence));
    const auto found = model_.publications.find(sequence);
    const bool was_pinned = found != model_.publications.end() && found->second.pins.erase(holder) > 0;
    EXPECT_EQ(store_.core().unpin(sequence, holder).code(), was_pinned ? Code::kOk : Code::kNotFound) << last_;
  }

  void look_up() {
    ModelLease lease;
    const Duration duration = Duration::from_s(static_cast<int64_t>(1 + rng_.below(50)));
    lease.end = model_.now + duration;
    if (rng_.chance(1, 2)) {
      const uint64_t snapshot = rng_.below(kSnapshots);
      note(fmt::format("look up snapshot {}", snapshot));
      const Result<Found> found = store_.look_up(digest(numbered_snapshot(snapshot)), duration);
      const std::optional<uint64_t> sequence = model_.of_snapshot(snapshot);
      if (!sequence || !model_.is_live(*sequence)) {
        EXPECT_EQ(found.status().code(), Code::kNotFound) << "I2 " << last_;
        return;
      }
      ASSERT_TRUE(found.ok()) << "I2 " << last_ << found.status().message();
      lease.found = found.value();
      lease.sequences = {*sequence};
      ASSERT_EQ(lease.found.objects.size(), 2u);
      for (size_t i = 0; i < 2; ++i) lease.bytes.push_back(snapshot_bytes(snapshot, i));
      EXPECT_EQ(lease.found.manifest->content, digest(numbered_snapshot(snapshot)));
    } else {
      std::vector<PageObjectKey> asked;
      std::vector<PageObjectKey> expected;
      for (uint64_t page = 0; page < kPages; ++page) {
        if (rng_.chance(1, 4)) continue;
        asked.push_back(numbered_page(page));
        const auto owner = model_.page_owners.find(page);
        if (owner == model_.page_owners.end() || !model_.is_live(owner->second)) continue;
        expected.push_back(numbered_page(page));
        lease.bytes.push_back(page_bytes(page));
        lease.sequences.insert(owner->second);
      }
      note(fmt::format("look up {} pages", asked.size()));
      const Result<Found> found = store_.look_up(asked, duration);
      ASSERT_TRUE(found.ok()) << last_;
      EXPECT_EQ(found.value().pages, expected) << "I2 " << last_;
      if (found.value().pages != expected) return;
      lease.found = found.value();
    }
    EXPECT_EQ(lease.found.lease_end, lease.end);
    model_.leases[lease.found.lease] = lease;
  }

  void read() {
    if (model_.leases.empty()) return;
    note("read");
    auto lease = model_.leases.begin();
    std::advance(lease, static_cast<ptrdiff_t>(rng_.below(model_.leases.size())));
    for (size_t i = 0; i < lease->second.bytes.size(); ++i) {
      const Result<ObjectBytes> bytes =
          store_.read(lease->first, lease->second.found.objects[i], &lease->second.bytes[i]);
      if (lease->second.end <= model_.now) {
        EXPECT_EQ(bytes.status().code(), Code::kConflict) << "the lease is over";
      } else {
        ASSERT_TRUE(bytes.ok()) << "who holds a lease can finish: " << bytes.status().message();
        EXPECT_TRUE(bytes.value() == lease->second.bytes[i]);
      }
    }
  }

  void release() {
    if (model_.leases.empty()) return;
    auto lease = model_.leases.begin();
    std::advance(lease, static_cast<ptrdiff_t>(rng_.below(model_.leases.size())));
    note(fmt::format("release {}", lease->first.value()));
    EXPECT_TRUE(store_.core().release(lease->first).ok());
    EXPECT_TRUE(store_.core().release(lease->first).ok()) << "repeated";
    const std::set<uint64_t> sequences = lease->second.sequences;
    model_.leases.erase(lease);
    for (const uint64_t sequence : sequences)
      if (model_.publications.contains(sequence)) model_.drop_if_free(sequence);
  }

  void pass() {
    note("time passes");
    store_.pass(Duration::from_s(static_cast<int64_t>(1 + rng_.below(25))));
    model_.now = store_.now;
  }

  void collect() {
    note("gc");
    EXPECT_TRUE(store_.core().gc().ok());
    model_.collect();
  }

  void reopen() {
    note("reopen");
    ASSERT_TRUE(store_.open().ok());
    model_.restart();
  }

  Rng rng_;
  SmallStore store_;
  Model model_;
  std::string last_;
  uint64_t txn_count_ = 0;
  uint64_t rng_value_ = 0;
};

TEST(StoreCoreModel, ListsCountsAndReadsBackWhatTheModelSaysAfterEachOfManyRandomSteps) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ModelRun run(seed);
    for (int step = 0; step < 120; ++step) {
      SCOPED_TRACE(fmt::format("seed {} step {}", seed, step));
      run.step();
      run.check();
      if (HasFailure()) return;
    }
    SCOPED_TRACE(fmt::format("seed {} at the end", seed));
    run.check_the_end();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace crossdock::testing
