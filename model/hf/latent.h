// Multi-head latent attention: one row per token that all heads share.
#pragma once

#include <optional>

#include "model/hf/shape.h"

namespace crossdock {

// "latent": kv_lora_rank items and qk_rope_head_dim items behind them.
std::optional<Component> read_latent(const ConfigInput& input);

}  // namespace crossdock
