// The open database under the tables of a RocksDB store: options, errors, and repair after an error.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <functional>
#include <memory>
#include <mutex>
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
  static Result<std::shared_ptr<RocksDbDatabase>> open(const RocksDbOptions& options);
  ~RocksDbDatabase();
  RocksDbDatabase(const RocksDbDatabase&) = delete;
  RocksDbDatabase& operator=(const RocksDbDatabase&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* records() const { return families_[0].get(); }
  rocksdb::ColumnFamilyHandle* chunks() const { return families_[1].get(); }
  rocksdb::Env& env() const { return *options_.env; }
  const std::string& directory() const { return directory_; }

  // A file that is not part of the database yet; such files are on its file system.
  std::string incoming_path(uint64_t segment) const;
  rocksdb::Options incoming_options() const;
  rocksdb::EnvOptions incoming_env_options() const;

  // Runs something that changes the database. RocksDB takes no change after one that failed until it is told to go on;
  // this tells it, before the change and after one that failed.
  Status change(std::string_view what, const std::function<rocksdb::Status()>& run);

 private:
  class ErrorListener;

  RocksDbDatabase(std::string directory, bool direct_io, rocksdb::Env* env);

  Status open_families();
  Status empty_incoming();
  rocksdb::Status go_on();

  const std::string directory_;
  const bool direct_io_;
  const std::shared_ptr<ErrorListener> listener_;
  const rocksdb::DBOptions options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<std::unique_ptr<rocksdb::ColumnFamilyHandle>> families_;  // goes before the database
  std::mutex repair_;
};

}  // namespace crossdock
