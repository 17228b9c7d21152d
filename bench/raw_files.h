// The limit of a store: plain files, written and read by plain calls.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/check.h"

namespace crossdock {

constexpr size_t kRawCallBytes = size_t{256} << 10;  // as a chunk of the store

// Memory that O_DIRECT takes, in huge pages where there are any.
class RawBuffer {
 public:
  explicit RawBuffer(size_t bytes);
  ~RawBuffer() { CHECK(::munmap(data_, bytes_) == 0); }
  RawBuffer(const RawBuffer&) = delete;
  RawBuffer& operator=(const RawBuffer&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  void* data_;
  size_t bytes_;
};

enum class RawCache { kPageCache, kDirect };

// A file for each thread, new ones, together the bytes in order; each is made durable by one fdatasync.
void write_raw(const std::string& folder, std::span<const std::byte> bytes, size_t threads, RawCache cache);
// Reads what write_raw() wrote, with O_DIRECT.
void read_raw(const std::string& folder, std::span<std::byte> bytes, size_t threads);

// An empty folder inside another one, removed again with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder(const std::string& parent, const std::string& name);
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace crossdock
