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
// Errors of the tables: kResourceExhausted when the disk is full, kDataLoss for files that are damaged, kUnavailable
// while the store recovers from an error, kIo otherwise. A write into a segment may fail as late as in finish(). After
// a change that failed, what is stored can be read all the same, and the next change recovers; the failed one did not
// happen then. Only if the process ends before that, it may have happened, in full.
Result<RocksDbTables> open_rocksdb_tables(const RocksDbOptions& options);

}  // namespace crossdock
