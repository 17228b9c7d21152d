#include "bench/raw_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

namespace crossdock {
namespace {

std::string file_path(const std::string& folder, size_t thread) { return fmt::format("{}/raw-{}", folder, thread); }

// work(thread, begin, end) with whole calls for each thread.
void in_parts(size_t bytes, size_t threads, const std::function<void(size_t, size_t, size_t)>& work) {
  CHECK(bytes % kRawCallBytes == 0);
  const size_t calls = bytes / kRawCallBytes;
  std::vector<std::thread> others;
  for (size_t i = 0; i < threads; ++i)
    others.emplace_back(work, i, calls * i / threads * kRawCallBytes, calls * (i + 1) / threads * kRawCallBytes);
  for (std::thread& other : others) other.join();
}

}  // namespace

RawBuffer::RawBuffer(size_t bytes)
    : data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), bytes_(bytes) {
  CHECK(data_ != MAP_FAILED);
  (void)::madvise(data_, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes_; i += sizeof(uint64_t)) {
    const uint64_t word = i * 0x9e3779b97f4a7c15;  // nothing that a disk could make smaller
    std::copy_n(reinterpret_cast<const std::byte*>(&word), sizeof(word), static_cast<std::byte*>(data_) + i);
  }
}

void write_raw(const std::string& folder, std::span<const std::byte> bytes, size_t threads, RawCache cache) {
  in_parts(bytes.size(), threads, [&](size_t thread, size_t begin, size_t end) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (cache == RawCache::kDirect ? O_DIRECT : 0);
    const int file = ::open(file_path(folder, thread).c_str(), flags, 0600);
    CHECK(file >= 0);
    for (size_t at = begin; at < end; at += kRawCallBytes)
      CHECK(::pwrite(file, bytes.data() + at, kRawCallBytes, static_cast<off_t>(at - begin)) ==
            static_cast<ssize_t>(kRawCallBytes));
    CHECK(::fdatasync(file) == 0 && ::close(file) == 0);
  });
}

void read_raw(const std::string& folder, std::span<std::byte> bytes, size_t threads) {
  in_parts(bytes.size(), threads, [&](size_t thread, size_t begin, size_t end) {
    const int file = ::open(file_path(folder, thread).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    CHECK(file >= 0);
    for (size_t at = begin; at < end; at += kRawCallBytes)
      CHECK(::pread(file, bytes.data() + at, kRawCallBytes, static_cast<off_t>(at - begin)) ==
            static_cast<ssize_t>(kRawCallBytes));
    CHECK(::close(file) == 0);
  });
}

ScratchFolder::ScratchFolder(const std::string& parent, const std::string& name)
    : path_(fmt::format("{}/{}-{}", parent, name, ::getpid())) {
  std::filesystem::remove_all(path_);
  CHECK(std::filesystem::create_directories(path_));
}

}  // namespace crossdock
