#include "backends/rocksdb/huge_page_files.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "backends/rocksdb/huge_pages.h"
#include "backends/rocksdb/write_behind.h"
#include "base/check.h"

namespace crossdock {
namespace {

using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Reads of any offset and length, by aligned reads of the direct file into a huge page and a copy out of it.
// To RocksDB it is no direct file: of one that is, RocksDB copies each block out of an aligned buffer of its own.
class HugePageReads final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  HugePageReads(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::shared_ptr<HugePages> pages)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        pages_(std::move(pages)),
        alignment_(target()->GetRequiredBufferAlignment()) {
    CHECK(alignment_ > 0 && kHugePageBytes % alignment_ == 0);
  }

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* context) const override {
    const HugePages::Share page(*pages_);
    size_t done = 0;
    while (done < bytes) {
      // Rounded down, and the length up, to what direct reads require. Both stay within one page, since the page is a
      // multiple of the alignment.
      const uint64_t begin = (offset + done) / alignment_ * alignment_;
      const uint64_t end = std::min(offset + bytes, begin + kHugePageBytes);
      Slice got;
      IOStatus status = read_page(begin, end, options, page.data(), &got, context);
      if (!status.ok()) return status;
      const size_t copied = copy_out(got, begin, offset + done, end - (offset + done), scratch + done);
      done += copied;
      if (begin + got.size() < end) break;  // the end of the file
    }
    *result = Slice(scratch, done);
    return IOStatus::OK();
  }

  // Requests that follow each other in the file are read at once.
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* context) override {
    for (size_t i = 0; i < count;) {
      const uint64_t begin = requests[i].offset / alignment_ * alignment_;
      uint64_t end = requests[i].offset + requests[i].len;
      size_t next = i + 1;
      // RocksDB sends requests in the order of the file. A status belongs to each request: one that fails does not fail
      // others.
      while (next < count && requests[next].offset == end && end + requests[next].len - begin <= kHugePageBytes)
        end += requests[next++].len;
      const std::span<FSReadRequest> together(requests + i, next - i);
      if (together.size() > 1)
        read_together(together, begin, end, options, context);
      else
        together[0].status =
            Read(together[0].offset, together[0].len, options, &together[0].result, together[0].scratch, context);
      i = next;
    }
    return IOStatus::OK();
  }

  bool use_direct_io() const override { return false; }
  IOStatus Prefetch(uint64_t, size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("Prefetch");  // there is no cache for it
  }

 private:
  // At most a page; `got` begins at `begin`, and is short where the file ends.
  IOStatus read_page(uint64_t begin, uint64_t end, const IOOptions& options, char* page, Slice* got,
                     IODebugContext* context) const {
    if (page == nullptr) return IOStatus::IOError("no memory for a buffer");
    const size_t length = (end - begin + alignment_ - 1) / alignment_ * alignment_;
    return target()->Read(begin, length, options, got, page, context);
  }
  // Less than asked for where the file ends, none where it ends before `offset`.
  static size_t copy_out(const Slice& got, uint64_t begin, uint64_t offset, size_t bytes, char* to) {
    const size_t skipped = std::min<size_t>(offset - begin, got.size());
    const size_t copied = std::min(bytes, got.size() - skipped);
    std::memcpy(to, got.data() + skipped, copied);
    return copied;
  }
  void read_together(std::span<FSReadRequest> requests, uint64_t begin, uint64_t end, const IOOptions& options,
                     IODebugContext* context) const {
    const HugePages::Share page(*pages_);
    Slice got;
    const IOStatus status = read_page(begin, end, options, page.data(), &got, context);
    for (FSReadRequest& request : requests) {
      request.status = status;
      if (status.ok())
        request.result = Slice(request.scratch, copy_out(got, begin, request.offset, request.len, request.scratch));
    }
  }

  const std::shared_ptr<HugePages> pages_;
  const size_t alignment_;
};

// Only direct files are wrapped: logs and the list of files are not, so their order of writes and syncs is untouched.
class HugePageFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit HugePageFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base) : FileSystemWrapper(base) {}

  const char* Name() const override { return "HugePageFileSystem"; }

  IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* context) override {
    IOStatus status = target()->NewRandomAccessFile(name, options, result, context);
    if (status.ok() && options.use_direct_reads) *result = std::make_unique<HugePageReads>(std::move(*result), pages_);
    return status;
  }
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* context) override {
    IOStatus status = target()->NewWritableFile(name, options, result, context);
    if (status.ok() && options.use_direct_writes) *result = writes_->wrap(std::move(*result));
    return status;
  }

 private:
  const std::shared_ptr<HugePages> pages_ = std::make_shared<HugePages>();
  const std::shared_ptr<WriteBehind> writes_ = std::make_shared<WriteBehind>(pages_);
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_huge_page_file_system(std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<HugePageFileSystem>(std::move(base));
}

}  // namespace crossdock
