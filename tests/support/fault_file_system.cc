#include "tests/support/fault_file_system.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace crossdock {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace fs = std::filesystem;

struct FaultFileSystem::FileState {
  uint64_t bytes = 0;
  uint64_t bytes_synced = 0;
};

namespace {

using Operation = FaultFileSystem::Operation;

bool changes_something(Operation operation) {
  return operation != Operation::kOpenForReading && operation != Operation::kRead;
}

// Runs `call` when the operation is not to fail.
template <class Call>
IOStatus passed(FaultFileSystem& system, Operation operation, const std::string& path, Call call) {
  IOStatus status = system.check(operation, path);
  return status.ok() ? call() : status;
}

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<FSWritableFile> file, FaultFileSystem& system, std::string path,
               std::shared_ptr<FaultFileSystem::FileState> state)
      : FSWritableFileOwnerWrapper(std::move(file)),
        system_(system),
        path_(std::move(path)),
        state_(std::move(state)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return written(state_->bytes + data.size(), [&] { return target()->Append(data, options, debug); });
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    return written(offset + data.size(), [&] { return target()->PositionedAppend(data, offset, options, debug); });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(uint64_t bytes, const IOOptions& options, IODebugContext* debug) override {
    return passed(system_, Operation::kWrite, path_, [&] {
      system_.cut(*state_, bytes);
      return target()->Truncate(bytes, options, debug);
    });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return synced([&] { return target()->Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return synced([&] { return target()->Fsync(options, debug); });
  }

 private:
  template <class Call>
  IOStatus written(uint64_t bytes, Call call) {
    return passed(system_, Operation::kWrite, path_, [&] {
      IOStatus status = call();
      if (status.ok()) system_.grew(*state_, bytes);
      return status;
    });
  }
  template <class Call>
  IOStatus synced(Call call) {
    return passed(system_, Operation::kSync, path_, [&] {
      IOStatus status = call();
      if (status.ok()) system_.synced(*state_);
      return status;
    });
  }

  FaultFileSystem& system_;
  const std::string path_;
  const std::shared_ptr<FaultFileSystem::FileState> state_;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<FSRandomAccessFile> file, FaultFileSystem& system, std::string path)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) const override {
    return passed(system_, Operation::kRead, path_, [&] {
      IOStatus status = target()->Read(offset, bytes, options, result, scratch, debug);
      if (status.ok() && system_.shortens(path_)) *result = Slice(result->data(), result->size() / 2);
      return status;
    });
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    for (size_t i = 0; i < count; ++i)
      requests[i].status =
          Read(requests[i].offset, requests[i].len, options, &requests[i].result, requests[i].scratch, debug);
    return IOStatus::OK();
  }

 private:
  FaultFileSystem& system_;
  const std::string path_;
};

class SequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(std::unique_ptr<FSSequentialFile> file, FaultFileSystem& system, std::string path)
      : FSSequentialFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Read(size_t bytes, const IOOptions& options, Slice* result, char* scratch, IODebugContext* debug) override {
    return passed(system_, Operation::kRead, path_,
                  [&] { return target()->Read(bytes, options, result, scratch, debug); });
  }

 private:
  FaultFileSystem& system_;
  const std::string path_;
};

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<FSDirectory> directory, FaultFileSystem& system, std::string path)
      : FSDirectoryWrapper(std::move(directory)), system_(system), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return passed(system_, Operation::kSyncDirectory, path_, [&] {
      IOStatus status = FSDirectoryWrapper::Fsync(options, debug);
      if (status.ok()) system_.synced_directory(path_);
      return status;
    });
  }
  // The reasons allow file systems to leave syncs out that this machine's needs.
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  FaultFileSystem& system_;
  const std::string path_;
};

std::string contents_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string without_final_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

FaultFileSystem::FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

std::unique_ptr<rocksdb::Env> FaultFileSystem::env(const std::shared_ptr<FaultFileSystem>& file_system) {
  return rocksdb::NewCompositeEnv(file_system);
}

void FaultFileSystem::add_fault(Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultFileSystem::shorten_reads(std::string part) {
  const std::lock_guard lock(mutex_);
  short_reads_.push_back(std::move(part));
}

void FaultFileSystem::refuse_direct_io() {
  const std::lock_guard lock(mutex_);
  refuses_direct_io_ = true;
}

void FaultFileSystem::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  short_reads_.clear();
}

uint64_t FaultFileSystem::count(std::optional<Operation> operation) const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [each, count] : counts_)
    if (operation ? each == *operation : changes_something(each)) sum += count;
  return sum;
}

void FaultFileSystem::power_off() {
  const std::lock_guard lock(mutex_);
  power_is_off_ = true;
}

void FaultFileSystem::power_on(UnsyncedBytes unsynced) {
  const std::lock_guard lock(mutex_);
  CHECK(power_is_off_);
  if (unsynced != UnsyncedBytes::kKept) {
    // Bytes first: a name that is taken back may be the one by which its file is known here.
    for (const auto& [path, file] : files_) {
      if (!fs::exists(path)) continue;
      const uint64_t unsynced_bytes = file->bytes - file->bytes_synced;
      fs::resize_file(path, file->bytes_synced + (unsynced == UnsyncedBytes::kTorn ? unsynced_bytes / 2 : 0));
    }
    for (size_t i = names_.size(); i > 0; --i) take_back(names_[i - 1]);
  }
  files_.clear();
  names_.clear();
  power_is_off_ = false;
}

