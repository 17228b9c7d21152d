// Direct input and output through buffers in huge pages that are used again and again.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace crossdock {

// RocksDB reads and writes past the page cache by way of buffers that it has just got, in small pages. The kernel then
// takes hold of each page in turn, and the disk gets many short pieces: 0.7 GB/s for reads of 516 KiB one after the
// other where one buffer in huge pages, used for all, has 2.0 (bench/README.md). So this file system puts such a
// buffer between large calls and `base`, for the price of a copy in memory. What is not direct goes straight to `base`.
// Keeps one buffer of 2 MiB for each call that is under way at once, 16 at most.
std::shared_ptr<rocksdb::FileSystem> make_huge_page_file_system(std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace crossdock
