// What each family of models keeps: bytes that follow from the sizes by the rules of the engines, against the reader.
// docs/models.md is this table. CROSSDOCK_WRITE_DOCS=1 writes it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/number_text.h"
#include "model/hf/cache_fields.h"
#include "model/hf/config.h"
#include "tests/support/example_documents.h"
#include "tests/support/paths.h"

namespace crossdock {
namespace {

using testing::diagnostic_lines;

// Bytes by how long they live.
struct Kept {
  uint64_t for_ever = 0;   // for each token
  uint64_t in_window = 0;  // for each token of a window or chunk
  uint64_t per_sequence = 0;
  friend bool operator==(const Kept&, const Kept&) = default;
};

struct Row {
  std::string family;
  std::string config;  // below examples/models or tests/golden/configs
  HfOptions options;
  uint64_t layers;  // hidden
  std::string components;
  Kept kept;  // products of the config's sizes
  std::string source;
};

constexpr uint64_t kF32 = 4;
constexpr uint64_t kB16 = 2;
constexpr uint64_t kF8 = 1;
// Keys and values of one layer.
constexpr uint64_t kv(uint64_t heads, uint64_t dim, uint64_t item = kB16) { return 2 * heads * dim * item; }
// A gated delta net: queries, keys and values of 3 tokens, and a matrix for each value head.
constexpr uint64_t delta(uint64_t keys, uint64_t values, uint64_t dim, uint64_t state_item) {
  return (2 * keys + values) * dim * 3 * kB16 + values * dim * dim * state_item;
}
// Mamba-2: x, B and C of kernel - 1 = 3 tokens, and the state.
constexpr uint64_t mamba2(uint64_t heads, uint64_t dim, uint64_t groups, uint64_t state, uint64_t state_item) {
  return (heads * dim + 2 * groups * state) * 3 * kB16 + heads * dim * state * state_item;
}

std::vector<Row> rows() {
  const HfOptions vllm;
  const HfOptions sglang = {.engine = Engine::kSglang};
  const std::string kv_text = "key, value";
  const std::string latent = "latent";
  return {
      {"Llama", "llama-3.1-8b", vllm, 32, kv_text, {32 * kv(8, 128)}, "vllm models/llama.py"},
      {"Llama", "meta-llama__Meta-Llama-3.1-405B", vllm, 126, kv_text, {126 * kv(8, 128)}, "vllm models/llama.py"},
      {"Llama, fp8 scheme",
       "redhat-llama-3.1-8b-fp8-kv",
       vllm,
       32,
       kv_text,
       {32 * kv(8, 128, kF8)},
       "vllm layers/attention/attention.py"},
      {"Llama, fp8 scheme",
       "redhat-llama-3.1-8b-fp8-kv",
       sglang,
       32,
       kv_text,
       {32 * kv(8, 128)},
       "sglang mem_cache/kv_cache_dtype.py"},
      {"Llama, NVFP4 scheme",
       "llama-nvfp4-kv",
       vllm,
       32,
       kv_text,
       {32 * 2 * 8 * (128 / 2 + 128 / 16)},
       "vllm utils/torch_utils.py"},
      {"Llama, NVFP4 scheme",
       "llama-nvfp4-kv",
       sglang,
       32,
       kv_text,
       {32 * kv(8, 128)},
       "sglang mem_cache/kv_cache_dtype.py"},
      {"Mistral", "mistral-7b-v0.1", vllm, 32, kv_text, {0, 32 * kv(8, 128)}, "vllm models/llama.py"},
      {"Mistral", "mistral-7b-v0.1", sglang, 32, kv_text, {32 * kv(8, 128)}, "sglang configs/model_config.py"},
      {"Mixtral", "mixtral-8x7b", vllm, 32, kv_text, {32 * kv(8, 128)}, "vllm models/mixtral.py"},
      {"Ministral 3", "ministral-3-8b", vllm, 34, kv_text, {34 * kv(8, 128)}, "vllm models/mistral.py"},
      {"Devstral Small 2", "devstral-small-2-24b", vllm, 40, kv_text, {40 * kv(8, 128)}, "vllm models/mistral3.py"},
      {"Mistral Small 4",
       "mistral-small-4-119b",
       vllm,
       36,
       latent,
       {36 * (256 + 64) * kB16},
       "vllm transformers_utils/configs/mistral.py"},
      {"Qwen3", "Qwen__Qwen3-8B", vllm, 36, kv_text, {36 * kv(8, 128)}, "vllm models/qwen3.py"},
      {"Qwen3-VL", "Qwen__Qwen3-VL-2B-Instruct", vllm, 28, kv_text, {28 * kv(8, 128)}, "vllm models/qwen3_vl.py"},
      {"Qwen3-VL MoE",
       "Qwen__Qwen3-VL-235B-A22B-Instruct",
       vllm,
       94,
       kv_text,
       {94 * kv(4, 128)},
       "vllm models/qwen3_vl_moe.py"},
      {"Qwen3-Next",
       "qwen3-next-80b-a3b",
       vllm,
       48,
       kv_text + ", recurrent_state, conv_*",
       {12 * kv(2, 256), 0, 36 * delta(16, 32, 128, kB16)},
       "vllm models/qwen3_next.py"},
      {"Qwen3-Next",
       "qwen3-next-80b-a3b",
       sglang,
       48,
       kv_text + ", recurrent_state, conv_*",
       {12 * kv(2, 256), 0, 36 * delta(16, 32, 128, kF32)},
       "sglang configs/mamba_utils.py"},
      {"Qwen3.5",
       "Qwen__Qwen3.5-27B",
       vllm,
       64,
       kv_text + ", recurrent_state, conv_*",
       {16 * kv(4, 256), 0, 48 * delta(16, 48, 128, kF32)},
       "vllm models/qwen3_5.py"},
      {"Qwen3.5 MoE, fp8 scheme",
       "nvidia__Qwen3.5-122B-A10B-NVFP4",
       vllm,
       48,
       kv_text + ", recurrent_state, conv_*",
       {12 * kv(2, 256, kF8), 0, 36 * delta(16, 64, 128, kF32)},
       "vllm utils/torch_utils.py"},
      {"Qwen3.5 MoE, fp8 scheme",
       "nvidia__Qwen3.5-397B-A17B-NVFP4",
       vllm,
       60,
       kv_text + ", recurrent_state, conv_*",
       {15 * kv(2, 256, kF8), 0, 45 * delta(16, 64, 128, kF32)},
       "vllm utils/torch_utils.py"},
      {"Qwen3.6, fp8 scheme",
       "nvidia__Qwen3.6-27B-NVFP4",
       vllm,
       64,
       kv_text + ", recurrent_state, conv_*",
       {16 * kv(4, 256, kF8), 0, 48 * delta(16, 48, 128, kF32)},
       "vllm utils/torch_utils.py"},
      {"MiniMax-M2", "MiniMaxAI__MiniMax-M2.5", vllm, 62, kv_text, {62 * kv(8, 128)}, "vllm models/minimax_m2.py"},
      {"GLM-4.5 to 4.7", "glm-4.6", vllm, 92, kv_text, {92 * kv(8, 128)}, "vllm models/glm4_moe.py"},
      {"GLM-5",
       "zai-org__GLM-5",
       vllm,
       78,
       "latent, indexer_key",
       {78 * (576 * kB16 + 132)},
       "vllm models/deepseek_v2.py"},
      {"Kimi K2.5", "moonshotai__Kimi-K2.5", vllm, 61, latent, {61 * 576 * kB16}, "vllm models/kimi_k25.py"},
      {"Kimi Linear",
       "kimi-linear-48b-a3b",
       vllm,
       27,
       "latent, recurrent_state, conv_*",
       {7 * 576 * kB16, 0, 20 * delta(32, 32, 128, kF32)},
       "vllm layers/mamba/mamba_utils.py"},
      {"DeepSeek-V2", "deepseek-v2-lite", vllm, 27, latent, {27 * 576 * kB16}, "vllm models/deepseek_v2.py"},
      {"DeepSeek-V3", "deepseek-v3", vllm, 61, latent, {61 * 576 * kB16}, "vllm models/deepseek_v2.py"},
      {"DeepSeek-V3.2",
       "deepseek-ai__DeepSeek-V3.2",
       vllm,
       61,
       "latent, indexer_key",
       {61 * (576 * kB16 + 132)},
       "vllm models/deepseek_v2.py"},
      {"DeepSeek-V3.2, fp8",
       "deepseek-ai__DeepSeek-V3.2",
       {.kv_dtype = "fp8"},
       61,
       "latent, indexer_key",
       {61 * (512 + 4 * 4 + 64 * 2 + 132)},
       "vllm layers/attention/mla_attention.py"},
      // For 128 tokens: 21 layers of 32 rows and indexer keys, 20 layers of one row; in windows: 43 raw rows, and sums
      // of 2 * 2 * 512 + 2 * 2 * 128 and 2 * 512 float32.
      {"DeepSeek-V4",
       "deepseek-ai__DeepSeek-V4-Flash",
       vllm,
       43,
       "latent, latent_compressed, indexer_key, sums",
       {(21 * 32 * (584 + 132) + 20 * 584) / 128, 43 * 584 + 21 * 4 * (512 + 128) * kF32 + 20 * 2 * 512 * kF32},
       "vllm models/deepseek_v4"},
      {"Gemma 2", "gemma-2-2b-float32", vllm, 26, kv_text, {13 * kv(4, 256), 13 * kv(4, 256)}, "vllm models/gemma2.py"},
      {"Gemma 2", "gemma-2-27b", vllm, 46, kv_text, {23 * kv(16, 128), 23 * kv(16, 128)}, "vllm models/gemma2.py"},
      {"Gemma 3", "gemma-3-27b", vllm, 62, kv_text, {10 * kv(16, 128), 52 * kv(16, 128)}, "vllm models/gemma3.py"},
      {"Gemma 3", "gemma-3-27b", sglang, 62, kv_text, {62 * kv(16, 128)}, "sglang configs/model_config.py"},
      {"Gemma 3n", "gemma-3n-e4b", vllm, 35, kv_text, {4 * kv(2, 256), 16 * kv(2, 256)}, "vllm models/gemma3n.py"},
      {"Gemma 3n", "gemma-3n-e4b", sglang, 35, kv_text, {35 * kv(2, 256)}, "sglang configs/model_config.py"},
      {"Gemma 4",
       "google__gemma-4-26B-A4B",
       vllm,
       30,
       kv_text,
       {5 * kv(2, 512), 25 * kv(8, 256)},
       "vllm models/gemma4.py"},
      {"Llama 4",
       "meta-llama__Llama-4-Scout-17B-16E-Instruct",
       vllm,
       48,
       kv_text,
       {12 * kv(8, 128), 36 * kv(8, 128)},
       "vllm models/llama4.py"},
      {"gpt-oss", "openai__gpt-oss-20b", vllm, 24, kv_text, {12 * kv(8, 64), 12 * kv(8, 64)}, "vllm models/gpt_oss.py"},
      {"gpt-oss", "gpt-oss-120b", vllm, 36, kv_text, {18 * kv(8, 64), 18 * kv(8, 64)}, "vllm models/gpt_oss.py"},
      {"Nemotron 3",
       "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
       vllm,
       52,
       kv_text + ", ssm_state, conv_*",
       {6 * kv(2, 128), 0, 23 * mamba2(64, 64, 8, 128, kF32)},
       "vllm models/nemotron_h.py"},
      {"Nemotron-H",
       "nvidia__Nemotron-H-56B-Base-8K",
       vllm,
       118,
       kv_text + ", ssm_state, conv_*",
       {10 * kv(8, 128), 0, 54 * mamba2(256, 64, 8, 256, kF32)},
       "vllm models/nemotron_h.py"},
      {"MiMo-7B", "XiaomiMiMo__MiMo-7B-Base", vllm, 36, kv_text, {36 * kv(8, 128)}, "vllm models/mimo.py"},
      {"MiMo-V2",
       "XiaomiMiMo__MiMo-V2-Flash",
       vllm,
       48,
       kv_text,
       {9 * 4 * (192 + 128) * kB16, 39 * 8 * (192 + 128) * kB16},
       "vllm models/mimo_v2_flash.py"},
      {"Step-3.7",
       "stepfun-ai__Step-3.7-Flash",
       vllm,
       45,
       kv_text,
       {12 * kv(8, 128), 33 * kv(8, 128)},
       "vllm models/step3p5.py"},
      {"Phi-4", "phi-4", vllm, 40, kv_text, {40 * kv(10, 128)}, "vllm models/phi3.py"},
      {"SmolLM3", "smollm3-3b", vllm, 36, kv_text, {36 * kv(4, 128)}, "transformers models/smollm3"},
      {"OLMo 3", "olmo-3-32b", vllm, 64, kv_text, {16 * kv(8, 128), 48 * kv(8, 128)}, "vllm models/olmo2.py"},
      {"EXAONE 4", "exaone-4-32b", vllm, 64, kv_text, {16 * kv(8, 128), 48 * kv(8, 128)}, "vllm models/exaone4.py"},
      {"Falcon-H1",
       "falcon-h1-34b",
       vllm,
       72,
       kv_text + ", ssm_state, conv_*",
       {72 * kv(4, 128), 0, 72 * mamba2(32, 32, 1, 256, kB16)},
       "vllm models/falcon_h1.py"},
      {"Falcon-H1",
       "falcon-h1-34b",
       sglang,
       72,
       kv_text + ", ssm_state, conv_*",
       {72 * kv(4, 128), 0, 72 * mamba2(32, 32, 1, 256, kF32)},
       "sglang configs/falcon_h1.py"},
      {"Granite 4 hybrid",
       "granite-4-h-small",
       vllm,
       40,
       "ssm_state, conv_*",
       {0, 0, 40 * mamba2(128, 64, 1, 256, kB16)},
       "vllm models/granitemoehybrid.py"},
      {"Jamba",
       "jamba-1.5-mini",
       vllm,
       32,
       kv_text + ", ssm_state, conv_state",
       {4 * kv(8, 128), 0, 28 * 8192 * (16 + 3) * kB16},
       "vllm models/jamba.py"},
      {"LFM2", "lfm2-2.6b", vllm, 30, "conv_state", {0, 0, 30 * 2048 * 2 * kB16}, "vllm models/lfm2.py"},
  };
}

std::string text_of(const std::string& config) {
  for (const std::string& path : {source_path("examples/models/") + config + "/config.json",
                                  source_path("tests/golden/configs/") + config + ".json"})
    if (Result<std::string> text = read_file(path, 1 << 20); text.ok()) return std::move(text).value();
  ADD_FAILURE() << config << " is not there";
  return {};
}

// Rows of n tokens count 1/n; rounded down at the end, as the table has it.
Kept kept_of(const CacheSchema& schema) {
  constexpr uint64_t kTokens = 128;  // a multiple of all tokens_per_row
  Kept kept;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components) {
      const uint64_t bytes = group.layers.count() * component.head_count * component.head_dim * component.item_bytes;
      if (component.is_state())
        kept.per_sequence += bytes;
      else if (group.live_of(component.name) == LiveTokens::all())
        kept.for_ever += bytes * (kTokens / *component.tokens_per_row);
      else
        kept.in_window += bytes;
    }
  kept.for_ever /= kTokens;
  return kept;
}

TEST(HfFamilies, EachKeepsWhatItsEngineAllocates) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(fmt::format("{} {}", row.config, engine_title(row.options.engine)));
    Diagnostics diagnostics("test");
    const auto model = read_hf_config(text_of(row.config), row.options, JsonLimits(), diagnostics);
    ASSERT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
    EXPECT_EQ(model->layer_count, row.layers);
    const Kept kept = kept_of(*model->cache_schema);
    EXPECT_EQ(kept.for_ever, row.kept.for_ever);
    EXPECT_EQ(kept.in_window, row.kept.in_window);
    EXPECT_EQ(kept.per_sequence, row.kept.per_sequence);
  }
}

