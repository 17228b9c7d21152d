#include "backends/store/heap_tables.h"

#include "base/check.h"

namespace crossdock {

// Tables with the contract of tables.h and without a disk: the same checks as RocksDB makes are CHECKs here, so that
// tests of the store find a wrong order of calls without one.
Result<std::optional<std::string>> HeapRecordTable::get(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(key);
  return found == records_.end() ? std::optional<std::string>() : std::optional(found->second);
}

// The mutex makes the batch atomic for readers. Durability means nothing here: the table lives as long as its process.
Status HeapRecordTable::write(std::span<const RecordChange> changes, bool) {
  const std::lock_guard lock(mutex_);
  for (const RecordChange& change : changes) {
    if (change.value)
      records_[change.key] = *change.value;
    else
      records_.erase(change.key);
  }
  return Status();
}

Status HeapRecordTable::scan(const std::string& prefix,
                             const std::function<bool(std::string_view, std::string_view)>& visit) const {
  std::vector<std::pair<std::string, std::string>> found;  // so that visit() may use the table
  {
    const std::lock_guard lock(mutex_);
    for (auto it = records_.lower_bound(prefix); it != records_.end() && it->first.starts_with(prefix); ++it)
      found.emplace_back(*it);
  }
  for (const auto& [key, value] : found)
    if (!visit(key, value)) break;
  return Status();
}

class HeapChunkTable::Writer : public SegmentWriter {
 public:
  explicit Writer(uint64_t segment) : segment_(segment) {}

  Status append(ObjectNumber object, uint32_t chunk, std::span<const std::byte> bytes) override {
    CHECK(segment_of(object) == segment_ && !finished_);
    // Ascending order, which a file of sorted keys requires.
    CHECK(chunks_->empty() || chunks_->rbegin()->first < std::pair(object, chunk));
    chunks_->emplace(std::pair(object, chunk), std::vector(bytes.begin(), bytes.end()));
    bytes_ += bytes.size();
    return Status();
  }
  uint64_t bytes() const override { return bytes_; }
  Status finish() override {
    finished_ = true;
    return Status();
  }

  uint64_t segment() const { return segment_; }
  std::shared_ptr<const Chunks> take() {
    CHECK(finished_);
    return std::move(chunks_);
  }

 private:
  uint64_t segment_;
  uint64_t bytes_ = 0;
  bool finished_ = false;
  std::shared_ptr<Chunks> chunks_ = std::make_shared<Chunks>();
};

Result<std::unique_ptr<SegmentWriter>> HeapChunkTable::new_segment(uint64_t segment) {
  return std::unique_ptr<SegmentWriter>(std::make_unique<Writer>(segment));
}

Status HeapChunkTable::add(std::vector<std::unique_ptr<SegmentWriter>> segments) {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<SegmentWriter>& each : segments) {
    auto& writer = static_cast<Writer&>(*each);
    // A segment without a chunk (objects of zeros only) does not exist, as in RocksDB, which has no empty files.
    if (writer.bytes() > 0) CHECK(segments_.emplace(writer.segment(), writer.take()).second);
  }
  return Status();
}

Status HeapChunkTable::read(std::span<const ChunkName> names, const Take& take) const {
  for (size_t i = 0; i < names.size(); ++i) {
    std::shared_ptr<const Chunks> segment;  // stays valid when it is removed during the read
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = segments_.find(segment_of(names[i].object)); found != segments_.end())
        segment = found->second;
    }
    // Without the mutex: a segment that is part of the table does not change any more.
    const auto found = segment == nullptr ? Chunks::const_iterator() : segment->find({names[i].object, names[i].chunk});
    if (segment == nullptr || found == segment->end())
      TRY_STATUS(take(i, false, {}));
    else
      TRY_STATUS(take(i, true, found->second));
  }
  return Status();
}

Status HeapChunkTable::remove(std::span<const uint64_t> segments) {
  const std::lock_guard lock(mutex_);
  for (const uint64_t segment : segments) segments_.erase(segment);
  return Status();
}

Result<std::vector<uint64_t>> HeapChunkTable::segments() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, chunks] : segments_) numbers.push_back(number);
  return numbers;
}

}  // namespace crossdock
