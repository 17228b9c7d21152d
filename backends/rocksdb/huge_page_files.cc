#include "backends/rocksdb/huge_page_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"

namespace crossdock {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kBuffersKeptMax = 16;
constexpr size_t kLargeBytes = size_t{64} << 10;  // shorter calls gain nothing

// One huge page, at the begin of one. It is null when there is no memory.
class HugePage {
 public:
  HugePage() : mapping_(::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (mapping_ == MAP_FAILED) return;
    auto* const begin = static_cast<char*>(mapping_);
    data_ = begin + -reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
    (void)::madvise(data_, kHugePageBytes, MADV_HUGEPAGE);  // a kernel without them says no
  }
  ~HugePage() {
    if (data_ != nullptr) CHECK(::munmap(mapping_, kMapped) == 0);
  }
  HugePage(const HugePage&) = delete;
  HugePage& operator=(const HugePage&) = delete;
  char* data() const { return data_; }

 private:
  static constexpr size_t kMapped = 2 * kHugePageBytes;
  void* mapping_;
  char* data_ = nullptr;
};

// Thread-safe.
class HugePages {
 public:
  class Share {
   public:
    explicit Share(HugePages& pages) : pages_(pages), page_(pages.take()) {}
    ~Share() { pages_.give(std::move(page_)); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    char* data() const { return page_->data(); }

   private:
    HugePages& pages_;
    std::unique_ptr<HugePage> page_;
  };

 private:
  std::unique_ptr<HugePage> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!kept_.empty()) {
        std::unique_ptr<HugePage> page = std::move(kept_.back());
        kept_.pop_back();
        return page;
      }
    }
    return std::make_unique<HugePage>();
  }
  void give(std::unique_ptr<HugePage> page) {
    const std::lock_guard lock(mutex_);
    if (page->data() != nullptr && kept_.size() < kBuffersKeptMax) kept_.push_back(std::move(page));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<HugePage>> kept_;
};

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class HugePageReads final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  HugePageReads(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::shared_ptr<HugePages> pages)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), pages_(std::move(pages)) {}

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* context) const override {
    if (bytes < kLargeBytes) return target()->Read(offset, bytes, options, result, scratch, context);
    const HugePages::Share page(*pages_);
    if (page.data() == nullptr) return target()->Read(offset, bytes, options, result, scratch, context);
    size_t done = 0;
    while (done < bytes) {
      const size_t wanted = std::min(bytes - done, kHugePageBytes);
      Slice piece;
      const IOStatus status = target()->Read(offset + done, wanted, options, &piece, page.data(), context);
      if (!status.ok()) return status;
      std::memcpy(scratch + done, piece.data(), piece.size());
      done += piece.size();
      if (piece.size() < wanted) break;  // the end of the file
    }
    *result = Slice(scratch, done);
    return IOStatus::OK();
  }

  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* context) override {
    for (size_t i = 0; i < count; ++i)
      requests[i].status =
          Read(requests[i].offset, requests[i].len, options, &requests[i].result, requests[i].scratch, context);
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<HugePages> pages_;
};

class HugePageWrites final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  HugePageWrites(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<HugePages> pages)
      : FSWritableFileOwnerWrapper(std::move(file)), pages_(std::move(pages)) {}

  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* context) override {
    return write(data, offset, [&](const Slice& piece, uint64_t at) {
      return target()->PositionedAppend(piece, at, options, context);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& verification, IODebugContext* context) override {
    // What stands in `verification` is of all of the data.
    if (data.size() > kHugePageBytes) return target()->PositionedAppend(data, offset, options, verification, context);
    return write(data, offset, [&](const Slice& piece, uint64_t at) {
      return target()->PositionedAppend(piece, at, options, verification, context);
    });
  }

 private:
  template <class Write>
  IOStatus write(const Slice& data, uint64_t offset, const Write& write_piece) {
    if (data.size() < kLargeBytes) return write_piece(data, offset);
    const HugePages::Share page(*pages_);
    if (page.data() == nullptr) return write_piece(data, offset);
    for (size_t done = 0; done < data.size();) {
      const size_t length = std::min(data.size() - done, kHugePageBytes);
      std::memcpy(page.data(), data.data() + done, length);
      const IOStatus status = write_piece(Slice(page.data(), length), offset + done);
      if (!status.ok()) return status;
      done += length;
    }
    return IOStatus::OK();
  }

  const std::shared_ptr<HugePages> pages_;
};

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
    if (status.ok() && options.use_direct_writes)
      *result = std::make_unique<HugePageWrites>(std::move(*result), pages_);
    return status;
  }

 private:
  const std::shared_ptr<HugePages> pages_ = std::make_shared<HugePages>();
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_huge_page_file_system(std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<HugePageFileSystem>(std::move(base));
}

}  // namespace crossdock