TEST(HfFamilies, TheDocumentationHasThisTable) {
  std::string table =
      "| family | config | engine | layers | components | bytes per token | per token of a window or chunk | per "
      "sequence | "
      "rule |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows())
    table += fmt::format("| {} | {}{} | {} | {} | {} | {} | {} | {} | `{}` |\n", row.family, row.config,
                         row.options.kv_dtype ? fmt::format(", --kv-dtype {}", *row.options.kv_dtype) : "",
                         engine_title(row.options.engine), row.layers, row.components, grouped(row.kept.for_ever),
                         grouped(row.kept.in_window), grouped(row.kept.per_sequence), row.source);
  const std::string path = source_path("docs/models.md");
  Result<std::string> page = read_file(path, 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status().message();
  const std::string begin = "<!-- table -->\n";
  const std::string end = "<!-- end of table -->\n";
  const size_t from = page.value().find(begin);
  const size_t to = page.value().find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const std::string wanted =
      page.value().substr(0, from + begin.size()) + "\n" + table + "\n" + page.value().substr(to);
  if (std::getenv("CROSSDOCK_WRITE_DOCS") != nullptr) std::ofstream(path) << wanted;
  EXPECT_EQ(page.value(), wanted) << "CROSSDOCK_WRITE_DOCS=1 writes the table";
}

// A window, a rank or a list that another family reads must not be passed over.
TEST(HfFamilies, AFieldThatDecidesElsewhereIsReadOrRefused) {
  const std::string plain = text_of("llama-3.1-8b");
  for (const CacheField& field : cache_fields()) {
    if (field.name == "layer_types") continue;  // below
    for (const std::string value : {"7", "\"x\"", "[2]", "{\"a\":1}"}) {
      std::string json = plain;
      json.insert(json.find('{') + 1, fmt::format("\"{}\":{},", field.name, value));
      Diagnostics diagnostics("test");
      EXPECT_FALSE(read_hf_config(json, {}, JsonLimits(), diagnostics).has_value()) << field.name << " " << value;
      EXPECT_NE(diagnostic_lines(diagnostics).find(field.name), std::string::npos) << diagnostic_lines(diagnostics);
    }
    std::string json = plain;
    json.insert(json.find('{') + 1, fmt::format("\"{}\":null,", field.name));
    Diagnostics diagnostics("test");
    EXPECT_TRUE(read_hf_config(json, {}, JsonLimits(), diagnostics).has_value()) << diagnostic_lines(diagnostics);
  }
}

// What the classes of the transformers library take when the field is absent, so that removing it is no mistake.
bool has_documented_default(const std::string& config, const std::string& field) {
  // vLLM: the model's own type. Gemma2Config, Gemma3TextConfig and Gemma4TextConfig: 4 heads.
  static const std::vector<std::pair<std::string, std::string>> kDefaults = {
      {"", "mamba_ssm_dtype"},
      {"gemma-2-27b", "num_key_value_heads"},
      {"gemma-3-27b", "num_key_value_heads"},
      {"google__gemma-4-26B-A4B", "num_key_value_heads"}};
  for (const auto& [of, name] : kDefaults)
    if ((of.empty() || of == config) && name == field) return true;
  return false;
}

// Removing (or misspelling) any one field that was read is refused, or changes nothing, or keeps at least as much.
TEST(HfFamilies, AFieldThatIsLostIsRefusedOrKeepsNoLess) {
  for (const Row& row : rows()) {
    const std::string text = text_of(row.config);
    Diagnostics diagnostics("test");
    const auto model = read_hf_config(text, row.options, JsonLimits(), diagnostics);
    ASSERT_TRUE(model.has_value());
    const Kept whole = kept_of(*model->cache_schema);
    for (const std::string& name : model->fields) {
      const std::string field = name.substr(name.rfind('.') + 1);
      std::string changed = text;
      const std::string quoted = "\"" + field + "\"";
      const size_t at = name.find('.') == std::string::npos ? changed.find(quoted) : changed.rfind(quoted);
      ASSERT_NE(at, std::string::npos) << name;
      changed.replace(at, quoted.size(), "\"" + field + "_x\"");
      SCOPED_TRACE(fmt::format("{} without {}", row.config, name));
      Diagnostics found("test");
      const auto less = read_hf_config(changed, row.options, JsonLimits(), found);
      if (!less) {
        EXPECT_FALSE(found.empty());
        continue;
      }
      const Kept kept = kept_of(*less->cache_schema);
      EXPECT_EQ(less->layer_count, model->layer_count);
      if (has_documented_default(row.config, field)) continue;
      EXPECT_GE(kept.for_ever + kept.in_window, whole.for_ever + whole.in_window);
      EXPECT_GE(kept.per_sequence, whole.per_sequence);
    }
  }
}

// A config of the table with fields changed, as JSON text.
std::string changed(const std::string& config, const std::vector<std::pair<std::string, std::string>>& fields) {
  nlohmann::json json = nlohmann::json::parse(text_of(config));
  for (const auto& [name, value] : fields) json[name] = nlohmann::json::parse(value);
  return json.dump();
}

std::string list_of(size_t count, const std::string& word) {
  return nlohmann::json(std::vector<std::string>(count, word)).dump();
}

// The diagnostics of a config that has to be refused.
std::string refusal(const std::string& json, const HfOptions& options = {}) {
  Diagnostics diagnostics("test");
  EXPECT_FALSE(read_hf_config(json, options, JsonLimits(), diagnostics).has_value()) << json;
  return diagnostic_lines(diagnostics);
}

Kept kept_by(const std::string& json, const HfOptions& options = {}) {
  Diagnostics diagnostics("test");
  const auto model = read_hf_config(json, options, JsonLimits(), diagnostics);
  EXPECT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
  return model ? kept_of(*model->cache_schema) : Kept();
}

TEST(HfFamilies, ANullWindowIsNoneForEveryClassThatHasOne) {
  EXPECT_EQ(kept_by(changed("gpt-oss-120b", {{"sliding_window", "null"}})), (Kept{36 * kv(8, 64)}));
  EXPECT_EQ(kept_by(changed("gemma-2-27b", {{"sliding_window", "null"}})), (Kept{46 * kv(16, 128)}));
  EXPECT_EQ(kept_by(changed("mistral-7b-v0.1", {{"sliding_window", "null"}})), (Kept{32 * kv(8, 128)}));
}

TEST(HfFamilies, TwoFieldsThatSayDifferentThingsAreRefused) {
  const auto expect = [](const std::string& json, const std::string& part) {
    EXPECT_NE(refusal(json).find(part), std::string::npos) << refusal(json);
  };
  expect(changed("mistral-7b-v0.1", {{"layer_types", list_of(32, "full_attention")}}), "has full layers");
  EXPECT_EQ(kept_by(changed("mistral-7b-v0.1", {{"layer_types", list_of(32, "sliding_attention")}})),
            (Kept{0, 32 * kv(8, 128)}));
  expect(changed("granite-4-h-small", {{"layers_block_type", list_of(40, "attention")}}),
         "contradicts layers_block_type");
  expect(changed("stepfun-ai__Step-3.7-Flash", {{"layer_types", list_of(46, "full_attention")}}),
         "has 46 entries for 45 layers and 3 draft layers");
  expect(changed("XiaomiMiMo__MiMo-V2-Flash", {{"attention_chunk_size", "256"}}), "is not the window of 128");
  expect(changed("openai__gpt-oss-20b", {{"layer_types", list_of(24, "full_attention")}}), "does not read it");
}

TEST(HfFamilies, DraftLayersAreOfTheKindThatTheConfigStates) {
  const HfOptions drafts = {.draft_layers = true};
  const std::string nemotron = "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16";
  EXPECT_EQ(kept_by(changed(nemotron, {{"num_nextn_predict_layers", "1"}}), drafts).for_ever, 7 * kv(2, 128));
  EXPECT_EQ(kept_by(changed(nemotron, {{"num_nextn_predict_layers", "1"},
                                       {"mtp_layers_block_type", R"(["attention","moe","attention"])"}}),
                    drafts)
                .for_ever,
            8 * kv(2, 128));
  EXPECT_EQ(kept_by(text_of("XiaomiMiMo__MiMo-V2-Flash"), drafts).in_window, 40 * 8 * (192 + 128) * kB16);
}

TEST(HfFamilies, ACacheSchemeThatNoEngineTakesIsRefused) {
  const auto expect = [](const std::string& scheme, const std::string& part) {
    const std::string json = changed("llama-3.1-8b", {{"quantization_config", scheme}});
    EXPECT_NE(refusal(json).find(part), std::string::npos) << refusal(json);
    EXPECT_EQ(kept_by(json, {.kv_dtype = "bfloat16"}), (Kept{32 * kv(8, 128)}));
  };
  expect(R"({"quant_method":"modelopt","kv_cache_scheme":{"num_bits":8,"type":"float"}})", "not static");
  expect(R"({"quant_method":"modelopt","kv_cache_scheme":{"num_bits":8,"type":"int","dynamic":false}})", "type 'int'");
  expect(
      R"({"quant_method":"compressed-tensors","kv_cache_scheme":{"num_bits":8,"type":"float","strategy":"channel"}})",
      "by 'channel'");
  expect(R"({"quant_method":"compressed-tensors","kv_cache_scheme":{"num_bits":4,"type":"float"}})", "4 bits");
  expect(R"({"quant_method":"quark","kv_cache_quant_algo":"FP8"})",
         "kv_cache_quant_algo: is not known for quant_method");
  EXPECT_EQ(kept_by(changed("llama-3.1-8b", {{"compression_config", R"({"quant_method":"compressed-tensors",
      "kv_cache_scheme":{"num_bits":8,"type":"float","strategy":"tensor"}})"}})),
            (Kept{32 * kv(8, 128, kF8)}));
  EXPECT_NE(refusal(changed("llama-3.1-8b", {{"torch_dtype", R"("int8")"}})), "");
}

TEST(HfFamilies, MiniMaxM3KeepsIndexKeysWhereItsAttentionIsSparse) {
  std::vector<int> sparse(60, 1);
  for (int layer = 0; layer < 3; ++layer) sparse[static_cast<size_t>(layer)] = 0;
  const nlohmann::json text = {
      {"model_type", "minimax_m3_text"},
      {"num_hidden_layers", 60},
      {"num_attention_heads", 64},
      {"num_key_value_heads", 4},
      {"head_dim", 128},
      {"torch_dtype", "bfloat16"},
      {"sparse_attention_config",
       {{"sparse_index_dim", 128}, {"sparse_attention_freq", sparse}, {"sparse_disable_index_value", sparse}}}};
  const nlohmann::json config = {{"architectures", {"MiniMaxM3SparseForConditionalGeneration"}},
                                 {"model_type", "minimax_m3_vl"},
                                 {"text_config", text}};
  EXPECT_EQ(kept_by(config.dump()), (Kept{60 * kv(4, 128) + 57 * 128 * kB16}));
}

TEST(HfFamilies, OptionsAreThoseOfTheEngineAndTheModel) {
  const auto expect = [](const std::string& config, const HfOptions& options, const std::string& part) {
    EXPECT_NE(refusal(text_of(config), options).find(part), std::string::npos) << refusal(text_of(config), options);
  };
  expect("kimi-linear-48b-a3b", {.ssm_dtype = "bfloat16"}, "both engines keep this state in float32");
  expect("qwen3-next-80b-a3b", {.ssm_dtype = "float4_e2m1fn_x2"}, "known: auto, float32, float16, bfloat16");
  expect("llama-3.1-8b", {.conv_dtype = "float32"}, "the model has no states");
  expect("deepseek-ai__DeepSeek-V3.2", {.kv_dtype = "int8"}, "'int8' is not known");
  expect("deepseek-ai__DeepSeek-V4-Flash", {.engine = Engine::kSglang, .kv_dtype = "bfloat16"}, "with an fp8 cache");
  EXPECT_EQ(kept_by(text_of("qwen3-next-80b-a3b"), {.ssm_dtype = "auto"}).per_sequence, 36 * delta(16, 32, 128, kB16));
}

}  // namespace
}  // namespace crossdock
