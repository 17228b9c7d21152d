// JSON forms of what several documents of a KV cache share.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "model/kv/live_tokens.h"
#include "model/wire/describe.h"

namespace crossdock::form {

inline constexpr OptionalKinds kTokenAxisKinds = {{"rows", "state"}, 0};

// {"kind":"rows","tokens_per_row":n}, or {"kind":"state"} for a component without a token axis.
inline constexpr auto kTokenAxis = object([](auto& fields, auto& tokens_per_row) {
  describe_optional(fields, kTokenAxisKinds, "tokens_per_row", tokens_per_row, number(1));
});

inline constexpr auto kComponent = object([](auto& fields, auto& component) {
  fields.required("dtype", component.dtype, kName);
  fields.required("encoding", component.encoding, kName);
  fields.required("head_count", component.head_count, number(1));
  fields.required("head_dim", component.head_dim, number(1));
  fields.required("item_bytes", component.item_bytes, number(1));
  fields.required("name", component.name, kName);
  fields.required("token_axis", component.tokens_per_row, kTokenAxis);
});

// In the order of LiveTokens::Kind.
inline constexpr std::array<std::string_view, 3> kLiveTokenKinds = {"all", "window", "chunk"};

inline constexpr auto kLiveTokens = object([](auto& fields, auto& live) {
  const size_t kind = fields.kind(kLiveTokenKinds, static_cast<size_t>(live.kind));
  if constexpr (std::remove_reference_t<decltype(fields)>::kReads)
    live = LiveTokens{kind < kLiveTokenKinds.size() ? static_cast<LiveTokens::Kind>(kind) : LiveTokens::Kind::kAll, 0};
  if (live.kind != LiveTokens::Kind::kAll) fields.required("tokens", live.tokens, number(1));
});

inline constexpr auto kCycle = object([](auto& fields, auto& cycle) {
  fields.required("block_tokens", cycle.block_tokens, number(1));
  fields.required("blocks", cycle.blocks, kIntervals);
  fields.required("cycle_blocks", cycle.cycle_blocks, number(1));
});

inline constexpr auto kPageTable = object([](auto& fields, auto& table) {
  fields.required("id", table.id, kName);
  fields.required("page_tokens", table.page_tokens, number(1));
  fields.required("slots", table.slots, list_of(number()));
  fields.required("token_begin", table.token_begin, number());
});

inline constexpr auto kViewPages = object([](auto& fields, auto& pages) {
  fields.required("page_stride_bytes", pages.page_stride_bytes, number());
  fields.required("table", pages.table, kName);
});

// In bytes, whatever the component's item size.
inline constexpr auto kByteStrides = object([](auto& fields, auto& strides) {
  fields.required("dim", strides.dim, number());
  fields.required("head", strides.head, number());
  fields.required("layer", strides.layer, number());
  fields.required("row", strides.row, number());
});

inline constexpr auto kView = object([](auto& fields, auto& view) {
  fields.required("component", view.component, kName);
  fields.optional("cycle", view.cycle, kCycle);
  fields.required("dims", view.dims, kInterval);
  fields.required("heads", view.heads, kInterval);
  fields.required("layers", view.layers, kInterval);
  fields.required("offset_bytes", view.offset_bytes, number());
  fields.optional("pages", view.pages, kViewPages);
  fields.required("region", view.region, kName);
  fields.required("stride_bytes", view.strides, kByteStrides);
  fields.required("tokens", view.tokens, kInterval);
});

}  // namespace crossdock::form
