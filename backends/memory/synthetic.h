// Synthetic cache content: every item's bytes are a function of its component, layer, head, row and position. A cache
// in any layout can be checked without a second copy of the content and without the planner.
//
// The bytes of one head in one row (dims [0, head_dim) of the component) are a stream of 64-bit words, little-endian:
//   word w = mix(start + w * 0x9e3779b97f4a7c15),  mix(x) = y ^ (y >> 32) with y = (x ^ (x >> 32)) * 0xd6e8feb86659fd93
//   start  = next(base + head * 0xc2b2ae3d27d4eb4f + row * 0xa0761d6478bd642f)
// next(x) is the output of splitmix64 (base/rng.h) from state x. base begins as 0 and becomes next(base ^ number) for
// each of: the seed, the layer, the bytes of the component's name. row counts from token 0 on (token / tokens_per_row);
// a state is row 0. All arithmetic wraps at 2^64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "backends/memory/guards.h"
#include "backends/memory/region_memory.h"
#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "model/valid.h"

namespace crossdock {

// The functions below touch the items of the binding and no other byte, so several threads may work on bindings of one
// memory at once. The binding keeps check_binding (model/kv/binding_rules.h) with a placement of the schema, and
// `memory` has its regions.

// Calls visit() with pieces of memory that together hold every item of the binding's views. A piece holds some rows of
// one head, and what lies between them.
void for_each_extent(const Valid<RuntimeBinding>& binding, const CacheSchema& schema, const RegionMemory& memory,
                     const std::function<void(std::span<const std::byte>)>& visit);

// Writes every item that the binding's views hold. Returns the bytes written.
uint64_t write_synthetic(const Valid<RuntimeBinding>& binding, const CacheSchema& schema, uint64_t seed,
                         const RegionMemory& memory);

// The first item, in the order of the views, that is not what write_synthetic() writes, as text that names region,
// offset, component, layer, head, token (of several in one row, the first that the view holds) and dim: "region
// 'p0-t0/key' epoch 3 byte 4096: component key layer 3 head 1 token 17 dim 5: holds a5a5 instead of 0c3e" (of a long
// item, the 16 bytes that hold the first wrong one). Empty when all are right. As it goes, it puts guard bytes in the
// place of the items that it has seen, so that check_guards() can tell afterwards whether anything else was touched.
std::optional<std::string> take_synthetic(const Valid<RuntimeBinding>& binding, const CacheSchema& schema,
                                          uint64_t seed, const RegionMemory& memory);

}  // namespace crossdock
