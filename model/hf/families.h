// The table of families: which pair of architecture and model_type is read by which function.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/hf/shape.h"

namespace crossdock {

struct Family {
  std::string_view architecture;          // architectures[0], of the root
  std::string_view model_type;            // of the root
  std::string_view text_field = {};       // where the language model's fields lie; empty: at the root
  std::string_view text_model_type = {};  // of the language model; the first row of an architecture counts when absent
  std::optional<ModelShape> (*read)(const ConfigInput&) = nullptr;
  std::string_view draft_field = {};  // how many draft steps the checkpoint has, of the language model; empty: none
  bool one_draft = false;             // engines run one draft step whatever the config says
};

// Sorted by architecture.
std::span<const Family> hf_families();

// Each adds diagnostics and is empty when the config does not give a shape.

// Keys and values of every layer alike (attention.cc).
std::optional<ModelShape> read_llama(const ConfigInput& input);
std::optional<ModelShape> read_mistral(const ConfigInput& input);
std::optional<ModelShape> read_ministral3(const ConfigInput& input);
std::optional<ModelShape> read_mixtral(const ConfigInput& input);
std::optional<ModelShape> read_phi3(const ConfigInput& input);
std::optional<ModelShape> read_qwen2(const ConfigInput& input);
std::optional<ModelShape> read_stated_heads(const ConfigInput& input);
std::optional<ModelShape> read_divided_heads(const ConfigInput& input);
std::optional<ModelShape> read_ernie4_5(const ConfigInput& input);
std::optional<ModelShape> read_bailing(const ConfigInput& input);
std::optional<ModelShape> read_seed_oss(const ConfigInput& input);
std::optional<ModelShape> read_minimax_m2(const ConfigInput& input);
std::optional<ModelShape> read_smollm3(const ConfigInput& input);
std::optional<ModelShape> read_dots1(const ConfigInput& input);
std::optional<ModelShape> read_hunyuan(const ConfigInput& input);
std::optional<ModelShape> read_nemotron_nas(const ConfigInput& input);

// Layers of several kinds of attention (window.cc).
std::optional<ModelShape> read_gemma2(const ConfigInput& input);
std::optional<ModelShape> read_gemma3(const ConfigInput& input);
std::optional<ModelShape> read_gemma3n(const ConfigInput& input);
std::optional<ModelShape> read_gemma4(const ConfigInput& input);
std::optional<ModelShape> read_gpt_oss(const ConfigInput& input);
std::optional<ModelShape> read_olmo2(const ConfigInput& input);
std::optional<ModelShape> read_olmo3(const ConfigInput& input);
std::optional<ModelShape> read_exaone4(const ConfigInput& input);
std::optional<ModelShape> read_llama4(const ConfigInput& input);
std::optional<ModelShape> read_mimo_v2(const ConfigInput& input);
std::optional<ModelShape> read_step3(const ConfigInput& input);
std::optional<ModelShape> read_step3p5(const ConfigInput& input);
std::optional<ModelShape> read_minimax_m3(const ConfigInput& input);

// One latent row per token (latent.cc).
std::optional<ModelShape> read_deepseek(const ConfigInput& input);
std::optional<ModelShape> read_deepseek_sparse(const ConfigInput& input);
std::optional<ModelShape> read_dense_latent(const ConfigInput& input);
std::optional<ModelShape> read_deepseek_v4(const ConfigInput& input);

// Linear attention beside full attention (linear.cc).
std::optional<ModelShape> read_qwen3_next(const ConfigInput& input);
std::optional<ModelShape> read_qwen3_5(const ConfigInput& input);
std::optional<ModelShape> read_kimi_linear(const ConfigInput& input);

// Mamba layers and short convolutions (mamba.cc).
std::optional<ModelShape> read_nemotron_h(const ConfigInput& input);
std::optional<ModelShape> read_falcon_h1(const ConfigInput& input);
std::optional<ModelShape> read_granite_hybrid(const ConfigInput& input);
std::optional<ModelShape> read_jamba(const ConfigInput& input);
std::optional<ModelShape> read_lfm2(const ConfigInput& input);

}  // namespace crossdock
