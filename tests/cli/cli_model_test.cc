// Cases of the field about what a model keeps and what a store of pages promises, as a user meets them (V01, V02, ...).
// Right values: sizes of the configs, by the rules of the engines (docs/models.md).
#include <sys/resource.h>

#include <set>
#include <utility>

#include "tests/cli/run_program.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

const std::string kConfigs = source_path("tests/golden/configs/");

std::string golden(const std::string& name) { return kConfigs + name + ".json"; }

class CliModel : public Cli {
 protected:
  // Bytes of rows for a token, all layers, whatever their window.
  uint64_t bytes_per_token(const std::vector<std::string>& model) const {
    std::vector<std::string> arguments = {"schema"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    const Ended made = run(arguments);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    if (made.exit_code != 0) return 0;
    uint64_t bytes = 0;
    const json schema = json::parse(made.out);
    for (const json& group : schema.at("groups")) {
      uint64_t layers = 0;
      for (const json& range : group.at("layers")) layers += range[1].get<uint64_t>() - range[0].get<uint64_t>();
      for (const json& component : group.at("components"))
        if (component.at("token_axis").at("kind") == "rows")
          bytes += layers * component.at("head_count").get<uint64_t>() * component.at("head_dim").get<uint64_t>() *
                   component.at("item_bytes").get<uint64_t>();
    }
    return bytes;
  }
  std::string refusal(const std::vector<std::string>& arguments) const {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2) << ended.out << ended.err;
    EXPECT_EQ(ended.out, "");
    return ended.err;
  }
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in\n" << text;
}

TEST_F(CliModel, V01PagesOfAHybridModelAreFoundByALongerPrompt) {
  const std::string model = kModels + "gpt-oss-120b/config.json";
  EXPECT_EQ(run({"store", "init", "c"}).exit_code, 0);
  const std::string stored = output_of(
      {"store", "pages", "put", "c", "--config", model, "--from", "tp2", "--tokens", "1000", "--synthetic", "--quiet"});
  // 15 pages of full layers and 2 of the window, from each of two ranks.
  expect_contains(stored, "stored 15 pages of 64 tokens: 34 objects");
  expect_contains(stored, "of pages 0-12: of its rows only the last 127 tokens live");
  const std::string match =
      output_of({"store", "pages", "match", "c", "--config", model, "--to", "tp4", "--tokens", "1500"});
  expect_contains(match, "960 of 1,500 tokens can be restored: 15 of 23 pages of 64");
  const Ended got = run({"store", "pages", "get", "c", "--config", model, "--to", "tp4", "--tokens", "1500", "--verify",
                         "full", "--quiet"});
  EXPECT_EQ(got.exit_code, 0) << got.out << got.err;
}

TEST_F(CliModel, V02TheInnerModelTypeDecides) {
  EXPECT_EQ(bytes_per_token({"--config", golden("mistral-small-4-119b")}), 36u * (256 + 64) * 2);  // latent
  json config = json::parse(read_text(golden("mistral-small-4-119b")));
  config["text_config"]["model_type"] = "mistral";  // which has no latent attention
  write("config.json", config.dump());
  expect_contains(refusal({"schema", "--config", "config.json"}), "text_config.kv_lora_rank");
  config["text_config"]["model_type"] = "mistral5";
  write("config.json", config.dump());
  expect_contains(refusal({"schema", "--config", "config.json"}),
                  "text_config.model_type: 'mistral5' is not a language model that is known for "
                  "Mistral3ForConditionalGeneration; known: 'mistral', 'ministral3', 'mistral4'");
}

