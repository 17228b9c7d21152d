// The tables of a store in one RocksDB database: records through its write-ahead log, bulk data in files that are
// finished first and then ingested.
#pragma once

#include <memory>
#include <string>

#include "backends/store/tables.h"
#include "base/status.h"

namespace rocksdb {
class Env;
}

namespace crossdock {

struct RocksDbOptions {
  std::string directory;
  bool create = false;          // create a new store; else it has to exist
  bool direct_io = true;        // past the page cache; without where the file system refuses
  rocksdb::Env* env = nullptr;  // outlives the tables and their writers; nullptr: the machine's
};

struct RocksDbTables {
  std::unique_ptr<RecordTable> records;
  std::unique_ptr<ChunkTable> chunks;
};

// Opens the store in a directory, for one process and once in it: it stays open until both tables and all their writers
// are gone. Unfinished files of a process that died are removed. kNotFound when there is no store; kConflict when it is
// open already, or with `create` when the directory holds a store or anything else. `create` makes the directory; its
// parent has to exist.
//
// Errors of the tables: kResourceExhausted when the disk is full, kDataLoss for files that are damaged, kUnavailable
// while the store recovers from an error, kIo otherwise. A write into a segment may fail as late as in finish(). After
// a change that failed, the store can still be read, and the next change recovers; then the failed one did not happen.
// If the process ends before that, it may have happened, in full.
Result<RocksDbTables> open_rocksdb_tables(const RocksDbOptions& options);

}  // namespace crossdock
