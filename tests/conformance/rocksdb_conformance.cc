// The store on RocksDB, in a directory of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backends/rocksdb/rocksdb_tables.h"
#include "tests/conformance/local_backend.h"
#include "tests/conformance/object_store_conformance.h"

namespace crossdock::testing {
namespace {

struct Directory {
  Directory() { CHECK(::mkdtemp(path.data()) != nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path = ::testing::TempDir() + "crossdock_conformance_XXXXXX";
};

std::unique_ptr<Backend> make_rocksdb(const BackendOptions& options) {
  auto directory = std::make_shared<Directory>();
  RocksDbTables tables = open_rocksdb_tables({.directory = directory->path + "/store", .create = true}).value();
  return make_local_backend(options, {std::move(tables.records), std::move(tables.chunks)}, directory);
}

std::string rocksdb_name_of(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(RocksDb, ObjectStoreConformance, ::testing::Values(BackendCase{"rocksdb", make_rocksdb}),
                         rocksdb_name_of);

}  // namespace
}  // namespace crossdock::testing
