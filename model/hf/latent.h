// Multi-head latent attention: one row per token that all heads share.
#pragma once

#include <optional>

#include "model/hf/dtypes.h"
#include "model/hf/shape.h"

namespace crossdock {

// "latent": kv_lora_rank items and qk_rope_head_dim items behind them; with an indexer that picks tokens, `is_sparse`.
// Empty when refused.
LayerClass read_latent(const ConfigInput& input, bool is_sparse);

}  // namespace crossdock