TEST_F(CliModel, V03AWindowIsThatOfTheClass) {
  const Ended moved = run({"reshard", "--config", golden("devstral-small-2-24b"), "--from", "tp2", "--to", "tp4",
                           "--tokens", "512", "--quiet", "--json"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(json::parse(moved.out).at("bytes"), 40u * 2 * 8 * 128 * 2 * 512);
  const json schema = json::parse(run({"schema", "--config", golden("devstral-small-2-24b")}).out);
  EXPECT_EQ(schema.at("groups").at(0).at("live_tokens").at("kind"), "all");
}

TEST_F(CliModel, V04ACacheSchemeOfTheCheckpointCounts) {
  EXPECT_EQ(bytes_per_token({"--config", golden("nvidia__Qwen3.6-27B-NVFP4")}), 32'768u);
  EXPECT_EQ(bytes_per_token({"--config", golden("nvidia__Qwen3.5-122B-A10B-NVFP4")}), 12'288u);
  EXPECT_EQ(bytes_per_token({"--config", golden("nvidia__Qwen3.5-397B-A17B-NVFP4")}), 15'360u);
  EXPECT_EQ(bytes_per_token({"--config", golden("redhat-llama-3.1-8b-fp8-kv")}), 65'536u);
  EXPECT_EQ(bytes_per_token({"--config", golden("redhat-llama-3.1-8b-fp8-kv"), "--kv-dtype", "bfloat16"}), 131'072u);
  EXPECT_EQ(bytes_per_token({"--config", golden("llama-nvfp4-kv")}), 36'864u);
  // SGLang does not take the scheme of compressed-tensors, and the program says so.
  const Ended sglang = run({"schema", "--config", golden("redhat-llama-3.1-8b-fp8-kv"), "--engine", "sglang"});
  EXPECT_EQ(sglang.exit_code, 0);
  expect_contains(sglang.err, "note: ");
  expect_contains(sglang.out, "bfloat16");
}

TEST_F(CliModel, V04TheFileBesideTheConfigIsReadInAFolder) {
  fs::create_directory(work("model"));
  fs::copy(kModels + "llama-3.1-8b/config.json", work("model/config.json"));
  write("model/hf_quant_config.json",
        R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}})");
  EXPECT_EQ(bytes_per_token({"--config", "model"}), 65'536u);
  EXPECT_EQ(bytes_per_token({"--config", "model/config.json"}), 131'072u);
  expect_contains(run({"schema", "--config", "model/config.json"}).err, "hf_quant_config.json lies beside");
}

TEST_F(CliModel, V05FourBitItemsLieTwoInAByte) {
  const std::string llama = kModels + "llama-3.1-8b/config.json";
  EXPECT_EQ(bytes_per_token({"--config", llama, "--kv-dtype", "float4_e2m1fn_x2"}), 32u * 2 * 8 * 128 / 2);
  EXPECT_EQ(bytes_per_token({"--config", llama, "--kv-dtype", "nvfp4"}), 32u * 2 * 8 * (128 / 2 + 128 / 16));
  EXPECT_EQ(bytes_per_token({"--config", llama, "--kv-dtype", "nvfp4", "--engine", "sglang"}),
            32u * 2 * 8 * (128 / 2 + 128 / 16));
}

TEST_F(CliModel, V06AThirtyTwoBitCheckpointIsServedInSixteen) {
  EXPECT_EQ(bytes_per_token({"--config", golden("gemma-2-2b-float32")}), 106'496u);
}

TEST_F(CliModel, V08SparseAttentionPacksAnFp8Cache) {
  const std::string config = kModels + "deepseek-v3.2-exp/config.json";
  for (const std::string dtype : {"float8_e4m3fn", "fp8", "fp8_e4m3", "fp8_ds_mla"})
    EXPECT_EQ(bytes_per_token({"--config", config, "--kv-dtype", dtype}), 48'068u) << dtype;
  expect_contains(refusal({"schema", "--config", kModels + "deepseek-v3/config.json", "--kv-dtype", "fp8_ds_mla"}),
                  "sparse latent attention");
}

TEST_F(CliModel, V09AMatchRefusesTheSnapshotOfAnotherModel) {
  const std::string llama = kModels + "llama-3.1-8b/config.json";
  notice_of({"placement", "--config", llama, "--tp", "2", "-o", "p.json"});
  notice_of({"snapshot", "--placement", "p.json", "--tokens", "300", "-o", "a.json"});
  EXPECT_EQ(run({"store", "init", "c"}).exit_code, 0);
  output_of({"store", "pages", "put", "c", "--config", llama, "--from", "tp2", "--tokens", "300", "--snapshot",
             "a.json", "--synthetic", "--quiet"});
  const auto match = [](const std::vector<std::string>& model) {
    std::vector<std::string> all = {"store", "pages",    "match", "c",          "--to",
                                    "tp2",   "--tokens", "300",   "--snapshot", "a.json"};
    all.insert(all.end(), model.begin(), model.end());
    return all;
  };
  expect_contains(output_of(match({"--config", llama})), "256 of 300 tokens can be restored");
  expect_contains(refusal(match({"--config", kModels + "qwen3-32b/config.json"})), "is of cache schema ");
  expect_contains(refusal(match({"--config", llama, "--kv-dtype", "float8_e4m3fn"})), "is of cache schema ");
}

TEST_F(CliModel, V10TheLastTokenOfAWindowIsTheNextOne) {
  const json schema = json::parse(output_of({"schema", "--config", kModels + "gpt-oss-120b/config.json"}));
  EXPECT_EQ(schema.at("groups").at(0).at("live_tokens"), json::parse(R"({"kind":"window","tokens":127})"));
}

TEST_F(CliModel, V14RowsOfOneLayerLiveDifferently) {
  const json schema = json::parse(output_of({"schema", "--config", golden("deepseek-ai__DeepSeek-V4-Flash")}));
  // Layer 2 compresses by 4: raw rows and sums in windows, compressed rows and indexer keys for all tokens.
  for (const json& group : schema.at("groups")) {
    if (group.at("layers").at(0) != json::parse("[2,3]")) continue;
    std::map<std::string, json> live;
    for (const json& component : group.at("components")) live[component.at("name")] = group.at("live_tokens");
    for (const json& own : group.at("component_live_tokens")) live[own.at("component")] = own.at("live_tokens");
    EXPECT_EQ(live.at("latent"), json::parse(R"({"kind":"window","tokens":127})"));
    EXPECT_EQ(live.at("compressor_state"), json::parse(R"({"kind":"window","tokens":7})"));
    EXPECT_EQ(live.at("latent_compressed"), json::parse(R"({"kind":"all"})"));
    EXPECT_EQ(live.at("indexer_key"), json::parse(R"({"kind":"all"})"));
    const Ended moved = run({"reshard", "--config", golden("deepseek-ai__DeepSeek-V4-Flash"), "--from", "tp2", "--to",
                             "pp2", "--tokens", "300", "--page-size", "128", "--verify", "full", "--quiet"});
    EXPECT_EQ(moved.exit_code, 0) << moved.out << moved.err;
    return;
  }
  ADD_FAILURE() << "no group begins with layer 2: " << schema.dump();
}

TEST_F(CliModel, V15LayersWithoutACacheCountInThePipeline) {
  notice_of({"placement", "--config", golden("gemma-3n-e4b"), "--pp", "2", "-o", "p.json"});
  const json placement = json::parse(read("p.json"));
  // 35 layers: 18 on the first stage, so that layers 18 and 19, the last with a cache of their own, are on the second.
  for (const json& part : placement.at("parts"))
    for (const json& owned : part.at("owns"))
      for (const json& layers : owned.at("layers")) {
        const bool is_first = part.at("participant") == "p0-t0";
        EXPECT_EQ(layers[1].get<uint64_t>() <= 18, is_first) << part.dump();
      }
  // The same by a schema, when the number of layers is said.
  notice_of({"schema", "--config", golden("gemma-3n-e4b"), "-o", "schema.json"});
  const Ended moved = run({"reshard", "--schema", "schema.json", "--layer-count", "35", "--from", "tp2", "--to", "pp2",
                           "--tokens", "64", "--quiet"});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  expect_contains(refusal({"placement", "--schema", "schema.json", "--layer-count", "12", "--pp", "2"}),
                  "--draft-layers says that those from 12 on are draft layers");
}

// KV pipeline inside a tensor-parallel group: each rank owns all heads of layers of its own.
TEST_F(CliModel, TensorParallelRanksMayOwnLayersOfTheirOwn) {
  const std::string llama = kModels + "llama-3.1-8b/config.json";
  json placement = json::parse(output_of({"placement", "--config", llama, "--tp", "2"}));
  placement["name"] = "by-layer";
  for (const size_t rank : {size_t{0}, size_t{1}}) {
    json& owned = placement["parts"][rank]["owns"][0];
    owned["heads"] = json::parse("[[0,8]]");
    owned["layers"] = json::parse(rank == 0 ? "[[0,16]]" : "[[16,32]]");
  }
  write("by-layer.json", placement.dump());
  notice_of({"placement", "--config", llama, "--tp", "4", "-o", "tp4.json"});
  const json plan = json::parse(output_of({"plan", "--source", "by-layer.json", "--target", "tp4.json", "--json"}));
  EXPECT_EQ(plan.at("pairs").size(), 8u);  // both sources for each target
  EXPECT_EQ(plan.at("total").at("bytes_per_token"), 131'072);
  EXPECT_EQ(run({"store", "init", "c"}).exit_code, 0);
  output_of({"store", "put", "c", "--placement", "by-layer.json", "--tokens", "100", "--synthetic", "--quiet"});
  const std::string snapshot = json::parse(output_of({"store", "ls", "c", "--json"})).at(0).at("snapshot");
  const Ended got = run({"store", "get", "c", snapshot, "--to", "tp4", "--verify", "full", "--quiet"});
  EXPECT_EQ(got.exit_code, 0) << got.out << got.err;
}

TEST_F(CliModel, V16AFileSizeLimitIsAnError) {
  EXPECT_EQ(run({"store", "init", "c"}).exit_code, 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Ended ended = run({"store", "put", "c", "--config", kModels + "llama-3.1-8b/config.json", "--from", "tp2",
                           "--tokens", "256", "--synthetic", "--quiet"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  expect_contains(ended.err, "nothing was published: ");
  expect_contains(ended.err, "File too large");
}

// Of each family, between two pairs of layouts and through a store, with every byte looked at. States of the largest
// hybrid models come to hundreds of megabytes for a sequence; their kinds are here in smaller models.
// In quarters, so that ctest runs them beside each other.
class CliFamilies : public CliModel, public ::testing::WithParamInterface<size_t> {};

TEST_P(CliFamilies, MoveByteForByte) {
  const std::set<std::string> too_large = {"nvidia__Nemotron-H-56B-Base-8K.json",
                                           "meta-llama__Meta-Llama-3.1-405B.json"};
  std::set<fs::path> configs;
  for (const auto& entry : fs::directory_iterator(kConfigs))
    if (entry.path().extension() == ".json" && !too_large.contains(entry.path().filename().string()))
      configs.insert(entry.path());
  size_t number = 0;
  for (const fs::path& path : configs) {
    if (number++ % 4 != GetParam()) continue;
    SCOPED_TRACE(path.filename().string());
    const std::vector<std::string> model = {"--config", path.string()};
    const auto with_model = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), model.begin(), model.end());
      return run(arguments);
    };
    const auto expect_done = [&](const std::vector<std::string>& arguments) {
      const Ended ended = with_model(arguments);
      EXPECT_EQ(ended.exit_code, 0) << arguments[0] << " " << arguments[1] << "\n" << ended.out << ended.err;
    };
    for (const auto& [from, to] : {std::pair("tp2", "pp2"), std::pair("pp2", "tp1")})
      expect_done({"reshard", "--from", from, "--to", to, "--tokens", "130", "--page-size", "128", "--verify", "full",
                   "--quiet"});
    fs::remove_all(work("c"));
    EXPECT_EQ(run({"store", "init", "c"}).exit_code, 0);
    expect_done({"store", "put", "c", "--from", "tp2", "--tokens", "130", "--page-size", "128", "--store-page-size",
                 "128", "--synthetic", "--quiet"});
    const json list = json::parse(run({"store", "ls", "c", "--json"}).out);
    ASSERT_EQ(list.size(), 1u);
    const std::string snapshot = list.at(0).at("snapshot");
    const Ended got =
        run({"store", "get", "c", snapshot, "--to", "pp2", "--page-size", "128", "--verify", "full", "--quiet"});
    EXPECT_EQ(got.exit_code, 0) << got.out << got.err;
    expect_done({"store", "pages", "put", "c", "--from", "tp2", "--tokens", "300", "--page-size", "128",
                 "--store-page-size", "128", "--synthetic", "--quiet"});
    const Ended pages = with_model({"store", "pages", "get", "c", "--to", "pp2", "--tokens", "400", "--page-size",
                                    "128", "--store-page-size", "128", "--verify", "full", "--quiet"});
    EXPECT_EQ(pages.exit_code, 0) << pages.out << pages.err;
    EXPECT_NE(pages.out.find("256 of 400 tokens can be restored"), std::string::npos) << pages.out;
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, CliFamilies, ::testing::Range(size_t{0}, size_t{4}));

TEST_F(CliModel, EveryGoldenConfigIsReadAndPlaced) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    notice_of({"placement", "--config", entry.path().string(), "--tp", "1", "--pp", "2", "-o", "p.json"});
  }
  EXPECT_EQ(count, 38u);
}

}  // namespace
}  // namespace crossdock::testing
