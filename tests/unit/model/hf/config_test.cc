#include "model/hf/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/paths.h"

namespace crossdock {
namespace {

using testing::diagnostic_lines;
using testing::life_of;
using testing::window_of;

std::string example(const std::string& folder) {
  const std::string path = source_path("examples/models/") + folder + "/config.json";
  Result<std::string> text = read_file(path, 1 << 20);
  EXPECT_TRUE(text.ok()) << path << ": " << text.status().message();
  return text.ok() ? std::move(text).value() : std::string();
}

// A component in one line, so that an expected schema reads as a table.
struct Expected {
  std::string name;
  std::string dtype;
  std::string encoding;
  uint64_t item_bytes;
  uint64_t heads;
  uint64_t dim;
  bool is_state = false;
};

Component to_component(const Expected& expected) {
  Component component;
  component.name = ComponentName(expected.name);
  component.dtype = expected.dtype;
  component.encoding = expected.encoding;
  component.item_bytes = expected.item_bytes;
  component.head_count = expected.heads;
  component.head_dim = expected.dim;
  component.tokens_per_row = expected.is_state ? std::nullopt : std::optional<uint64_t>(1);
  return component;
}

LayerGroup group(IntervalSet layers, std::optional<uint64_t> window, const std::vector<Expected>& components) {
  LayerGroup made;
  made.layers = std::move(layers);
  made.live = life_of(window);
  for (const Expected& expected : components) made.components.push_back(to_component(expected));
  return made;
}

std::vector<Expected> bf16_keys_values(uint64_t heads, uint64_t dim) {
  return {{"key", "bfloat16", "plain", 2, heads, dim}, {"value", "bfloat16", "plain", 2, heads, dim}};
}

Expected bf16_latent() { return {"latent", "bfloat16", "plain", 2, 1, 576}; }
Expected indexer_key() { return {"indexer_key", "uint8", "fp8_e4m3+float32_scale_per_128", 1, 1, 132}; }

// Layers begin, begin + step, ... below end, one by one.
IntervalSet every(uint64_t begin, uint64_t step, uint64_t end) {
  std::vector<Range> ranges;
  for (uint64_t layer = begin; layer < end; layer += step) ranges.push_back(Range(layer, layer + 1));
  return IntervalSet::from_ranges(ranges);
}

struct Bytes {
  uint64_t per_token = 0;
  uint64_t per_sequence = 0;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

Bytes bytes_of(const CacheSchema& schema) {
  Bytes bytes;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components) {
      const uint64_t all_layers = group.layers.count() * component.head_count * component.head_bytes();
      (component.is_state() ? bytes.per_sequence : bytes.per_token) += all_layers;
    }
  return bytes;
}

void expect_model(const std::string& folder, const HfOptions& options, const std::string& architecture,
                  uint64_t layer_count, const std::vector<LayerGroup>& groups, Bytes bytes) {
  SCOPED_TRACE(folder);
  Diagnostics diagnostics("test");
  const std::optional<HfModel> model = read_hf_config(example(folder), options, JsonLimits(), diagnostics);
  ASSERT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostic_lines(diagnostics);
  EXPECT_EQ(model->architecture, architecture);
  EXPECT_EQ(model->layer_count, layer_count);
  EXPECT_EQ(model->cache_schema->groups, groups);
  EXPECT_EQ(bytes_of(*model->cache_schema), bytes);
}

TEST(HfConfig, LlamaKeepsKeysAndValuesOfAllLayers) {
  expect_model("llama-3.1-8b", {}, "LlamaForCausalLM", 32, {group({{0, 32}}, {}, bf16_keys_values(8, 128))},
               {131'072, 0});  // 32 * 2 * 8 * 128 * 2
  expect_model("llama-3.1-70b", {}, "LlamaForCausalLM", 80, {group({{0, 80}}, {}, bf16_keys_values(8, 128))},
               {327'680, 0});  // 80 * 2 * 8 * 128 * 2
  expect_model("llama-3.1-405b", {}, "LlamaForCausalLM", 126, {group({{0, 126}}, {}, bf16_keys_values(8, 128))},
               {516'096, 0});  // 126 * 2 * 8 * 128 * 2
}

TEST(HfConfig, QwenIgnoresAWindowThatIsNotUsed) {
  expect_model("qwen2.5-72b", {}, "Qwen2ForCausalLM", 80, {group({{0, 80}}, {}, bf16_keys_values(8, 128))},
               {327'680, 0});
  expect_model("qwen3-32b", {}, "Qwen3ForCausalLM", 64, {group({{0, 64}}, {}, bf16_keys_values(8, 128))},
               {262'144, 0});  // 64 * 2 * 8 * 128 * 2
  expect_model("qwen3-235b-a22b", {}, "Qwen3MoeForCausalLM", 94, {group({{0, 94}}, {}, bf16_keys_values(4, 128))},
               {192'512, 0});  // 94 * 2 * 4 * 128 * 2
}

TEST(HfConfig, MistralSlidesInEveryLayerAndMixtralInNone) {
  expect_model("mistral-7b-v0.1", {}, "MistralForCausalLM", 32, {group({{0, 32}}, 4095, bf16_keys_values(8, 128))},
               {131'072, 0});
  expect_model("mixtral-8x7b", {}, "MixtralForCausalLM", 32, {group({{0, 32}}, {}, bf16_keys_values(8, 128))},
               {131'072, 0});
}

TEST(HfConfig, Gemma2SlidesInEvenLayers) {
  expect_model(
      "gemma-2-27b", {}, "Gemma2ForCausalLM", 46,
      {group(every(0, 2, 46), 4095, bf16_keys_values(16, 128)), group(every(1, 2, 46), {}, bf16_keys_values(16, 128))},
      {376'832, 0});  // 46 * 2 * 16 * 128 * 2
}

TEST(HfConfig, Gemma3HasOneFullLayerInSix) {
  const IntervalSet sliding = {{0, 5},   {6, 11},  {12, 17}, {18, 23}, {24, 29}, {30, 35},
                               {36, 41}, {42, 47}, {48, 53}, {54, 59}, {60, 62}};
  ASSERT_EQ(sliding.count(), 52u);
  expect_model("gemma-3-27b", {}, "Gemma3ForConditionalGeneration", 62,
               {group(sliding, 1023, bf16_keys_values(16, 128)), group(every(5, 6, 62), {}, bf16_keys_values(16, 128))},
               {507'904, 0});  // 62 * 2 * 16 * 128 * 2
}

TEST(HfConfig, DeepseekKeepsOneLatentRowForAllHeads) {
  expect_model("deepseek-v2-lite", {}, "DeepseekV2ForCausalLM", 27, {group({{0, 27}}, {}, {bf16_latent()})},
               {31'104, 0});  // 27 * 576 * 2
  expect_model("deepseek-v3", {}, "DeepseekV3ForCausalLM", 61, {group({{0, 61}}, {}, {bf16_latent()})},
               {70'272, 0});  // 61 * 576 * 2
}

TEST(HfConfig, DeepseekSparseAttentionKeepsAnIndexerKeyToo) {
  expect_model("deepseek-v3.2-exp", {}, "DeepseekV32ForCausalLM", 61,
               {group({{0, 61}}, {}, {indexer_key(), bf16_latent()})}, {78'324, 0});  // 61 * (1152 + 132)
}

TEST(HfConfig, GptOssTakesTheWindowFromItsLayerTypes) {
  expect_model(
      "gpt-oss-120b", {}, "GptOssForCausalLM", 36,
      {group(every(0, 2, 36), 127, bf16_keys_values(8, 64)), group(every(1, 2, 36), {}, bf16_keys_values(8, 64))},
      {73'728, 0});  // 36 * 2 * 8 * 64 * 2
}

TEST(HfConfig, Qwen3NextKeepsStatesInThreeLayersOfFour) {
  const IntervalSet linear = {{0, 3},   {4, 7},   {8, 11},  {12, 15}, {16, 19}, {20, 23},
                              {24, 27}, {28, 31}, {32, 35}, {36, 39}, {40, 43}, {44, 47}};
  expect_model("qwen3-next-80b-a3b", {}, "Qwen3NextForCausalLM", 48,
               {group(linear, {},
                      {{"conv_key", "bfloat16", "plain", 2, 16, 384, true},
                       {"conv_query", "bfloat16", "plain", 2, 16, 384, true},
                       {"conv_value", "bfloat16", "plain", 2, 32, 384, true},
                       {"recurrent_state", "bfloat16", "plain", 2, 32, 16'384, true}}),
                group(every(3, 4, 48), {}, bf16_keys_values(2, 256))},
               // 12 * 2 * 2 * 256 * 2; 36 * (2 * 16 * 384 * 2 + 32 * 384 * 2 + 32 * 16384 * 2)
               {24'576, 39'518'208});
}

// vLLM keeps the state in the model's type (models/config.py has no entry for the class); SGLang in float32.
TEST(HfConfig, TheStateOfQwen3NextFollowsTheEngineAndTheOption) {
  const auto bytes = [](const HfOptions& options) {
    Diagnostics diagnostics;
    const auto model = read_hf_config(example("qwen3-next-80b-a3b"), options, JsonLimits(), diagnostics);
    EXPECT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
    return bytes_of(*model->cache_schema);
  };
  const Bytes with_float32 = {24'576, 77'266'944};  // 36 * (2 * 16 * 384 * 2 + 32 * 384 * 2 + 32 * 16384 * 4)
  EXPECT_EQ(bytes({.engine = Engine::kSglang}), with_float32);
  EXPECT_EQ(bytes({.ssm_dtype = "float32"}), with_float32);
  // 36 * (2 * 16 * 384 * 4 + 32 * 384 * 4 + 32 * 16384 * 4)
  EXPECT_EQ(bytes({.conv_dtype = "float32"}), (Bytes{24'576, 79'036'416}));
}

TEST(HfConfig, KimiLinearCountsItsLayersFromOne) {
  const IntervalSet linear = {{0, 3}, {4, 7}, {8, 11}, {12, 15}, {16, 19}, {20, 23}, {24, 26}};
  expect_model("kimi-linear-48b-a3b", {}, "KimiLinearForCausalLM", 27,
               {group(linear, {},
                      {{"conv_key", "bfloat16", "plain", 2, 32, 384, true},
                       {"conv_query", "bfloat16", "plain", 2, 32, 384, true},
                       {"conv_value", "bfloat16", "plain", 2, 32, 384, true},
                       {"recurrent_state", "float32", "plain", 4, 32, 16'384, true}}),
                group({{3, 4}, {7, 8}, {11, 12}, {15, 16}, {19, 20}, {23, 24}, {26, 27}}, {}, {bf16_latent()})},
               // 7 * 576 * 2; 20 * (3 * 32 * 384 * 2 + 32 * 16384 * 4)
               {8'064, 43'417'600});
}

TEST(HfConfig, KvDtypeReplacesTheModelsOwnForAttentionOnly) {
  const HfOptions options = {.kv_dtype = "float8_e4m3fn"};
  expect_model("llama-3.1-70b", options, "LlamaForCausalLM", 80,
               {group({{0, 80}}, {},
                      {{"key", "float8_e4m3fn", "plain", 1, 8, 128}, {"value", "float8_e4m3fn", "plain", 1, 8, 128}})},
               {163'840, 0});
  expect_model("deepseek-v3", options, "DeepseekV3ForCausalLM", 61,
               {group({{0, 61}}, {}, {{"latent", "float8_e4m3fn", "plain", 1, 1, 576}})}, {35'136, 0});  // 61 * 576
}

// Case V08 of the field: with sparse attention an fp8 cache is packed, whatever the fp8 is called.
TEST(HfConfig, V08SparseLatentAttentionPacksAnFp8Cache) {
  for (const std::string dtype : {"float8_e4m3fn", "fp8", "fp8_e4m3"})
    expect_model("deepseek-v3.2-exp", {.kv_dtype = dtype}, "DeepseekV32ForCausalLM", 61,
                 {group({{0, 61}}, {}, {indexer_key(), {"latent", "uint8", "fp8_ds_mla", 1, 1, 656}})},
                 {48'068, 0});  // 61 * (656 + 132)
}

TEST(HfConfig, StatesKeepTheirDtypeUnderKvDtype) {
  Diagnostics diagnostics;
  const auto model =
      read_hf_config(example("qwen3-next-80b-a3b"), {.kv_dtype = "float8_e5m2"}, JsonLimits(), diagnostics);
  ASSERT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
  EXPECT_EQ(bytes_of(*model->cache_schema), (Bytes{12'288, 39'518'208}));
}

TEST(HfConfig, KvScalesAreOneFloatPerTokenAndHead) {
  const HfOptions options = {.kv_dtype = "float8_e4m3fn", .kv_scales = true};
  expect_model("llama-3.1-8b", options, "LlamaForCausalLM", 32,
               {group({{0, 32}}, {},
                      {{"key", "float8_e4m3fn", "plain", 1, 8, 128},
                       {"key_scale", "float32", "plain", 4, 8, 1},
                       {"value", "float8_e4m3fn", "plain", 1, 8, 128},
                       {"value_scale", "float32", "plain", 4, 8, 1}})},
               {67'584, 0});  // 32 * 2 * 8 * (128 + 4)
}

TEST(HfConfig, PackedLatentHolds656Bytes) {
  expect_model("deepseek-v3.2-exp", {.kv_dtype = "fp8_ds_mla"}, "DeepseekV32ForCausalLM", 61,
               {group({{0, 61}}, {}, {indexer_key(), {"latent", "uint8", "fp8_ds_mla", 1, 1, 656}})},
               {48'068, 0});  // 61 * (656 + 132)
}

TEST(HfConfig, DraftLayersFollowTheLastLayer) {
  Diagnostics diagnostics;
  const auto model = read_hf_config(example("deepseek-v3"), {.draft_layers = true}, JsonLimits(), diagnostics);
  ASSERT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
  EXPECT_EQ(model->layer_count, 61u);
  EXPECT_EQ(model->draft_layer_count, 1u);
  EXPECT_EQ(model->cache_schema->groups, std::vector<LayerGroup>{group({{0, 62}}, {}, {bf16_latent()})});
  EXPECT_EQ(bytes_of(*model->cache_schema), (Bytes{71'424, 0}));  // 62 * 576 * 2
}

// A small config of each class, for what the real ones do not show.
std::optional<HfModel> read(const std::string& json, Diagnostics& diagnostics, const HfOptions& options = {}) {
  return read_hf_config(json, options, JsonLimits(), diagnostics);
}

// `fields` behind what every config here has; a repeated name would be a JSON diagnostic.
std::string config(const std::string& architecture, const std::string& fields) {
  std::string model_type;
  for (const HfFamily& family : known_hf_families())
    if (family.architecture == architecture && model_type.empty()) model_type = family.model_type;
  return R"({"architectures":[")" + architecture + R"("],"model_type":")" + model_type +
         R"(","torch_dtype":"float16",)" + fields + "}";
}

constexpr const char* kSmall = R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":8)";

CacheSchema schema_of(const std::string& json) {
  Diagnostics diagnostics;
  const std::optional<HfModel> model = read(json, diagnostics);
  EXPECT_TRUE(model.has_value()) << json << "\n" << diagnostic_lines(diagnostics);
  return model ? *model->cache_schema : CacheSchema();
}

struct WindowedLayers {
  IntervalSet layers;
  std::optional<uint64_t> window;
  friend bool operator==(const WindowedLayers&, const WindowedLayers&) = default;
};

std::vector<WindowedLayers> windows_of(const std::string& architecture, const std::string& fields) {
  std::vector<WindowedLayers> windows;
  for (const LayerGroup& group : schema_of(config(architecture, kSmall + ("," + fields))).groups)
    windows.push_back({group.layers, window_of(group)});
  return windows;
}

using Windows = std::vector<WindowedLayers>;

TEST(HfConfig, QwenUsesItsWindowInAllLayersOrInNone) {
  EXPECT_EQ(windows_of("Qwen3ForCausalLM", R"("num_hidden_layers":6,"use_sliding_window":true,"sliding_window":64,
                       "max_window_layers":9)"),
            (Windows{{{{0, 6}}, {}}}));
  EXPECT_EQ(windows_of("Qwen2MoeForCausalLM", R"("num_hidden_layers":6,"use_sliding_window":true,"sliding_window":64,
                       "max_window_layers":0)"),
            (Windows{{{{0, 6}}, 63}}));
}

TEST(HfConfig, LayerTypesGoBeforeTheClassRule) {
  const std::string types = R"("num_hidden_layers":3,"sliding_window":32,
      "layer_types":["full_attention","full_attention","sliding_attention"])";
  const Windows expected = {{{{0, 2}}, {}}, {{{2, 3}}, 31}};
  EXPECT_EQ(windows_of("Gemma2ForCausalLM", types), expected);
  EXPECT_EQ(windows_of("Gemma3ForCausalLM", types), expected);
  EXPECT_EQ(windows_of("Olmo3ForCausalLM", types), expected);
}

TEST(HfConfig, Gemma3TakesItsPatternFromTheConfig) {
  EXPECT_EQ(windows_of("Gemma3ForCausalLM", R"("num_hidden_layers":5,"sliding_window":16,"sliding_window_pattern":2)"),
            (Windows{{every(0, 2, 5), 15}, {every(1, 2, 5), {}}}));
}

TEST(HfConfig, AbsentAndNullWindowsDifferForMistral) {
  EXPECT_EQ(windows_of("MistralForCausalLM", R"("num_hidden_layers":2)"), (Windows{{{{0, 2}}, 4095}}));
  EXPECT_EQ(windows_of("MistralForCausalLM", R"("num_hidden_layers":2,"sliding_window":null)"),
            (Windows{{{{0, 2}}, {}}}));
  EXPECT_EQ(windows_of("MixtralForCausalLM", R"("num_hidden_layers":2)"), (Windows{{{{0, 2}}, {}}}));
}

TEST(HfConfig, NestedTextConfigsAreRead) {
  const std::string text = R"("text_config":{"num_hidden_layers":2,)" + std::string(kSmall) + "}";
  const CacheSchema schema = schema_of(config("Mistral3ForConditionalGeneration", text));
  EXPECT_EQ(schema.groups,
            std::vector<LayerGroup>{
                group({{0, 2}}, 4095, {{"key", "float16", "plain", 2, 2, 8}, {"value", "float16", "plain", 2, 2, 8}})});
}

TEST(HfConfig, HeadsHaveTheDefaultsOfTheirClass) {
  const CacheSchema llama = schema_of(
      config("LlamaForCausalLM", R"("num_hidden_layers":1,"hidden_size":64,"num_attention_heads":4,"head_dim":null)"));
  EXPECT_EQ(llama.groups.at(0).components.at(0), to_component({"key", "float16", "plain", 2, 4, 16}));
  const CacheSchema gemma = schema_of(config("Gemma3ForCausalLM", R"("num_hidden_layers":1,"sliding_window":8)"));
  EXPECT_EQ(gemma.groups.at(0).components.at(0), to_component({"key", "bfloat16", "plain", 2, 4, 256}))
      << "float16 is too narrow for Gemma: vLLM serves bfloat16";
}

TEST(HfConfig, Qwen35KeepsStatesInTheDtypeThatItStates) {
  const std::string text = std::string(R"("text_config":{"num_hidden_layers":2,"mtp_num_hidden_layers":2,)") + kSmall +
                           R"(,"layer_types":["linear_attention","full_attention"],"mamba_ssm_dtype":"bfloat16",
      "linear_num_key_heads":2,"linear_num_value_heads":6,"linear_key_head_dim":3,"linear_value_head_dim":5,
      "linear_conv_kernel_dim":4})";
  Diagnostics diagnostics;
  const auto model = read(config("Qwen3_5MoeForConditionalGeneration", text), diagnostics, {.draft_layers = true});
  ASSERT_TRUE(model.has_value()) << diagnostic_lines(diagnostics);
  EXPECT_EQ(model->draft_layer_count, 2u);
  const std::vector<LayerGroup> expected = {
      group({{0, 1}}, {},
            {{"conv_key", "float16", "plain", 2, 2, 9, true},
             {"conv_query", "float16", "plain", 2, 2, 9, true},
             {"conv_value", "float16", "plain", 2, 6, 15, true},
             {"recurrent_state", "bfloat16", "plain", 2, 6, 15, true}}),
      group({{1, 4}}, {}, {{"key", "float16", "plain", 2, 2, 8}, {"value", "float16", "plain", 2, 2, 8}})};
  EXPECT_EQ(model->cache_schema->groups, expected);
}

TEST(HfConfig, EveryFamilyOfTheTableIsRead) {
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> pairs;
  for (const HfFamily& family : known_hf_families()) {  // known, so that what is missing is a field
    EXPECT_TRUE(pairs.insert({family.architecture, family.model_type, family.text_model_type}).second);
    std::string json =
        fmt::format(R"({{"architectures":["{}"],"model_type":"{}")", family.architecture, family.model_type);
    if (!family.text_model_type.empty())
      json += fmt::format(R"(,"text_config":{{"model_type":"{}"}})", family.text_model_type);
    Diagnostics diagnostics;
    EXPECT_FALSE(read(json + "}", diagnostics).has_value());
    EXPECT_TRUE(diagnostics.has(Rule::kConfigField)) << json << "\n" << diagnostic_lines(diagnostics);
    EXPECT_FALSE(diagnostics.has(Rule::kConfigArchitecture)) << json << "\n" << diagnostic_lines(diagnostics);
  }
  EXPECT_GE(pairs.size(), 80u);
}

// Reads, expects no model and the rule among the diagnostics, and returns the diagnostics as text.
std::string refusal(Rule rule, const std::string& json, const HfOptions& options = {}) {
  Diagnostics diagnostics("test");
  EXPECT_FALSE(read(json, diagnostics, options).has_value()) << json;
  EXPECT_TRUE(diagnostics.has(rule)) << json << "\n" << rule_name(rule) << "\n" << diagnostic_lines(diagnostics);
  return diagnostic_lines(diagnostics);
}

std::string llama(const std::string& fields) { return config("LlamaForCausalLM", fields); }

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in\n" << text;
}

TEST(HfConfig, RefusesWhatIsNotAConfig) {
  refusal(Rule::kJsonSyntax, "{");
  refusal(Rule::kJsonSyntax, R"({"architectures":["LlamaForCausalLM"],"rope_theta":NaN})");
  refusal(Rule::kFieldRepeated, R"({"architectures":["A"],"architectures":["B"]})");
  refusal(Rule::kFieldType, "[]");
  refusal(Rule::kFieldType, R"({"architectures":"LlamaForCausalLM"})");
  refusal(Rule::kFieldType, R"({"architectures":[1]})");
  refusal(Rule::kFieldType,
          R"({"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","text_config":[]})");
}

TEST(HfConfig, NamesTheKnownArchitecturesWhenOneIsUnknown) {
  for (const std::string json :
       {"{}", R"({"architectures":null})", R"({"architectures":[]})", R"({"architectures":["GPT2LMHeadModel"]})"}) {
    const std::string lines = refusal(Rule::kConfigArchitecture, json);
    expect_contains(lines, "known: ");
    expect_contains(lines, "--schema");
  }
  expect_contains(refusal(Rule::kConfigArchitecture, R"({"architectures":["GPT2LMHeadModel"]})"), "GPT2LMHeadModel");
}

TEST(HfConfig, NamesTheFieldTheArchitectureAndTheNumbers) {
  expect_contains(refusal(Rule::kConfigField, llama(R"("num_attention_heads":4,"hidden_size":64)")),
                  "model config 'LlamaForCausalLM' num_hidden_layers: is missing; LlamaForCausalLM needs it");
  expect_contains(
      refusal(Rule::kConfigField, llama(R"("num_hidden_layers":1,"num_attention_heads":3,"hidden_size":64)")),
      "hidden_size 64 is not a multiple of num_attention_heads 3");
  const std::string nested = R"("text_config":{"num_hidden_layers":0})";
  expect_contains(refusal(Rule::kConfigField, config("Gemma3ForConditionalGeneration", nested)),
                  "text_config.num_hidden_layers: 0 is below 1");
}

TEST(HfConfig, RefusesFieldsOfTheWrongType) {
  refusal(Rule::kFieldType, llama(R"("num_hidden_layers":"32","num_attention_heads":4,"hidden_size":64)"));
  refusal(Rule::kFieldInteger, llama(R"("num_hidden_layers":32.5,"num_attention_heads":4,"hidden_size":64)"));
  refusal(Rule::kFieldInteger, llama(R"("num_hidden_layers":-1,"num_attention_heads":4,"hidden_size":64)"));
  const std::string layers = std::string(R"("num_hidden_layers":1,)") + kSmall;
  refusal(Rule::kFieldType, config("Qwen2ForCausalLM", layers + R"(,"use_sliding_window":1)"));
  const std::string gemma = layers + R"(,"sliding_window":8)";
  refusal(Rule::kFieldType, config("Gemma2ForCausalLM", gemma + R"(,"layer_types":"full_attention")"));
  refusal(Rule::kFieldType, config("Gemma2ForCausalLM", gemma + R"(,"layer_types":[1])"));
  refusal(Rule::kFieldType,
          R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","torch_dtype":16,)" + layers + "}");
}

TEST(HfConfig, RefusesAbsurdNumbersBeforeAnythingIsMadeOfThem) {
  const std::string small(kSmall);
  refusal(Rule::kConfigField, llama(small + R"(,"num_hidden_layers":0)"));
  refusal(Rule::kConfigField, llama(small + R"(,"num_hidden_layers":100001)"));
  refusal(Rule::kConfigField, llama(small + R"(,"num_hidden_layers":18446744073709551615)"));
  refusal(Rule::kFieldInteger, llama(small + R"(,"num_hidden_layers":18446744073709551616)"));
  refusal(Rule::kConfigField, llama(R"("num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":0)"));
  refusal(Rule::kSizeOverflow,
          llama(R"("num_hidden_layers":1,"num_attention_heads":9223372036854775808,"head_dim":8)"));
  refusal(Rule::kSizeOverflow, config("DeepseekV3ForCausalLM", R"("num_hidden_layers":1,
      "kv_lora_rank":18446744073709551615,"qk_rope_head_dim":64)"));
  refusal(Rule::kSizeOverflow, config("Qwen3NextForCausalLM", small + R"(,"num_hidden_layers":4,
      "linear_num_key_heads":1,"linear_num_value_heads":1,"linear_key_head_dim":4294967296,
      "linear_value_head_dim":4294967296,"linear_conv_kernel_dim":4)"));
}

TEST(HfConfig, RefusesHeadsThatDoNotDivide) {
  const std::string lines =
      refusal(Rule::kConfigField,
              llama(R"("num_hidden_layers":1,"num_attention_heads":8,"num_key_value_heads":3,"head_dim":8)"));
  expect_contains(lines, "3 does not divide num_attention_heads 8");
  refusal(Rule::kConfigField, config("Qwen3ForCausalLM", R"("num_hidden_layers":1,"num_attention_heads":8,
      "num_key_value_heads":2,"hidden_size":64)"));  // its class has a head_dim of its own
}

TEST(HfConfig, RefusesWindowsThatContradict) {
  const std::string two = std::string(R"("num_hidden_layers":2,)") + kSmall;
  refusal(Rule::kConfigField, config("MistralForCausalLM", two + R"(,"sliding_window":0)"));
  refusal(Rule::kConfigField, config("Gemma2ForCausalLM", two + R"(,"sliding_window":1)"));
  refusal(Rule::kConfigField, config("Gemma3ForCausalLM", two + R"(,"sliding_window":8,"sliding_window_pattern":0)"));
  const std::string lines = refusal(Rule::kConfigField, config("Qwen2ForCausalLM", two + R"(,"use_sliding_window":false,
      "sliding_window":8,"layer_types":["full_attention","sliding_attention"])"));
  expect_contains(lines, "layer_types");
  refusal(Rule::kConfigField, config("Qwen2ForCausalLM", two + R"(,"use_sliding_window":true,"sliding_window":8)"));
  refusal(Rule::kConfigField, config("Qwen2ForCausalLM", two + R"(,"use_sliding_window":true,"max_window_layers":0)"));
}

TEST(HfConfig, RefusesLayerTypesThatDoNotFit) {
  const std::string two = std::string(R"("num_hidden_layers":2,)") + kSmall;
  const auto olmo = [&](const std::string& fields) { return config("Olmo3ForCausalLM", two + fields); };
  expect_contains(refusal(Rule::kConfigField, olmo(R"(,"layer_types":["full_attention"])")),
                  "has 1 entries for 2 layers");
  expect_contains(refusal(Rule::kConfigField, olmo(R"(,"layer_types":["full_attention","chunked_attention"])")),
                  "layer_types[1]: 'chunked_attention' is not a layer type of Olmo3ForCausalLM; known: full_attention, "
                  "sliding_attention");
  EXPECT_EQ(schema_of(llama(two + R"(,"layer_types":["full_attention","full_attention"])")).groups.size(), 1u);
  refusal(Rule::kConfigField, llama(two + R"(,"layer_types":["full_attention","linear_attention"])"));
}

TEST(HfConfig, RefusesDtypesItCannotSize) {
  const std::string one = std::string(R"("num_hidden_layers":1,)") + kSmall;
  const std::string head = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",)";
  refusal(Rule::kConfigField, head + one + "}");
  refusal(Rule::kConfigField, head + R"("torch_dtype":"auto",)" + one + "}");
  refusal(Rule::kConfigField, llama(one + R"(,"dtype":"bfloat16")"));  // torch_dtype says float16
  expect_contains(refusal(Rule::kConfigField, llama(one), {.kv_dtype = "fp9"}),
                  "'fp9' is not known; known for vLLM: auto, fp8, fp8_e4m3, fp8_e5m2, bfloat16, float16, nvfp4");
  refusal(Rule::kConfigField, llama(one), {.engine = Engine::kSglang, .kv_dtype = "fp8"});
  refusal(Rule::kConfigField, llama(one), {.kv_dtype = "fp8_ds_mla"});
}

TEST(HfConfig, RefusesOptionsThatTheModelCannotGive) {
  const std::string json = llama(std::string(R"("num_hidden_layers":1,)") + kSmall);
  refusal(Rule::kConfigField, json, {.draft_layers = true});
  refusal(Rule::kConfigField, json, {.kv_scales = true});
  refusal(Rule::kConfigField, json, {.kv_dtype = "bfloat16", .kv_scales = true});
  refusal(Rule::kConfigField, example("deepseek-v3"), {.kv_dtype = "float8_e4m3fn", .kv_scales = true});
  refusal(Rule::kConfigField, example("kimi-linear-48b-a3b"), {.draft_layers = true});
  refusal(Rule::kConfigField, example("qwen3-next-80b-a3b"), {.draft_layers = true});
  const std::string latent = R"("num_hidden_layers":100000,"num_nextn_predict_layers":1,"qk_rope_head_dim":64,)";
  refusal(Rule::kConfigField, config("DeepseekV3ForCausalLM", latent + R"("kv_lora_rank":512)"),
          {.draft_layers = true});
  refusal(Rule::kConfigField, config("DeepseekV3ForCausalLM", latent + R"("kv_lora_rank":500)"),
          {.kv_dtype = "fp8_ds_mla"});
}

std::string kimi(const std::string& full, const std::string& kda, const std::string& kernel = "4") {
  return config("KimiLinearForCausalLM", R"("num_hidden_layers":3,"kv_lora_rank":8,"qk_rope_head_dim":4,
      "linear_attn_config":{"num_heads":2,"head_dim":4,"short_conv_kernel_size":)" +
                                             kernel + R"(,"full_attn_layers":)" + full + R"(,"kda_layers":)" + kda +
                                             "}");
}

TEST(HfConfig, RefusesKimiLayersThatAreNotEachThereOnce) {
  EXPECT_EQ(schema_of(kimi("[3]", "[1,2]")).groups.size(), 2u);
  expect_contains(refusal(Rule::kConfigField, kimi("[3]", "[1,3]")), "layer 3 is listed twice");
  expect_contains(refusal(Rule::kConfigField, kimi("[3]", "[1]")), "layer 2 of 3 is neither here");
  expect_contains(refusal(Rule::kConfigField, kimi("[3]", "[0,1,2]")), "layer 0 is not within 1 to 3");
  refusal(Rule::kConfigField, kimi("[4]", "[1,2]"));
  refusal(Rule::kConfigField, kimi("[3]", "null"));
  refusal(Rule::kFieldType, kimi("[3]", R"(["1",2])"));
  refusal(Rule::kConfigField, kimi("[3]", "[1,2]", "1"));
}

TEST(HfConfig, RefusesAnIndexerKeyThatScalesDoNotCover) {
  const std::string latent = R"("num_hidden_layers":1,"kv_lora_rank":512,"qk_rope_head_dim":64)";
  refusal(Rule::kConfigField, config("DeepseekV32ForCausalLM", latent));
  refusal(Rule::kConfigField, config("DeepseekV32ForCausalLM", latent + R"(,"index_head_dim":100)"));
}

}  // namespace
}  // namespace crossdock
