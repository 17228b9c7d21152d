#include "backends/rocksdb/write_behind.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include "backends/memory/strided_copy.h"
#include "base/check.h"

namespace crossdock {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

constexpr size_t kInFlightMax = 4;
constexpr size_t kThreadsMax = 4;

// What is written and in what order:
//
//   Append -> the file's current page -> (full) -> its queue -> one thread at a time -> the file
//
// A queue is in `ready_` at most once, and `is_queued` until its last piece is written; so the pieces of a file are
// written in order by one thread after the other, while several files are written at once. The last, partial page is
// written by the caller of Sync() or Close(), when nothing of the file is under way any more.

// Past the cache, since only the disk reads it: a quarter of the CPU time of a put (bench/README.md).
void copy_to_page(const Slice& data, char* to) {
  CopyStep step;
  step.bytes = data.size();
  copy_step(step, std::as_bytes(std::span(data.data(), data.size())),
            std::as_writable_bytes(std::span(to, data.size())), CopyStores::kStreaming);
}

}  // namespace

class WriteBehind::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<WriteBehind> owner)
      : FSWritableFileOwnerWrapper(std::move(file)), owner_(std::move(owner)) {
    queue_.file = target();
    CHECK(kHugePageBytes % target()->GetRequiredBufferAlignment() == 0);
  }
  ~File() override {
    owner_->wait(queue_).PermitUncheckedError();  // a thread may be using the file
    if (page_ != nullptr) owner_->pages_->give(std::move(page_));
  }

  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    IOStatus status = owner_->status(queue_);
    for (size_t done = 0; done < data.size() && status.ok();) {
      if (page_ == nullptr) page_ = owner_->pages_->take();
      if (page_->data() == nullptr) return owner_->settle(queue_, IOStatus::IOError("no memory for a buffer"));
      // Never 0: a page that is full is posted at once.
      const size_t length = std::min(data.size() - done, kHugePageBytes - used_);
      copy_to_page(Slice(data.data() + done, length), page_->data() + used_);
      done += length;
      used_ += length;
      if (used_ < kHugePageBytes) break;
      owner_->post(queue_, Piece{std::move(page_), offset_});
      offset_ += std::exchange(used_, 0);
      // The next page begins: none of its bytes are in the file.
      written_ = 0;
      status = owner_->status(queue_);
    }
    return status;
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }

  IOStatus Flush(const IOOptions&, IODebugContext*) override { return owner_->status(queue_); }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    IOStatus status = write_all(options, context);
    return status.ok() ? owner_->settle(queue_, target()->Sync(options, context)) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    IOStatus status = write_all(options, context);
    return status.ok() ? owner_->settle(queue_, target()->Fsync(options, context)) : status;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* context) override {
    IOStatus status = write_all(options, context);
    // The file is closed in any case; the first error is the one that is returned.
    if (IOStatus closed = target()->Close(options, context); status.ok()) return closed;
    return status;
  }

  bool use_direct_io() const override { return false; }  // what is appended need not be aligned
  bool IsSyncThreadSafe() const override { return false; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return offset_ + used_; }
  // Calls that would write to the file past the queue.
  IOStatus PositionedAppend(const Slice&, uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("PositionedAppend");
  }
  IOStatus PositionedAppend(const Slice&, uint64_t, const IOOptions&, const rocksdb::DataVerificationInfo&,
                            IODebugContext*) override {
    return IOStatus::NotSupported("PositionedAppend");
  }
  IOStatus Truncate(uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::NotSupported("Truncate"); }
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }  // nothing is in it
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}

 private:
  IOStatus write_all(const IOOptions& options, IODebugContext* context) {
    IOStatus status = owner_->wait(queue_);
    if (!status.ok() || used_ == written_) return status;
    const size_t alignment = target()->GetRequiredBufferAlignment();
    // Direct writes end at a multiple of the alignment, so the page is written with zeros behind its bytes, and the
    // file is then cut to its length. A page that is filled later is written again as a whole, from the same offset.
    const size_t padded = (used_ + alignment - 1) / alignment * alignment;
    std::memset(page_->data() + used_, 0, padded - used_);
    status = target()->PositionedAppend(Slice(page_->data(), padded), offset_, options, context);
    if (status.ok() && padded != used_) status = target()->Truncate(offset_ + used_, options, context);
    if (!status.ok()) return owner_->settle(queue_, status);
    written_ = used_;
    return status;
  }

  const std::shared_ptr<WriteBehind> owner_;
  Queue queue_;
  std::unique_ptr<HugePage> page_;  // null: empty
  uint64_t offset_ = 0;             // of the page in the file
  size_t used_ = 0;                 // bytes in the page
  size_t written_ = 0;              // of them: in the file too
};

WriteBehind::~WriteBehind() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(in_flight_ == 0);
    stops_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::unique_ptr<rocksdb::FSWritableFile> WriteBehind::wrap(std::unique_ptr<rocksdb::FSWritableFile> file) {
  return std::make_unique<File>(std::move(file), shared_from_this());
}

// Waits for writes only, so it ends.
void WriteBehind::post(Queue& queue, Piece piece) {
  std::unique_lock lock(mutex_);
  start_thread();
  if (threads_.empty()) {
    queue.status = IOStatus::IOError("no thread to write with");
    return;
  }
  // Bounds memory: the caller waits for the disk here, and nowhere else until Sync().
  written_.wait(lock, [this] { return in_flight_ < kInFlightMax; });
  ++in_flight_;
  queue.waiting.push_back(std::move(piece));
  if (!std::exchange(queue.is_queued, true)) ready_.push_back(&queue);
  lock.unlock();
  work_.notify_one();
}

IOStatus WriteBehind::status(const Queue& queue) {
  const std::lock_guard lock(mutex_);
  return queue.status;
}

IOStatus WriteBehind::settle(Queue& queue, IOStatus status) {
  const std::lock_guard lock(mutex_);
  if (queue.status.ok()) queue.status = std::move(status);
  return queue.status;
}

IOStatus WriteBehind::wait(const Queue& queue) {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [&queue] { return !queue.is_queued; });
  return queue.status;
}

void WriteBehind::start_thread() {
  // An idle thread for each queue that is ready, and one more: no new thread is needed.
  if (idle_ > ready_.size() || threads_.size() == kThreadsMax) return;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {  // fewer have to do
  }
}

void WriteBehind::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_.wait(lock, [this] { return stops_ || !ready_.empty(); });
    --idle_;
    if (ready_.empty()) return;
    Queue& queue = *ready_.front();
    ready_.pop_front();
    Piece piece = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    if (queue.status.ok()) {
      lock.unlock();
      IOStatus status =
          queue.file->PositionedAppend(Slice(piece.page->data(), kHugePageBytes), piece.offset, IOOptions(), nullptr);
      lock.lock();
      if (queue.status.ok()) queue.status = std::move(status);
    }
    // Also of a piece that was not written because an earlier one failed: what follows a gap must not reach the file
    // (I2).
    pages_->give(std::move(piece.page));
    --in_flight_;
    // Set and notified with the mutex held. A file that is not queued any more may be destroyed as soon as the mutex is
    // free, so `queue` is not used after this.
    queue.is_queued = !queue.waiting.empty();
    if (queue.is_queued) ready_.push_back(&queue);
    written_.notify_all();
  }
}

}  // namespace crossdock
