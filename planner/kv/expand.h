// Plans row by row, for other tools to compare: one row for each layer and each contiguous run of heads and tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "planner/kv/lower.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/store_geometry.h"

namespace crossdock {

// `heads` and `tokens` are contiguous runs; offsets are counted in heads.
struct LogicalRow {
  std::string source;
  std::string target;
  uint64_t layer = 0;
  std::string component;
  Range heads;
  Range tokens;
  uint64_t source_head_offset = 0;  // of the first head among those that the source has of this layer and component
  uint64_t target_head_offset = 0;
  uint64_t head_dim = 0;
  uint64_t item_bytes = 0;

  friend auto operator<=>(const LogicalRow&, const LogicalRow&) = default;
};

// What a participant writes into, or reads from, the page objects of a part; for a state, the part's state object.
struct StoreRow {
  std::string participant;
  uint64_t layer = 0;
  std::string component;
  Range heads;
  uint32_t part_index = 0;   // in the layout's list
  uint64_t part_offset = 0;  // of the first head of the first row of the page
  uint64_t row_stride_bytes = 0;
  uint64_t head_stride_bytes = 0;

  friend auto operator<=>(const StoreRow&, const StoreRow&) = default;
};

// Offsets are in bytes from the begin of the region or object.
struct ByteRow {
  std::string source;
  std::string target;
  std::string source_region;
  uint64_t source_offset = 0;
  std::string target_region;
  uint64_t target_offset = 0;
  uint64_t bytes = 0;

  friend auto operator<=>(const ByteRow&, const ByteRow&) = default;
};

// What the command line uses as row_count_max.
inline constexpr uint64_t kRowsMax = uint64_t{1} << 22;

// Each sorted, and empty with a diagnostic (plan-limit) when there would be more than `row_count_max` rows. The plan
// passed verify_plan with the sides.
std::optional<std::vector<LogicalRow>> logical_rows(const TransferPlan& plan, const PlanSide& source,
                                                    const PlanSide& target, uint64_t row_count_max,
                                                    Diagnostics& diagnostics);

// Of an upload to, or a restore from, the layout and its geometry; the plan passed verify_plan with that layout.
std::optional<std::vector<StoreRow>> store_rows(const TransferPlan& plan, const StoreLayout& layout,
                                                const StoreGeometry& geometry, uint64_t row_count_max,
                                                Diagnostics& diagnostics);

// Neighbours that are contiguous on both sides are one row.
std::optional<std::vector<ByteRow>> byte_rows(const TransferPlan& plan, const LoweredPlan& lowered,
                                              uint64_t row_count_max, Diagnostics& diagnostics);

}  // namespace crossdock
