#include "model/hf/families.h"

#include <algorithm>
#include <array>

namespace crossdock {
namespace {

constexpr std::string_view kNextN = "num_nextn_predict_layers";
constexpr std::string_view kMtp = "mtp_num_hidden_layers";
constexpr std::string_view kModules = "num_mtp_modules";
constexpr std::string_view kText = "text_config";

// Kimi K2 names DeepseekV3ForCausalLM. Qwen3.5 keeps what Qwen3-Next keeps. GLM-5 has the indexer of DeepSeek-V3.2.
constexpr std::array kFamilies = {
    Family{"BailingMoeForCausalLM", "bailing_moe", {}, {}, read_bailing, kNextN},
    Family{"BailingMoeV2ForCausalLM", "bailing_moe", {}, {}, read_bailing, kNextN},
    Family{"BailingMoeV2ForCausalLM", "bailing_moe_v2", {}, {}, read_bailing, kNextN},
    Family{"DeciLMForCausalLM", "deci", {}, {}, read_nemotron_nas},
    Family{"DeciLMForCausalLM", "nemotron-nas", {}, {}, read_nemotron_nas},
    Family{"DeepseekV2ForCausalLM", "deepseek_v2", {}, {}, read_deepseek},
    Family{"DeepseekV32ForCausalLM", "deepseek_v32", {}, {}, read_deepseek_sparse, kNextN},
    Family{"DeepseekV3ForCausalLM", "deepseek_v3", {}, {}, read_deepseek, kNextN},
    Family{"DeepseekV3ForCausalLM", "kimi_k2", {}, {}, read_deepseek, kNextN},
    Family{"DeepseekV4ForCausalLM", "deepseek_v4", {}, {}, read_deepseek_v4, kNextN},
    Family{"Dots1ForCausalLM", "dots1", {}, {}, read_dots1},
    Family{"Ernie4_5ForCausalLM", "ernie4_5", {}, {}, read_ernie4_5},
    Family{"Ernie4_5_ForCausalLM", "ernie4_5", {}, {}, read_ernie4_5},
    Family{"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", {}, {}, read_divided_heads, kNextN},
    Family{"Exaone4ForCausalLM", "exaone4", {}, {}, read_exaone4},
    Family{"FalconH1ForCausalLM", "falcon_h1", {}, {}, read_falcon_h1},
    Family{"Gemma2ForCausalLM", "gemma2", {}, {}, read_gemma2},
    Family{"Gemma3ForCausalLM", "gemma3_text", {}, {}, read_gemma3},
    Family{"Gemma3ForConditionalGeneration", "gemma3", kText, "gemma3_text", read_gemma3},
    Family{"Gemma3nForCausalLM", "gemma3n_text", {}, {}, read_gemma3n},
    Family{"Gemma3nForConditionalGeneration", "gemma3n", kText, "gemma3n_text", read_gemma3n},
    Family{"Gemma4ForCausalLM", "gemma4_text", {}, {}, read_gemma4},
    Family{"Gemma4ForConditionalGeneration", "gemma4", kText, "gemma4_text", read_gemma4},
    Family{"Gemma4UnifiedForConditionalGeneration", "gemma4_unified", kText, "gemma4_unified_text", read_gemma4},
    Family{"Glm4MoeForCausalLM", "glm4_moe", {}, {}, read_stated_heads, kNextN},
    Family{"Glm4MoeLiteForCausalLM", "glm4_moe_lite", {}, {}, read_dense_latent, kNextN},
    Family{"Glm4vMoeForConditionalGeneration", "glm4v_moe", kText, "glm4v_moe_text", read_stated_heads, kNextN},
    Family{"GlmMoeDsaForCausalLM", "glm_moe_dsa", {}, {}, read_deepseek_sparse, kNextN},
    Family{"GptOssForCausalLM", "gpt_oss", {}, {}, read_gpt_oss},
    Family{"GraniteForCausalLM", "granite", {}, {}, read_llama},
    Family{"GraniteMoeForCausalLM", "granitemoe", {}, {}, read_llama},
    Family{"GraniteMoeHybridForCausalLM", "granitemoehybrid", {}, {}, read_granite_hybrid},
    Family{"GraniteMoeSharedForCausalLM", "granitemoeshared", {}, {}, read_llama},
    Family{"HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", {}, {}, read_hunyuan},
    Family{"HunYuanMoEV1ForCausalLM", "hunyuan", {}, {}, read_hunyuan},
    Family{"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", {}, {}, read_hunyuan},
    Family{"JambaForCausalLM", "jamba", {}, {}, read_jamba},
    Family{"KimiK25ForConditionalGeneration", "kimi_k25", kText, "deepseek_v3", read_dense_latent, kNextN},
    Family{"KimiK25ForConditionalGeneration", "kimi_k25", kText, "kimi_k2", read_dense_latent, kNextN},
    Family{"KimiK3ForConditionalGeneration", "kimi_k3", kText, "kimi_linear", read_kimi_linear},
    Family{"KimiLinearForCausalLM", "kimi_linear", {}, {}, read_kimi_linear, kNextN},
    Family{"Lfm2ForCausalLM", "lfm2", {}, {}, read_lfm2},
    Family{"Lfm2MoeForCausalLM", "lfm2_moe", {}, {}, read_lfm2},
    Family{"Lfm2VlForConditionalGeneration", "lfm2_vl", kText, "lfm2", read_lfm2},
    Family{"Llama4ForCausalLM", "llama4_text", {}, {}, read_llama4},
    Family{"Llama4ForConditionalGeneration", "llama4", kText, "llama4_text", read_llama4},
    Family{"LlamaForCausalLM", "llama", {}, {}, read_llama},
    Family{"MiMoForCausalLM", "mimo", {}, {}, read_qwen2, kNextN},
    Family{"MiMoV2FlashForCausalLM", "mimo_v2_flash", {}, {}, read_mimo_v2, {}, true},
    Family{"MiMoV2ForCausalLM", "mimo_v2", {}, {}, read_mimo_v2, {}, true},
    Family{"MiniMaxM2ForCausalLM", "minimax_m2", {}, {}, read_minimax_m2},
    Family{"MiniMaxM3SparseForCausalLM", "minimax_m3", {}, {}, read_minimax_m3, kModules},
    Family{"MiniMaxM3SparseForCausalLM", "minimax_m3_text", {}, {}, read_minimax_m3, kModules},
    Family{"MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", kText, "minimax_m3_text", read_minimax_m3,
           kModules},
    Family{"MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", kText, "minimax_m3_vl_text", read_minimax_m3,
           kModules},
    Family{"Ministral3ForCausalLM", "ministral3", {}, {}, read_ministral3},
    Family{"Mistral3ForConditionalGeneration", "mistral3", kText, "mistral", read_mistral},
    Family{"Mistral3ForConditionalGeneration", "mistral3", kText, "ministral3", read_ministral3},
    Family{"Mistral3ForConditionalGeneration", "mistral3", kText, "mistral4", read_dense_latent},
    Family{"MistralForCausalLM", "mistral", {}, {}, read_mistral},
    Family{"MistralLarge3ForCausalLM", "deepseek_v3", {}, {}, read_deepseek},
    Family{"MixtralForCausalLM", "mixtral", {}, {}, read_mixtral},
    Family{"NemotronHForCausalLM", "nemotron_h", {}, {}, read_nemotron_h, kNextN},
    Family{"Olmo2ForCausalLM", "olmo2", {}, {}, read_olmo2},
    Family{"Olmo3ForCausalLM", "olmo3", {}, {}, read_olmo3},
    Family{"Phi3ForCausalLM", "phi3", {}, {}, read_phi3},
    Family{"Phi4MMForCausalLM", "phi4mm", {}, {}, read_phi3},
    Family{"PhiMoEForCausalLM", "phimoe", {}, {}, read_mixtral},
    Family{"PhimoeForCausalLM", "phimoe", {}, {}, read_mixtral},
    Family{"Qwen2ForCausalLM", "qwen2", {}, {}, read_qwen2},
    Family{"Qwen2MoeForCausalLM", "qwen2_moe", {}, {}, read_qwen2},
    Family{"Qwen3ForCausalLM", "qwen3", {}, {}, read_qwen2},
    Family{"Qwen3MoeForCausalLM", "qwen3_moe", {}, {}, read_qwen2},
    Family{"Qwen3NextForCausalLM", "qwen3_next", {}, {}, read_qwen3_next, kNextN},
    Family{"Qwen3VLForConditionalGeneration", "qwen3_vl", kText, "qwen3_vl_text", read_stated_heads},
    Family{"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", kText, "qwen3_vl_moe_text", read_stated_heads},
    Family{"Qwen3_5ForCausalLM", "qwen3_5_text", {}, {}, read_qwen3_5, kMtp},
    Family{"Qwen3_5ForConditionalGeneration", "qwen3_5", kText, "qwen3_5_text", read_qwen3_5, kMtp},
    Family{"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", {}, {}, read_qwen3_5, kMtp},
    Family{"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", kText, "qwen3_5_moe_text", read_qwen3_5, kMtp},
    Family{"SeedOssForCausalLM", "seed_oss", {}, {}, read_seed_oss},
    Family{"SmolLM3ForCausalLM", "smollm3", {}, {}, read_smollm3},
    Family{"Step3TextForCausalLM", "step3_text", {}, {}, read_step3},
    Family{"Step3VLForConditionalGeneration", "step3_vl", kText, "step3_text", read_step3},
    Family{"Step3p5ForCausalLM", "step3p5", {}, {}, read_step3p5, kNextN},
    Family{"Step3p7FlashForCausalLM", "step3p7", {}, {}, read_step3p5, kNextN},
    Family{"Step3p7ForConditionalGeneration", "step3p7", kText, "step3p5", read_step3p5, kNextN},
};
static_assert(std::is_sorted(kFamilies.begin(), kFamilies.end(),
                             [](const Family& a, const Family& b) { return a.architecture < b.architecture; }));

}  // namespace

std::span<const Family> hf_families() { return kFamilies; }

}  // namespace crossdock
