// Numbers for values: equal values have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace crossdock {

// Gives equal values one number, in the order of their first appearance.
template <class Value>
class Interner {
 public:
  // O(log n), and O(1) for the value that was interned last. At most 2^32 - 1 different values.
  uint32_t intern(const Value& value) {
    if (last_ < values_.size() && *values_[last_] == value) return last_;
    const auto [entry, is_new] = numbers_.try_emplace(value, static_cast<uint32_t>(values_.size()));
    if (is_new) values_.push_back(&entry->first);
    return last_ = entry->second;
  }
  // Values stay where they are in memory.
  const Value& operator[](uint32_t number) const { return *values_[number]; }
  size_t size() const { return values_.size(); }
  std::vector<Value> to_vector() const {
    std::vector<Value> values;
    values.reserve(values_.size());
    for (const Value* value : values_) values.push_back(*value);
    return values;
  }

 private:
  std::map<Value, uint32_t> numbers_;
  std::vector<const Value*> values_;
  uint32_t last_ = 0;
};

}  // namespace crossdock
