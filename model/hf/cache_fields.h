// Fields of model configs that engines read for the cache.
#pragma once

#include <span>
#include <string_view>

#include "model/hf/fields.h"

namespace crossdock {

// A field that decides what is kept in some family. Where a family does not read it, only a value that changes nothing
// may be there.
struct CacheField {
  enum class Harmless {
    kNone,   // only null
    kFalse,  // false, or "vision" for attention that looks ahead within pictures
    kTrue,
    kZero,     // 0
    kOne,      // 0 or 1
    kAllFull,  // a list of "full_attention" alone
    kAllOne,   // a list of ones
  };
  std::string_view name;
  Harmless harmless = Harmless::kNone;
};

// Sorted by name. A test walks it.
std::span<const CacheField> cache_fields();

// Refuses each of them that `fields` has, that no reader has asked for, and whose value is not harmless.
void refuse_unread_cache_fields(const ConfigFields& fields);

}  // namespace crossdock
