// Tables in memory that outlive the store over them, so that it can be opened again; each call can be made to fail, and
// each stored byte to be read wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/store/heap_tables.h"

namespace crossdock::testing {

// One call that fails, of those that reach the tables from now on.
struct TableFault {
  uint64_t call = 0;  // counted from 0, of `kind` only
  std::string kind;   // "append", "finish", "new segment", "add", "read", "remove", "segments", "get", "write", "scan";
                      // empty: any
  bool happens = false;  // although the caller is told that it failed
  Code code = Code::kIo;
};

// What is read instead of one stored byte, or instead of a whole chunk.
struct ChunkDamage {
  ObjectNumber object;
  uint32_t chunk = 0;
  enum class What { kFlip, kCut, kGone } what = What::kFlip;
  size_t byte = 0;
};

class StoreTables {
 public:
  std::unique_ptr<RecordTable> records() const;
  std::unique_ptr<ChunkTable> chunks() const;

  void fail(TableFault fault) const { *control_ = Control{std::move(fault), 0, ""}; }
  void heal() const { *control_ = Control(); }
  // The kind of the call that was made to fail; empty when it was not reached.
  const std::string& failed() const { return control_->failed; }
  void damage(std::optional<ChunkDamage> damage) const { *damage_ = damage; }
  // Called before each write of records.
  void on_write(std::function<void(std::span<const RecordChange>, bool durable)> observer) const {
    *observer_ = std::move(observer);
  }

  const HeapRecordTable& all_records() const { return *records_; }
  const HeapChunkTable& all_chunks() const { return *chunks_; }

 private:
  struct Control {
    std::optional<TableFault> fault;
    uint64_t calls = 0;
    std::string failed;
  };
  class Records;
  class Chunks;
  class Writer;

  // The status of a call; runs `happen` unless it fails before it does anything.
  static Status call(Control& control, std::string_view kind, const std::function<Status()>& happen);

  std::shared_ptr<Control> control_ = std::make_shared<Control>();
  std::shared_ptr<std::optional<ChunkDamage>> damage_ = std::make_shared<std::optional<ChunkDamage>>();
  std::shared_ptr<std::function<void(std::span<const RecordChange>, bool)>> observer_ =
      std::make_shared<std::function<void(std::span<const RecordChange>, bool)>>();
  std::shared_ptr<HeapRecordTable> records_ = std::make_shared<HeapRecordTable>();
  std::shared_ptr<HeapChunkTable> chunks_ = std::make_shared<HeapChunkTable>();
};

}  // namespace crossdock::testing