void FaultFileSystem::take_back(const NameChange& change) {
  if (change.renamed_from && fs::exists(change.name))
    fs::rename(change.name, *change.renamed_from);
  else
    fs::remove(change.name);
  if (change.replaced) std::ofstream(change.name, std::ios::binary) << *change.replaced;
}

IOStatus FaultFileSystem::check(Operation operation, const std::string& path) {
  const std::lock_guard lock(mutex_);
  ++counts_[operation];
  if (power_is_off_ && changes_something(operation)) return IOStatus::IOError("the power is off");
  for (Fault& fault : faults_) {
    const bool is_meant = fault.operation ? *fault.operation == operation : changes_something(operation);
    if (!is_meant || path.find(fault.part) == std::string::npos || fault.failing == 0) continue;
    if (fault.passing > 0) {
      --fault.passing;
      continue;
    }
    --fault.failing;
    return fault.status;
  }
  return IOStatus::OK();
}

IOStatus FaultFileSystem::check_direct_io(bool is_direct) const {
  const std::lock_guard lock(mutex_);
  return is_direct && refuses_direct_io_ ? IOStatus::IOError("no direct access here") : IOStatus::OK();
}

bool FaultFileSystem::shortens(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(short_reads_.begin(), short_reads_.end(),
                     [&path](const std::string& part) { return path.find(part) != std::string::npos; });
}

void FaultFileSystem::grew(FileState& file, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  file.bytes = std::max(file.bytes, bytes);
}

void FaultFileSystem::cut(FileState& file, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  file.bytes = bytes;
  file.bytes_synced = std::min(file.bytes_synced, bytes);
}

void FaultFileSystem::synced(FileState& file) {
  const std::lock_guard lock(mutex_);
  file.bytes_synced = file.bytes;
}

void FaultFileSystem::synced_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(names_, [directory = without_final_slash(path)](const NameChange& change) {
    return fs::path(change.name).parent_path() == directory;
  });
}

IOStatus FaultFileSystem::opened(const std::string& path, bool is_new,
                                 std::unique_ptr<rocksdb::FSWritableFile>* result) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<FileState>& state = files_[path];
  if (is_new || state == nullptr) {
    const uint64_t bytes = is_new ? 0 : fs::file_size(path);
    state = std::make_shared<FileState>(FileState{bytes, bytes});
  }
  *result = std::make_unique<WritableFile>(std::move(*result), *this, path, state);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NewSequentialFile(const std::string& path, const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* debug) {
  return passed(*this, Operation::kOpenForReading, path, [&] {
    IOStatus status = target()->NewSequentialFile(path, options, result, debug);
    if (status.ok()) *result = std::make_unique<SequentialFile>(std::move(*result), *this, path);
    return status;
  });
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& path, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                              IODebugContext* debug) {
  return passed(*this, Operation::kOpenForReading, path, [&] {
    IOStatus status = check_direct_io(options.use_direct_reads);
    if (status.ok()) status = target()->NewRandomAccessFile(path, options, result, debug);
    if (status.ok()) *result = std::make_unique<RandomAccessFile>(std::move(*result), *this, path);
    return status;
  });
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path, const FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  return passed(*this, Operation::kCreate, path, [&] {
    const bool existed = fs::exists(path);
    IOStatus status = check_direct_io(options.use_direct_writes);
    if (status.ok()) status = target()->NewWritableFile(path, options, result, debug);
    if (!status.ok()) return status;
    if (!existed) {
      const std::lock_guard lock(mutex_);
      names_.push_back({path, std::nullopt, std::nullopt});
    }
    return opened(path, true, result);
  });
}

IOStatus FaultFileSystem::ReopenWritableFile(const std::string& path, const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  return passed(*this, Operation::kCreate, path, [&] {
    IOStatus status = target()->ReopenWritableFile(path, options, result, debug);
    return status.ok() ? opened(path, false, result) : status;
  });
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) {
  IOStatus status = target()->NewDirectory(path, options, result, debug);
  if (status.ok()) *result = std::make_unique<Directory>(std::move(*result), *this, path);
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) {
  return passed(*this, Operation::kDelete, path, [&] {
    IOStatus status = target()->DeleteFile(path, options, debug);
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      files_.erase(path);
      std::erase_if(names_, [&path](const NameChange& change) { return change.name == path && !change.replaced; });
    }
    return status;
  });
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                     IODebugContext* debug) {
  return passed(*this, Operation::kRename, to, [&] {
    std::optional<std::string> replaced;
    if (fs::exists(to)) replaced = contents_of(to);
    IOStatus status = target()->RenameFile(from, to, options, debug);
    if (!status.ok()) return status;
    const std::lock_guard lock(mutex_);
    names_.push_back({to, from, std::move(replaced)});
    files_.erase(to);
    if (const auto file = files_.find(from); file != files_.end()) {
      files_[to] = file->second;
      files_.erase(file);
    }
    return status;
  });
}

IOStatus FaultFileSystem::LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                                   IODebugContext* debug) {
  return passed(*this, Operation::kLink, to, [&] {
    IOStatus status = target()->LinkFile(from, to, options, debug);
    if (!status.ok()) return status;
    const std::lock_guard lock(mutex_);
    names_.push_back({to, std::nullopt, std::nullopt});
    if (const auto file = files_.find(from); file != files_.end()) files_[to] = file->second;
    return status;
  });
}

}  // namespace crossdock
