// Files that background threads write, so that Append() returns before its bytes are on the disk.
#pragma once

#include <rocksdb/file_system.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "backends/rocksdb/huge_pages.h"

namespace crossdock {

// Appended bytes go into a buffer of 2 MiB; full ones are written to the file in order, one at a time, while the next
// is filled. Up to 4 full buffers wait or are being written at once, those of all files together; then Append() waits.
// So the memory is one buffer for each open file and 8 MiB. Thread-safe; a file is for one thread at a time.
class WriteBehind : public std::enable_shared_from_this<WriteBehind> {
 public:
  explicit WriteBehind(std::shared_ptr<HugePages> pages) : pages_(std::move(pages)) {}
  ~WriteBehind();  // its files are gone
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // A file whose user appends through this. `file` is new and direct: its writes begin and end at multiples of its
  // alignment. Sync(), Fsync() and Close() first wait for all writes and set the exact length. After a write or a sync
  // has failed, every later call returns that error, and nothing more is written: a segment is never handed over with
  // a gap in it (I2).
  std::unique_ptr<rocksdb::FSWritableFile> wrap(std::unique_ptr<rocksdb::FSWritableFile> file);

 private:
  class File;
  struct Piece {
    std::unique_ptr<HugePage> page;
    uint64_t offset = 0;
  };
  // Of one file; under the mutex.
  struct Queue {
    std::deque<Piece> waiting;
    bool is_queued = false;  // in ready_, or a piece of it is being written
    rocksdb::IOStatus status;
    rocksdb::FSWritableFile* file = nullptr;
  };

  void post(Queue& queue, Piece piece);
  rocksdb::IOStatus status(const Queue& queue);
  // Records the status of an operation on the file: the first error stays the status of the queue.
  rocksdb::IOStatus settle(Queue& queue, rocksdb::IOStatus status);
  // Until all its pieces are written.
  rocksdb::IOStatus wait(const Queue& queue);
  void start_thread();
  void run();

  const std::shared_ptr<HugePages> pages_;
  std::mutex mutex_;
  std::condition_variable work_;     // for the threads
  std::condition_variable written_;  // for those that wait for them
  std::deque<Queue*> ready_;
  size_t in_flight_ = 0;
  size_t idle_ = 0;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace crossdock
