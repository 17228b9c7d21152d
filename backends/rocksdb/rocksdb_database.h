// The open database under the tables of a RocksDB store: options, errors, and repair after an error.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/rocksdb/rocksdb_tables.h"
#include "base/status.h"

namespace crossdock {

// "cannot `what`: ..." with the code that open_rocksdb_tables() promises. OK stays OK.
Status rocksdb_status(const rocksdb::Status& status, std::string_view what);

// Thread-safe.
class RocksDbDatabase {
 public:
  // The open database. It is not closed while this lives.
  struct Access {
    std::shared_lock<std::shared_timed_mutex> lock;
    rocksdb::DB* db = nullptr;
    rocksdb::ColumnFamilyHandle* records = nullptr;
    rocksdb::ColumnFamilyHandle* chunks = nullptr;
  };

  // Creates it first where the options say so. Errors as open_rocksdb_tables() promises.
  static Result<std::shared_ptr<RocksDbDatabase>> open(const RocksDbOptions& options);
  ~RocksDbDatabase();
  RocksDbDatabase(const RocksDbDatabase&) = delete;
  RocksDbDatabase& operator=(const RocksDbDatabase&) = delete;

  // Opens the database again when repair() could not. kUnavailable when that does not succeed now.
  Result<Access> access();
  // Runs `run`, which changes the database; repairs it first when an earlier change failed.
  using Change = std::function<rocksdb::Status(const Access&)>;
  // kUnavailable while another change has just failed; then `run` was not called. `what` is for messages: "cannot
  // `what`".
  Status change(std::string_view what, const Change& run);
  // A change through the log: what `fill` puts into the batch. `durable` as RecordTable::write().
  using Fill = std::function<rocksdb::Status(const Access&, rocksdb::WriteBatch&)>;
  Status write(std::string_view what, bool durable, const Fill& fill);

  // The file system that the database uses, direct or not.
  rocksdb::Env& env() const { return *options_.env; }
  const std::string& directory() const { return directory_; }
  // A file that is not part of the database yet; such files are on its file system.
  std::string incoming_path(uint64_t segment) const;
  rocksdb::Options incoming_options() const;
  rocksdb::EnvOptions incoming_env_options() const;

 private:
  class ErrorListener;

  RocksDbDatabase(std::string directory, bool direct_io, rocksdb::Env* env);

  // The next three hold `use_` exclusively, or run before the object is shared.
  Status open_families();
  void close_families();
  Status empty_incoming();
  // With `changes_` or `use_` held exclusively.
  rocksdb::Status heal();
  Status repair();
  Status check_room();

  const std::string directory_;
  const bool direct_io_;
  const std::shared_ptr<ErrorListener> listener_;
  const std::unique_ptr<rocksdb::Env> direct_env_;  // null: reads and writes are not direct
  const rocksdb::DBOptions options_;
  std::shared_timed_mutex use_;  // shared: users of the members below; exclusive: opening and closing
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<std::unique_ptr<rocksdb::ColumnFamilyHandle>> families_;  // goes before the database
  std::shared_mutex changes_;  // shared: changes that run; exclusive: heal() after one that failed. Taken after use_
};

}  // namespace crossdock
