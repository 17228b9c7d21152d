// Buffers in huge pages that are used again and again.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace crossdock {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// One huge page of memory, aligned to its size. data() is null when it could not be allocated.
class HugePage {
 public:
  HugePage();
  ~HugePage();
  HugePage(const HugePage&) = delete;
  HugePage& operator=(const HugePage&) = delete;
  char* data() const { return data_; }

 private:
  void* mapping_;
  char* data_ = nullptr;
};

// Keeps up to 16 returned pages for reuse. Thread-safe.
class HugePages {
 public:
  // Never null; its data() is when memory is short. Never waits.
  std::unique_ptr<HugePage> take();
  void give(std::unique_ptr<HugePage> page);

  // A page for the time of one call.
  class Share {
   public:
    explicit Share(HugePages& pages) : pages_(pages), page_(pages.take()) {}
    ~Share() { pages_.give(std::move(page_)); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    char* data() const { return page_->data(); }

   private:
    HugePages& pages_;
    std::unique_ptr<HugePage> page_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<HugePage>> kept_;
};

}  // namespace crossdock
