// The memory of a participant with a tag for each byte, which says what it is and of which content.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/copy_work.h"
#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "sim/shadow/shadow.h"

namespace crossdock::testing {

struct CellName {
  std::string component;
  uint64_t layer = 0;
  uint64_t head = 0;
  uint64_t row = 0;
  uint64_t byte = 0;  // of the head
  friend bool operator==(const CellName&, const CellName&) = default;
};

struct ByteTag {
  std::optional<CellName> name;  // empty: no view of this participant holds the byte
  uint64_t token = 0;            // the first of its row that the view holds
  bool is_state = false;
  ContentTag content = 0;
  uint64_t count = 0;
};

// The regions of one binding, byte by byte.
struct NaiveMemory {
  std::map<RegionId, std::vector<ByteTag>> regions;
  InstanceId instance;

  NaiveMemory(const RuntimeBinding& binding, const CacheSchema& schema, ContentTag initial);

  // Null when the key is of another instance, or of no region.
  std::vector<ByteTag>* find(const RegionKey& key);
  // Calls visit(region, byte, tag) for each byte that a view holds.
  template <class Visit>
  void for_each_held(Visit visit) const {
    for (const auto& [id, bytes] : regions)
      for (uint64_t i = 0; i < bytes.size(); ++i)
        if (bytes[i].name) visit(id, i, bytes[i]);
  }

  void overwrite_all(ContentTag content);

 private:
  void add(const RuntimeBinding& binding, const CacheSchema& schema, const View& view, ContentTag initial);
};

struct NaiveBytes {
  ByteTag* source;  // null: outside the region
  ByteTag* target;
};

// The bytes of a step in its order.
std::vector<NaiveBytes> bytes_of(const CopyWork& work, const CopyStep& step, NaiveMemory& source, NaiveMemory& target);

// Whether each of them goes to where the same byte lies on the other side.
bool is_right(const std::vector<NaiveBytes>& bytes);

// As the shadow names a cell, with or without the byte.
std::string text_of(const ByteTag& tag, uint64_t byte);

// What is wrong with a byte, as the shadow says it; empty when nothing is.
std::string fault_of(const ByteTag& tag, ContentTag content, bool exactly_once);

}  // namespace crossdock::testing
