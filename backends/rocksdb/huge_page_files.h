// Direct input and output through buffers in huge pages that are used again and again.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace crossdock {

// RocksDB reads and writes past the page cache by way of buffers that it has just got, in small pages. The kernel then
// takes hold of each page in turn, and the disk gets many short pieces: 0.7 GB/s for reads of 516 KiB one after the
// other where one buffer in huge pages, used for all, has 2.0 (bench/README.md). So this file system puts such
// buffers between direct files of `base` and whoever uses them, for the price of a copy in memory. What is read takes
// one of 2 MiB for each call that is under way; what is appended is written behind (write_behind.h). 16 that are not in
// use are kept. Users need not know that the files are direct: they may read and append as they like.
// What is not direct goes straight to `base`.
std::shared_ptr<rocksdb::FileSystem> make_huge_page_file_system(std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace crossdock
