// The order of the axes within a page of a pool.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace crossdock {

// Outermost first: n tokens (rows), h heads, d items of a head.
enum class AxisOrder { kNhd, kHnd };

struct AxisOrderName {
  AxisOrder order;
  std::string_view name;
};

// As in documents and options.
inline constexpr std::array kAxisOrders = {AxisOrderName{AxisOrder::kHnd, "hnd"},
                                           AxisOrderName{AxisOrder::kNhd, "nhd"}};

constexpr std::string_view axis_order_name(AxisOrder order) { return order == AxisOrder::kNhd ? "nhd" : "hnd"; }

// Empty when the text names none.
constexpr std::optional<AxisOrder> parse_axis_order(std::string_view text) {
  for (const AxisOrderName& row : kAxisOrders)
    if (row.name == text) return row.order;
  return std::nullopt;
}

}  // namespace crossdock
