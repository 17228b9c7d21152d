// One reader for each kind of architecture. Each adds diagnostics and is empty when the config does not give a shape.
#pragma once

#include <optional>

#include "model/hf/shape.h"

namespace crossdock {

// Keys and values per head (attention.cc).
std::optional<ModelShape> read_llama(const ConfigInput& input);
std::optional<ModelShape> read_mistral(const ConfigInput& input);
std::optional<ModelShape> read_mixtral(const ConfigInput& input);
std::optional<ModelShape> read_qwen2(const ConfigInput& input);
std::optional<ModelShape> read_qwen3(const ConfigInput& input);
std::optional<ModelShape> read_gemma2(const ConfigInput& input);
std::optional<ModelShape> read_gemma3(const ConfigInput& input);
std::optional<ModelShape> read_gpt_oss(const ConfigInput& input);

// One latent row per token (latent.cc).
std::optional<ModelShape> read_deepseek(const ConfigInput& input);
std::optional<ModelShape> read_deepseek_sparse(const ConfigInput& input);

// Linear attention beside full attention (linear.cc).
std::optional<ModelShape> read_qwen3_next(const ConfigInput& input);
std::optional<ModelShape> read_kimi_linear(const ConfigInput& input);

}  // namespace crossdock
