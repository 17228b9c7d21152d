// What it costs to read, validate and identify placements, and how that grows. The limit of reading is the JSON parser
// (BM_ParserAlone: its events, thrown away), that of identity SHA-256 (BM_Sha256).
#include <benchmark/benchmark.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "model/kv/partition.h"
#include "model/kv/placement_coverage.h"
#include "model/wire/documents.h"

namespace crossdock {
namespace {

// 128 layers of 128 heads on TP64 x PP8 x DP n: 512 n participants.
Valid<PlacementManifest> placement_of(uint64_t participant_count) {
  CacheSchema schema{{LayerGroup{IntervalSet{Range(0, 128)}, LiveTokens::all(), {}}}};
  for (const char* name : {"key", "value"})
    schema.groups[0].components.push_back(Component{ComponentName(name), "bfloat16", "plain", 2, 128, 128, 1});
  PartitionRequest request;
  request.name = "bench";
  request.resource = ResourceId("kv:bench");
  request.revision = RevisionId("1");
  request.tp = 64;
  request.pp = participant_count < 512 ? 4 : 8;
  request.dp = participant_count / (request.tp * request.pp);
  request.layer_count = 128;
  Diagnostics diagnostics;
  return *partition(*Valid<CacheSchema>::make(schema, diagnostics), request, diagnostics);
}

const std::string& text_of(int64_t participant_count) {
  static std::map<int64_t, std::string> texts;
  std::string& text = texts[participant_count];
  if (text.empty()) text = to_json(placement_of(static_cast<uint64_t>(participant_count)));
  return text;
}

void count_bytes(benchmark::State& state, const std::string& text) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(text.size()));
}

void BM_ReadValidateDigest(benchmark::State& state) {
  const std::string& text = text_of(state.range(0));
  for (auto _ : state) {
    Diagnostics diagnostics;
    const auto placement = read_document<PlacementManifest>(text, JsonLimits(), diagnostics);
    CHECK(placement.has_value());
    benchmark::DoNotOptimize(digest(*placement));
  }
  count_bytes(state, text);
}

void BM_Parse(benchmark::State& state) {
  const std::string& text = text_of(state.range(0));
  for (auto _ : state) {
    Diagnostics diagnostics;
    benchmark::DoNotOptimize(JsonTree::parse(text, JsonLimits(), diagnostics));
  }
  count_bytes(state, text);
}

void BM_Validate(benchmark::State& state) {
  const PlacementManifest placement = *placement_of(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    Diagnostics diagnostics;
    validate(placement, diagnostics);
    CHECK(diagnostics.empty());
  }
}

void BM_Write(benchmark::State& state) {
  const Valid<PlacementManifest> placement = placement_of(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(to_json(placement));
  count_bytes(state, text_of(state.range(0)));
}

// Accepts every event and keeps nothing.
struct NullSax : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
};

void BM_ParserAlone(benchmark::State& state) {
  const std::string& text = text_of(state.range(0));
  NullSax sax;
  for (auto _ : state) CHECK(nlohmann::json::sax_parse(text, &sax));
  count_bytes(state, text);
}

void BM_Sha256(benchmark::State& state) {
  const std::string& text = text_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(sha256(text));
  count_bytes(state, text);
}

BENCHMARK(BM_ReadValidateDigest)->RangeMultiplier(2)->Range(256, 16384)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ParserAlone)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Parse)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Validate)->RangeMultiplier(2)->Range(512, 16384)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Write)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Sha256)->Arg(2048)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace crossdock

BENCHMARK_MAIN();
