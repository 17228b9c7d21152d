// Disk of a simulated store: the two tables of backends/store, kept over crashes of the store, with the faults that a
// disk can have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/store/heap_tables.h"
#include "backends/store/tables.h"

namespace crossdock {

class SimDisk {
 public:
  explicit SimDisk(uint64_t capacity_bytes) : state_(std::make_shared<State>()) {
    state_->capacity_bytes = capacity_bytes;
  }

  // For a store that opens; both live as long as they are needed.
  std::unique_ptr<RecordTable> records() const;
  std::unique_ptr<ChunkTable> chunks() const;

  // Drops what was not made durable.
  void lose_unsynced();
  void set_capacity(uint64_t bytes) { state_->capacity_bytes = bytes; }
  // From now on one byte of this chunk of those that are read, counted from 0, is wrong for good.
  void corrupt_chunk(uint64_t nth) { state_->corrupt_nth = nth; }
  // The next read gives less than there is.
  void shorten_next_read() { state_->is_short = true; }
  // The next read comes with a wrong byte, once.
  void flip_next_read() { state_->is_flipped = true; }
  // Of chunks: written, added or not. Records take no space.
  uint64_t used_bytes() const { return state_->used_bytes; }

 private:
  struct State {
    HeapRecordTable records;
    std::vector<RecordChange> unsynced;  // the values before each change, the last change last
    HeapChunkTable chunks;
    std::map<uint64_t, uint64_t> segment_bytes;
    uint64_t capacity_bytes = UINT64_MAX;
    uint64_t used_bytes = 0;
    std::optional<uint64_t> corrupt_nth;
    std::optional<std::pair<ObjectNumber, uint32_t>> corrupt;
    uint64_t read_count = 0;
    bool is_short = false;
    bool is_flipped = false;
  };
  class Records;
  class Chunks;
  class Writer;

  std::shared_ptr<State> state_;
};

}  // namespace crossdock
