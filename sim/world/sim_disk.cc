#include "sim/world/sim_disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crossdock {

// Modelled: what survives a crash of the store (all of it) and of the machine (what was made durable), a full disk, a
// chunk that is damaged for good, one read that is short or has a wrong byte. Not modelled: the time of a write, and
// damaged records. Bytes that flow to and from the disk take time on its link (sim_store.h).

class SimDisk::Records : public RecordTable {
 public:
  explicit Records(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Result<std::optional<std::string>> get(const std::string& key) const override { return state_->records.get(key); }
  Status write(std::span<const RecordChange> changes, bool durable) override {
    for (const RecordChange& change : changes) {
      TRY(std::optional<std::string> before, state_->records.get(change.key));
      // An undo log: the value before each change, so that lose_unsynced() can go back in reverse order.
      state_->unsynced.push_back(RecordChange{change.key, std::move(before)});
    }
    TRY_STATUS(state_->records.write(changes, durable));
    if (durable) state_->unsynced.clear();  // a log is made durable up to a point
    return Status();
  }
  Status scan(const std::string& prefix,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    return state_->records.scan(prefix, visit);
  }

 private:
  std::shared_ptr<State> state_;
};

// Newest change first: of a key that was changed twice, the oldest value is what remains. The chunks need none of it,
// because add() promises to be durable when it returns.
void SimDisk::lose_unsynced() {
  std::reverse(state_->unsynced.begin(), state_->unsynced.end());
  const Status written = state_->records.write(std::exchange(state_->unsynced, {}), true);
  CHECK(written.ok());  // it is memory
}

class SimDisk::Writer : public SegmentWriter {
 public:
  Writer(std::shared_ptr<State> state, uint64_t number, std::unique_ptr<SegmentWriter> inside)
      : state_(std::move(state)), number_(number), inside_(std::move(inside)) {}
  // A writer that dies with its store gives its space back, as unfinished files do when the store opens again.
  ~Writer() override {
    if (!is_added_) state_->used_bytes -= bytes_;
  }

  Status append(ObjectNumber object, uint32_t chunk, std::span<const std::byte> bytes) override {
    if (bytes.size() > state_->capacity_bytes || state_->used_bytes > state_->capacity_bytes - bytes.size())
      return Status(Code::kIo, fmt::format("no space left: {} of {} bytes are in use", state_->used_bytes,
                                           state_->capacity_bytes));
    state_->used_bytes += bytes.size();
    bytes_ += bytes.size();
    return inside_->append(object, chunk, bytes);
  }
  uint64_t bytes() const override { return inside_->bytes(); }
  Status finish() override { return inside_->finish(); }

  // What is part of the table from now on.
  std::unique_ptr<SegmentWriter> added() {
    is_added_ = true;
    state_->segment_bytes[number_] = bytes_;
    return std::move(inside_);
  }

 private:
  std::shared_ptr<State> state_;
  uint64_t number_;
  std::unique_ptr<SegmentWriter> inside_;
  uint64_t bytes_ = 0;
  bool is_added_ = false;
};

class SimDisk::Chunks : public ChunkTable {
 public:
  explicit Chunks(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Result<std::unique_ptr<SegmentWriter>> new_segment(uint64_t segment) override {
    TRY(std::unique_ptr<SegmentWriter> inside, state_->chunks.new_segment(segment));
    return std::unique_ptr<SegmentWriter>(std::make_unique<Writer>(state_, segment, std::move(inside)));
  }
  Status add(std::vector<std::unique_ptr<SegmentWriter>> segments) override {
    std::vector<std::unique_ptr<SegmentWriter>> inside;
    for (const auto& segment : segments) inside.push_back(static_cast<Writer&>(*segment).added());
    return state_->chunks.add(std::move(inside));
  }
  Status read(std::span<const ChunkName> names, const Take& take) const override {
    return state_->chunks.read(names, [&](size_t i, bool found, std::span<const std::byte> bytes) {
      if (!found) return take(i, found, bytes);
      const std::pair<ObjectNumber, uint32_t> name(names[i].object, names[i].chunk);
      if (state_->corrupt_nth && state_->read_count++ == *state_->corrupt_nth) state_->corrupt = name;
      // Damage is made on the way out and the stored bytes stay right; for a reader that is the same.
      const bool is_wrong = state_->corrupt == name || std::exchange(state_->is_flipped, false);
      if (std::exchange(state_->is_short, false) && !bytes.empty())
        return take(i, found, bytes.first(bytes.size() - 1));
      if (!is_wrong || bytes.empty()) return take(i, found, bytes);
      std::vector<std::byte> wrong(bytes.begin(), bytes.end());
      wrong[wrong.size() / 2] ^= std::byte{4};
      return take(i, found, wrong);
    });
  }
  Status remove(std::span<const uint64_t> segments) override {
    for (const uint64_t segment : segments)
      if (const auto found = state_->segment_bytes.find(segment); found != state_->segment_bytes.end()) {
        state_->used_bytes -= found->second;
        state_->segment_bytes.erase(found);
      }
    return state_->chunks.remove(segments);
  }
  Result<std::vector<uint64_t>> segments() const override { return state_->chunks.segments(); }

 private:
  std::shared_ptr<State> state_;
};

std::unique_ptr<RecordTable> SimDisk::records() const { return std::make_unique<Records>(state_); }
std::unique_ptr<ChunkTable> SimDisk::chunks() const { return std::make_unique<Chunks>(state_); }

}  // namespace crossdock
