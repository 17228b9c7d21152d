// A file system for tests of what stands on RocksDB: it forgets what was not synced, and fails where it is told to.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace crossdock {

// What happens to bytes that were written but not synced when the power goes.
enum class UnsyncedBytes {
  kLost,  // all of them
  kTorn,  // the second half in each file
  kKept,  // none: only the process ended
};

// Passes everything on to the machine's file system. Thread-safe.
//
// Names are kept by syncing their directory, bytes by syncing their file. A file that is made, linked or renamed is
// forgotten under its new name until then; one that is removed is gone at once, which is the worse of what may happen.
// Log files of RocksDB for people, and files that are written in place, are not followed.
class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  enum class Operation { kCreate, kWrite, kSync, kRename, kLink, kDelete, kSyncDirectory, kOpenForReading, kRead };
  struct FileState;

  FaultFileSystem();
  static std::unique_ptr<rocksdb::Env> env(const std::shared_ptr<FaultFileSystem>& file_system);

  // Operations whose path contains `part` fail with `status`, after the next `passing` of them: `failing` of them, or
  // all from then on. No operation given: any that changes something.
  struct Fault {
    std::optional<Operation> operation;
    std::string part;
    rocksdb::IOStatus status = rocksdb::IOStatus::IOError("injected");
    uint64_t passing = 0;
    uint64_t failing = UINT64_MAX;
  };
  void add_fault(Fault fault);
  // Reads of files whose path contains `part` give half of the bytes.
  void shorten_reads(std::string part);
  // As a file system that has no reads and writes past the page cache.
  void refuse_direct_io();
  void clear_faults();

  // How many operations there were so far; no operation given: those that change something.
  uint64_t count(std::optional<Operation> operation = std::nullopt) const;

  // Nothing changes from now on: every change fails. Then objects that use the files are destroyed, and power_on()
  // makes the files what they are after that.
  void power_off();
  void power_on(UnsyncedBytes unsynced);

  const char* Name() const override { return "FaultFileSystem"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;

  // For the files that it opened.
  rocksdb::IOStatus check(Operation operation, const std::string& path);
  rocksdb::IOStatus check_direct_io(bool is_direct) const;
  bool shortens(const std::string& path) const;
  void grew(FileState& file, uint64_t bytes);
  void cut(FileState& file, uint64_t bytes);
  void synced(FileState& file);
  void synced_directory(const std::string& path);

 private:
  // A name in a directory that was not synced since.
  struct NameChange {
    std::string name;
    std::optional<std::string> renamed_from;
    std::optional<std::string> replaced;  // contents of the file that had the name before
  };
  rocksdb::IOStatus opened(const std::string& path, bool is_new, std::unique_ptr<rocksdb::FSWritableFile>* result);
  void take_back(const NameChange& change);

  mutable std::mutex mutex_;
  bool power_is_off_ = false;
  bool refuses_direct_io_ = false;
  std::vector<Fault> faults_;
  std::vector<std::string> short_reads_;
  std::map<Operation, uint64_t> counts_;
  std::map<std::string, std::shared_ptr<FileState>> files_;  // by path; one state under each link
  std::vector<NameChange> names_;                            // in the order they happened
};

}  // namespace crossdock
