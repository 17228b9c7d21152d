// Direct input and output through buffers in huge pages that are used again and again.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace crossdock {

// For direct I/O RocksDB allocates a new buffer of small pages for each read or write. The kernel pins each page, and
// the disk gets many short requests: 0.7 GB/s for reads of 516 KiB one after the other, against 2.0 GB/s with one
// buffer in huge pages that all reads share (bench/README.md). This file system puts such buffers between RocksDB and
// the direct files of `base`, at the cost of one copy in memory. A read takes one buffer of 2 MiB while it runs;
// appended bytes are written behind (write_behind.h). Up to 16 unused buffers are kept. Reads and appends need no
// alignment. Files that are not direct go straight to `base`.
std::shared_ptr<rocksdb::FileSystem> make_huge_page_file_system(std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace crossdock
