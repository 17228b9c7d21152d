// Plans of each kind, and their JSON as another library prints it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan_json.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {

using nlohmann::json;

// Two ranks that deal out the tokens of layers 0-1 in turns of 4, to one that wants them all; a window and a state.
inline constexpr std::string_view kPlanText =
    R"({"edges":[)"
    R"([0,0,0,1,0,2,1],[0,0,1,1,0,1,1],[0,1,0,0,0,2,2],[0,1,0,2,0,2,2],[0,1,1,1,0,1,2],[0,1,2,3,0,1,3],)"
    R"([0,1,2,3,1,2,3],[0,1,3,4,0,2,0]],)"
    R"("kind":"live",)"
    R"("layer_sets":[[[0,1]],[[0,2]],[[1,2]],[[2,3]],[[3,4]]],)"
    R"("schema":"crossdock.plan",)"
    R"("snapshot_tokens":[0,10],)"
    R"("source":{"digest":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},)"
    R"("sources":["p0","p1"],)"
    R"("target":{"digest":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"},)"
    R"("targets":["q0"],)"
    R"("tensors":[)"
    R"({"component":{"dtype":"bfloat16","encoding":"plain","head_count":2,"head_dim":8,"item_bytes":2,"name":"key",)"
    R"("token_axis":{"kind":"rows","tokens_per_row":1}},)"
    R"("layers":[[0,2]],"live_tokens":{"kind":"all"},"tokens":[0,10]},)"
    R"({"component":{"dtype":"float32","encoding":"plain","head_count":1,"head_dim":1,"item_bytes":4,"name":"scale",)"
    R"("token_axis":{"kind":"rows","tokens_per_row":4}},)"
    R"("layers":[[0,2]],"live_tokens":{"kind":"all"},"tokens":[0,10]},)"
    R"({"component":{"dtype":"bfloat16","encoding":"plain","head_count":2,"head_dim":8,"item_bytes":2,"name":"key",)"
    R"("token_axis":{"kind":"rows","tokens_per_row":1}},)"
    R"("layers":[[2,3]],"live_tokens":{"kind":"window","tokens":6},"tokens":[4,10]},)"
    R"({"component":{"dtype":"float32","encoding":"plain","head_count":2,"head_dim":16,"item_bytes":4,"name":"state",)"
    R"("token_axis":{"kind":"state"}},)"
    R"("layers":[[3,4]],"live_tokens":{"kind":"all"},"tokens":[0,1]}],)"
    R"("token_sets":[)"
    R"({"intervals":[[0,1]]},)"
    R"({"cycle":{"block_tokens":4,"blocks":[[0,1]],"cycle_blocks":2},"intervals":[[0,10]]},)"
    R"({"cycle":{"block_tokens":4,"blocks":[[1,2]],"cycle_blocks":2},"intervals":[[0,10]]},)"
    R"({"intervals":[[4,10]]}],)"
    R"("tokens":[0,18446744073709551615],)"
    R"("version":1})";

// Layers 0-4: keys of 8 heads with scales of 4 tokens; 5 and 7: a window; 6: a state.
Valid<CacheSchema> wide_schema();

AnyDocument placed(const Valid<CacheSchema>& schema, const char* name, const PartitionSizes& sizes);

struct MadePlan {
  std::string name;
  AnyDocument source;
  AnyDocument target;
  Valid<TransferPlan> plan;
};

MadePlan make_named_plan(std::string name, AnyDocument source, AnyDocument target, const PlanOptions& options);

PlanOptions about_tokens(std::optional<Range> snapshot_tokens, Range tokens = Range::all());

const std::vector<MadePlan>& made_plans();

json rendered(Range range);

json rendered(const IntervalSet& set);

json rendered(const TokenSet& tokens);

json rendered(const PlanTensor& tensor);

json rendered_side(const Sha256Digest& digest, const AnyDocument* document);

std::string rendered(const TransferPlan& plan, const AnyDocument* source, const AnyDocument* target);

// Fields in the reverse order.
nlohmann::ordered_json backwards(const json& value);

}  // namespace crossdock::testing
