// The tables of a store in one RocksDB database: records in its log, bulk data in files that are made whole and then
// handed over.
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
  bool create = false;          // make a new store; else there has to be one
  bool direct_io = true;        // past the page cache; without where the file system refuses
  rocksdb::Env* env = nullptr;  // outlives the tables and their writers; nullptr: the machine's
};

struct RocksDbTables {
  std::unique_ptr<RecordTable> records;
  std::unique_ptr<ChunkTable> chunks;
};

// Opens the store in a directory, for one process and once in it: it stays open until both tables and all their writers
// are gone. What a process that died left unfinished is removed. kNotFound when there is no store; kConflict when it is
// open already, or with `create` when there is one or the directory holds anything else. Making it makes the directory,
// in one that is there.
//
// Errors of the tables: kResourceExhausted when the disk is full, kDataLoss for files that are damaged, kIo otherwise.
// A change that failed is repaired at once or before the next change, and then it did not happen; if the process ends
// before that, it may have happened, in full.
Result<RocksDbTables> open_rocksdb_tables(const RocksDbOptions& options);

}  // namespace crossdock
