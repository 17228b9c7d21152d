#include "backends/rocksdb/rocksdb_database.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/flush_block_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "backends/rocksdb/huge_page_files.h"

namespace crossdock {
// Opening, and changes that fail.
//
// The promise is that of tables.h: a change that failed did not happen once the table has recovered. RocksDB alone does
// not keep it: after an error it may keep a record in its log, or a name in its list of files, that a later opening
// would find. So a failed change is followed by heal() at once, and by repair() before the next change:
//
//   usable --error--> stopped (reads go on, changes are refused) --repair()--> usable
//
// Locks: `use_` shared by each reader and change, exclusive to close and open the database. `changes_` shared by each
// change, exclusive for heal(). Always `use_` before `changes_`.
namespace {

namespace fs = std::filesystem;

constexpr char kChunksFamily[] = "chunks";
constexpr char kNoRecord[] = "\xff\xff\xff\xff no record";  // a key that is removed sometimes, never written
constexpr size_t kRecordCacheBytes = size_t{8} << 20;
constexpr size_t kRecordBufferBytes = size_t{8} << 20;
constexpr size_t kChunkBufferBytes = size_t{1} << 20;     // holds only what remove() could not do by deleting files
constexpr size_t kChunkBlockBytes = size_t{4} << 10;      // tiny chunks share a block of this size
constexpr size_t kChunkBlockReserve = size_t{260} << 10;  // one chunk of the usual size, its key, and the block's end
constexpr size_t kWriterBufferBytes = size_t{64} << 10;   // longer pieces, as blocks are, go past it
constexpr size_t kManifestBytesMax = size_t{16} << 20;
constexpr size_t kLogBytesMax = size_t{1} << 20;
constexpr size_t kLogFilesMax = 3;
constexpr int kOpenFilesMax = 512;  // an open file of 256 MiB costs about 50 KiB of memory, most of it its index
constexpr double kFilterBitsPerKey = 10;
constexpr size_t kRoomBytes = size_t{1} << 20;  // opening the store again writes less
constexpr std::chrono::seconds kRepairWaitMax{1};

// Files that RocksDB creates in a directory before CURRENT makes it a database.
constexpr std::array<std::string_view, 5> kLeftByCreation = {"LOCK", "LOG", "IDENTITY", "MANIFEST-", "000001.dbtmp"};

rocksdb::DBOptions database_options(rocksdb::Env* env, bool direct_io,
                                    std::shared_ptr<rocksdb::EventListener> listener) {
  rocksdb::DBOptions options;
  options.env = env == nullptr ? rocksdb::Env::Default() : env;
  // Damage that RocksDB finds stops it, instead of being skipped.
  options.paranoid_checks = true;
  options.use_direct_reads = direct_io;
  options.max_open_files = kOpenFilesMax;
  options.skip_stats_update_on_db_open = true;  // it would open each file
  options.max_manifest_file_size = kManifestBytesMax;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.max_log_file_size = kLogBytesMax;
  options.keep_log_file_num = kLogFilesMax;
  options.avoid_flush_during_shutdown = true;  // everything that counts is in the log
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_bgerror_resume_count = 0;  // change() repairs, so that the moment is known
  if (listener != nullptr) options.listeners.push_back(std::move(listener));
  return options;
}

rocksdb::ColumnFamilyOptions record_options() {
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kXXH3;
  table.block_cache = rocksdb::NewLRUCache(kRecordCacheBytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = kRecordBufferBytes;
  options.compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// A chunk that is not tiny is a block of its own, so a read takes no neighbour along.
class ChunkBlocks final : public rocksdb::FlushBlockPolicy {
 public:
  bool Update(const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    const size_t bytes = key.size() + value.size();
    const bool begins = bytes_ > 0 && bytes_ + bytes > kChunkBlockBytes;
    bytes_ = (begins ? 0 : bytes_) + bytes;
    return begins;
  }

 private:
  size_t bytes_ = 0;  // of the block that is being made
};

class ChunkBlocksFactory final : public rocksdb::FlushBlockPolicyFactory {
 public:
  const char* Name() const override { return "crossdock.ChunkBlocks"; }
  rocksdb::FlushBlockPolicy* NewFlushBlockPolicy(const rocksdb::BlockBasedTableOptions&,
                                                 const rocksdb::BlockBuilder&) const override {
    return new ChunkBlocks;  // RocksDB deletes it
  }
};

rocksdb::ColumnFamilyOptions chunk_options() {
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kXXH3;  // the others have no hardware help in common builds
  // It keeps nothing: a block goes with its last user. But a value is handed out without a copy only from a cache.
  table.block_cache = rocksdb::NewLRUCache(0, 0);
  table.block_size = kChunkBlockReserve;  // memory reserved for a block, so that it does not grow by copying
  table.flush_block_policy_factory = std::make_shared<ChunkBlocksFactory>();
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = kChunkBufferBytes;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;  // segments never overlap: there is nothing to merge
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> families() {
  return {{rocksdb::kDefaultColumnFamilyName, record_options()}, {kChunksFamily, chunk_options()}};
}

// CURRENT makes a directory a database (kLeftByCreation): without it a creation was interrupted, and may be repeated.
bool is_store(rocksdb::Env& env, const std::string& directory) { return env.FileExists(directory + "/CURRENT").ok(); }

// RocksDB identifies an open database by the text of its path: under two spellings of one directory it would be opened
// twice, and each would overwrite the other's files.
Result<std::string> canonical_path(const std::string& directory) {
  std::error_code error;
  const fs::path path = fs::canonical(directory, error);
  if (error == std::errc::no_such_file_or_directory)
    return Status(Code::kNotFound, fmt::format("no store at '{}': there is no such directory", directory));
  if (error) return Status(Code::kIo, fmt::format("cannot open the store at '{}': {}", directory, error.message()));
  return path.string();
}

// Another process may take the lock right after this check. Opening the database then fails, and the check runs again
// to name the reason. The check never opens the lock file: closing it would release this process's own lock of it.
Status check_not_in_use(rocksdb::Env& env, const std::string& directory) {
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status status = env.LockFile(directory + "/LOCK", &lock);
  if (status.ok()) return rocksdb_status(env.UnlockFile(lock), fmt::format("unlock the store at '{}'", directory));
  if (status.ToString().find("while open a file for lock") != std::string::npos)
    return rocksdb_status(status, fmt::format("lock the store at '{}'", directory));
  return Status(Code::kConflict,
                fmt::format("the store at '{}' is in use by another process or open already in this one", directory));
}

Status check_holds_nothing_else(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  const std::string what = fmt::format("list '{}'", directory);
  TRY_STATUS(rocksdb_status(env.GetChildren(directory, &names), what));
  for (const std::string& name : names) {
    // What an interrupted creation left is no reason to refuse another one.
    const bool left = std::any_of(kLeftByCreation.begin(), kLeftByCreation.end(),
                                  [&name](std::string_view prefix) { return name.starts_with(prefix); });
    if (!left)
      return Status(Code::kConflict,
                    fmt::format("cannot create a store at '{}': it is not empty, it holds '{}'", directory, name));
  }
  return Status();
}

Status sync_directory(rocksdb::Env& env, const std::string& directory) {
  const std::string what = fmt::format("sync '{}'", directory);
  std::unique_ptr<rocksdb::Directory> handle;
  TRY_STATUS(rocksdb_status(env.NewDirectory(directory, &handle), what));
  return rocksdb_status(handle->Fsync(), what);
}

// Creates the database and closes it again: takes_direct_reads() needs a file to try.
Status create_store(rocksdb::Env& env, const RocksDbOptions& options) {
  const std::string what = fmt::format("create a store at '{}'", options.directory);
  TRY_STATUS(rocksdb_status(env.CreateDirIfMissing(options.directory), what));
  TRY(const std::string directory, canonical_path(options.directory));
  if (is_store(env, directory)) return Status(Code::kConflict, fmt::format("cannot {}: it holds one already", what));
  TRY_STATUS(check_holds_nothing_else(env, directory));
  TRY_STATUS(check_not_in_use(env, directory));

  rocksdb::DBOptions database = database_options(&env, false, nullptr);
  database.create_if_missing = true;
  database.create_missing_column_families = true;
  database.error_if_exists = true;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(database, directory, families(), &handles, &opened);
  if (!status.ok()) {
    TRY_STATUS(check_not_in_use(env, directory));
    return rocksdb_status(status, what);
  }
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (rocksdb::ColumnFamilyHandle* handle : handles)
    TRY_STATUS(rocksdb_status(db->DestroyColumnFamilyHandle(handle), what));
  TRY_STATUS(rocksdb_status(db->Close(), what));
  // RocksDB syncs what is in the directory. The name of the directory itself is in its parent.
  return sync_directory(env, fs::path(directory).parent_path());
}

// Asked of the file system itself: some (tmpfs) refuse the flag only when a file is opened.
bool takes_direct_reads(rocksdb::Env& env, const std::string& directory) {
  rocksdb::EnvOptions options;
  options.use_direct_reads = true;
  std::unique_ptr<rocksdb::RandomAccessFile> file;
  return env.NewRandomAccessFile(directory + "/CURRENT", &file, options).ok();
}

}  // namespace

Status rocksdb_status(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return Status();
  if (status.IsNoSpace())
    return Status(Code::kResourceExhausted, fmt::format("cannot {}: the disk is full ({})", what, status.ToString()));
  const Code code = status.IsCorruption()                    ? Code::kDataLoss
                    : status.IsBusy() || status.IsTryAgain() ? Code::kUnavailable
                                                             : Code::kIo;
  return Status(code, fmt::format("cannot {}: {}", what, status.ToString()));
}

// Gets each error after which RocksDB takes no more changes, and lowers fatal I/O errors to errors that repair() may
// clear. That is safe: after a failed write RocksDB never writes to the same file again, whatever the cause was.
class RocksDbDatabase::ErrorListener : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    stopped = true;
    if (error->IsIOError() && !error->IsIOFenced() && error->severity() == rocksdb::Status::kFatalError)
      *error = rocksdb::Status(*error, rocksdb::Status::kHardError);
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* recovers) override {
    *recovers = false;
  }

  std::atomic<bool> stopped = false;
};

RocksDbDatabase::RocksDbDatabase(std::string directory, bool direct_io, rocksdb::Env* env)
    : directory_(std::move(directory)),
      direct_io_(direct_io),
      listener_(std::make_shared<ErrorListener>()),
      direct_env_(direct_io ? rocksdb::NewCompositeEnv(make_huge_page_file_system(env->GetFileSystem())) : nullptr),
      options_(database_options(direct_io ? direct_env_.get() : env, direct_io, listener_)) {}

RocksDbDatabase::~RocksDbDatabase() { close_families(); }

// The order of checks gives the exact reason: no directory, no store, in use, damaged.
Result<std::shared_ptr<RocksDbDatabase>> RocksDbDatabase::open(const RocksDbOptions& options) {
  rocksdb::Env& env = options.env == nullptr ? *rocksdb::Env::Default() : *options.env;
  if (options.create) TRY_STATUS(create_store(env, options));
  TRY(const std::string directory, canonical_path(options.directory));
  if (!is_store(env, directory)) return Status(Code::kNotFound, fmt::format("no store at '{}'", options.directory));
  TRY_STATUS(check_not_in_use(env, directory));
  const bool direct_io = options.direct_io && takes_direct_reads(env, directory);
  std::shared_ptr<RocksDbDatabase> database(new RocksDbDatabase(directory, direct_io, &env));
  TRY_STATUS(database->open_families());
  // After the lock of the database is held: another process may be writing there until then.
  TRY_STATUS(database->empty_incoming());
  return database;
}

Status RocksDbDatabase::open_families() {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options_, directory_, families(), &handles, &opened);
  if (!status.ok()) {
    TRY_STATUS(check_not_in_use(env(), directory_));
    if (status.IsInvalidArgument())
      return Status(Code::kNotFound,
                    fmt::format("no store at '{}': it holds another database, or one that was created in part: {}",
                                directory_, status.ToString()));
    return rocksdb_status(status, fmt::format("open the store at '{}'", directory_));
  }
  db_.reset(opened);
  for (rocksdb::ColumnFamilyHandle* handle : handles) families_.emplace_back(handle);
  return Status();
}

// Files of segments that were not handed over. No record names them (I4), and their numbers may be given out again.
Status RocksDbDatabase::empty_incoming() {
  const std::string incoming = directory_ + "/incoming";
  const std::string what = fmt::format("clear '{}'", incoming);
  TRY_STATUS(rocksdb_status(env().CreateDirIfMissing(incoming), what));
  std::vector<std::string> names;
  TRY_STATUS(rocksdb_status(env().GetChildren(incoming, &names), what));
  for (const std::string& name : names) TRY_STATUS(rocksdb_status(env().DeleteFile(incoming + "/" + name), what));
  return Status();
}

std::string RocksDbDatabase::incoming_path(uint64_t segment) const {
  return fmt::format("{}/incoming/{}.sst", directory_, segment);
}

rocksdb::Options RocksDbDatabase::incoming_options() const { return rocksdb::Options(options_, chunk_options()); }

rocksdb::EnvOptions RocksDbDatabase::incoming_env_options() const {
  rocksdb::EnvOptions options;
  options.use_direct_writes = direct_io_;
  options.writable_file_max_buffer_size = kWriterBufferBytes;
  return options;
}

// An error of Close() loses nothing: every write that was promised to be durable was synced before it returned.
void RocksDbDatabase::close_families() {
  families_.clear();
  if (db_ != nullptr) db_->Close().PermitUncheckedError();
  db_.reset();
}

// The lock in Access keeps the database open. It is taken again after repair(), and what it guards is looked at again.
Result<RocksDbDatabase::Access> RocksDbDatabase::access() {
  std::shared_lock lock(use_);
  if (db_ == nullptr) {  // repair() closed it and could not open it again
    lock.unlock();
    TRY_STATUS(repair());
    lock.lock();
    if (db_ == nullptr)
      return Status(Code::kUnavailable, fmt::format("the store at '{}' is being opened again", directory_));
  }
  return Access{std::move(lock), db_.get(), families_[0].get(), families_[1].get()};
}

Status RocksDbDatabase::change(std::string_view what, const Change& run) {
  // Before access(), because repair() needs `use_` for itself alone.
  if (listener_->stopped) TRY_STATUS(repair());
  TRY(const Access access, access());
  rocksdb::Status status;
  {
    const std::shared_lock lock(changes_);
    // Another change failed since repair(). After heal() alone the database can be read but must not be changed.
    if (listener_->stopped)
      return Status(Code::kUnavailable, fmt::format("cannot {}: another change failed just now", what));
    status = run(access);
  }
  // Exclusive: no other change may run between the error and heal(). Errors that did not stop the database (a refused
  // batch, say) need no repair.
  if (!status.ok() && listener_->stopped) {
    const std::unique_lock lock(changes_);
    heal().PermitUncheckedError();  // when it fails, the next change tries again
  }
  return rocksdb_status(status, what);
}

// A change that failed must not reappear (RecordTable): a publication that was reported as failed would become visible
// (I2). RocksDB replaces a log that failed only together with its memtable, and only when the memtable holds an entry.
// So an empty memtable first gets an entry outside of the log. The failed record then stays behind in the old log,
// which no later opening reads.
Status RocksDbDatabase::write(std::string_view what, bool durable, const Fill& fill) {
  return change(what, [&](const Access& access) {
    rocksdb::WriteBatch batch;
    if (rocksdb::Status status = fill(access, batch); !status.ok()) return status;
    uint64_t entries = 0;
    access.db->GetIntProperty(access.records, rocksdb::DB::Properties::kNumEntriesActiveMemTable, &entries);
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    if (entries == 0)
      if (rocksdb::Status status = access.db->Delete(options, access.records, kNoRecord); !status.ok()) return status;
    options.disableWAL = false;
    options.sync = durable;
    return access.db->Write(options, &batch);
  });
}

// Brings the files in line with what the database holds. It must run right after the error: a change of the list of
// files (MANIFEST) that could not be synced may be in it although the files that it names are gone, and the store would
// not open with such a list.
rocksdb::Status RocksDbDatabase::heal() {
  // Resume() relies on no file being deleted while the list could not be written. Not every failed write of the list
  // disables deletions.
  rocksdb::Status status = db_->DisableFileDeletions();
  if (!status.ok()) return status;
  // After a Resume() that failed only the disable of this call is taken back; one that RocksDB made for its own error
  // stays.
  status = db_->Resume();
  if (const rocksdb::Status enabled = db_->EnableFileDeletions(status.ok()); status.ok()) status = enabled;
  return status;
}

// After Resume() this version of RocksDB accepts records, but ingests files under an invalid number. So the database is
// closed and opened again. It stays open for reading until check_room() shows that opening it is likely to succeed.
Status RocksDbDatabase::repair() {
  const std::string what = fmt::format("repair the store at '{}' after an earlier error", directory_);
  // By the system's clock, since ThreadSanitizer of clang 14 does not know the wait by the steady one.
  const std::unique_lock lock(use_, std::chrono::system_clock::now() + kRepairWaitMax);
  if (!lock.owns_lock()) return Status(Code::kUnavailable, fmt::format("cannot {} while it is read", what));
  // Another thread has repaired it while this one waited for the lock.
  if (db_ != nullptr && !listener_->stopped) return Status();
  if (db_ != nullptr) TRY_STATUS(rocksdb_status(heal(), what));
  TRY_STATUS(check_room());
  close_families();
  // When this fails, db_ stays null and `stopped` true: access() tries again.
  TRY_STATUS(open_families());
  listener_->stopped = false;
  return Status();
}

// Writes and syncs as much as an opening does. A full disk is found here, while the open database can still be read.
Status RocksDbDatabase::check_room() {
  const std::string path = directory_ + "/incoming/room";
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = env().NewWritableFile(path, &file, rocksdb::EnvOptions());
  if (status.ok()) status = file->Append(std::string(kRoomBytes, 'x'));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  file.reset();
  env().DeleteFile(path).PermitUncheckedError();
  return rocksdb_status(status, fmt::format("write '{}'", path));
}

}  // namespace crossdock
