// One rule, one message, one test: each row breaks one rule of a document that is valid otherwise.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "model/hf/config.h"
#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"
#include "model/kv/pool_binding.h"
#include "model/mooncake/mooncake.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan_json.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;

enum class Kind { kSchema, kTopology, kPlacement, kSnapshot, kBinding, kLayout, kManifest, kPlan };

// The example's placement into its store layout, and the two sides of that.
struct Upload {
  AnyDocument source = example_placement();
  AnyDocument target = example_store_layout();
  PlanSide source_side = plan_side(source).value();
  PlanSide target_side = plan_side(target).value();
  PlanOptions options;

  Upload() { options.snapshot_tokens = example_snapshot()->tokens; }
  Upload(const Upload&) = delete;  // the sides refer to the documents
  Upload& operator=(const Upload&) = delete;

  Valid<TransferPlan> plan() const {
    Diagnostics diagnostics;
    return make_plan(source_side, target_side, options, PlanLimits(), diagnostics).value();
  }
};

json example(Kind kind) {
  switch (kind) {
    case Kind::kSchema: return json::parse(to_json(example_cache_schema()));
    case Kind::kTopology: return json::parse(to_json(example_topology()));
    case Kind::kPlacement: return json::parse(to_json(example_placement()));
    case Kind::kSnapshot: return json::parse(to_json(example_snapshot()));
    case Kind::kBinding: return json::parse(to_json(example_binding()));
    case Kind::kLayout: return json::parse(to_json(example_store_layout()));
    case Kind::kManifest: return json::parse(to_json(example_store_manifest()));
    case Kind::kPlan: return json::parse(plan_to_json(Upload().plan()));
  }
  return {};
}

bool is_read(const json& document, Kind kind, Diagnostics& diagnostics) {
  return kind == Kind::kPlan ? read_plan(document.dump(), JsonLimits(), diagnostics).has_value()
                             : read_any_document(document.dump(), JsonLimits(), diagnostics).has_value();
}

// A document that breaks `rule`, and its line.
struct Broken {
  Rule rule;
  std::string line;
  Kind kind;
  std::function<void(json&)> mutate;
};

// The same, for the text itself.
struct BrokenText {
  Rule rule;
  std::string line;
  std::string text;
  JsonLimits limits = {};
};

// The same, for what takes more than one document or another project's.
struct BrokenOther {
  Rule rule;
  std::string line;
  std::function<void(Diagnostics&)> run;
};

json& part(json& placement, size_t index) { return placement["parts"][index]; }
json& own(json& placement, size_t index, size_t entry = 0) { return placement["parts"][index]["owns"][entry]; }

const std::vector<Broken>& broken_documents() {
  static const std::vector<Broken> table = {
      {Rule::kFieldUnknown, "snapshot: field 'colour' is unknown", Kind::kManifest,
       [](json& d) { d["snapshot"]["colour"] = "red"; }},
      {Rule::kFieldMissing, "parts[1]: field 'participant' is missing", Kind::kPlacement,
       [](json& d) { part(d, 1).erase("participant"); }},
      {Rule::kFieldType, "parts[0].owns[0].heads: must be an array, not a string", Kind::kPlacement,
       [](json& d) { own(d, 0)["heads"] = "0-1"; }},
      {Rule::kFieldType, "generation: must be an integer, not a boolean", Kind::kBinding,
       [](json& d) { d["generation"] = true; }},
      {Rule::kFieldInteger, "generation: 1.0 is not an integer from 0 to 18446744073709551615", Kind::kBinding,
       [](json& d) { d["generation"] = 1.0; }},
      {Rule::kFieldInteger, "generation: -1 is not an integer from 0 to 18446744073709551615", Kind::kBinding,
       [](json& d) { d["generation"] = -1; }},
      {Rule::kFieldInteger, "objects[0].chunk_crc32c[0]: 4294967296 is not an integer from 0 to 4294967295",
       Kind::kManifest, [](json& d) { d["objects"][0]["chunk_crc32c"][0] = 4294967296u; }},
      {Rule::kFieldChoice, "object_order: 'lhpd' is not one of hpld, lphd, plhd", Kind::kLayout,
       [](json& d) { d["object_order"] = "lhpd"; }},
      {Rule::kFieldMinimum, "groups[0].components[0].head_dim: 0 is below 1", Kind::kSchema,
       [](json& d) { d["groups"][0]["components"][0]["head_dim"] = 0; }},
      {Rule::kSchemaName, "schema: 'crossdock.plan' is not one of crossdock.binding,", Kind::kPlacement,
       [](json& d) { d["schema"] = "crossdock.plan"; }},
      {Rule::kSchemaVersion, "version: version 2 of 'crossdock.placement' is unknown; this program reads version 1",
       Kind::kPlacement, [](json& d) { d["version"] = 2; }},
      {Rule::kName, "tenant: a name must not be empty", Kind::kSnapshot, [](json& d) { d["tenant"] = ""; }},
      {Rule::kName, "tenant: a name of 257 bytes is longer than 256", Kind::kSnapshot,
       [](json& d) { d["tenant"] = std::string(257, 'x'); }},
      {Rule::kDigestText,
       "placement_digest: 'sha256:12' is not 64 lower-case hexadecimal digits (and nothing before them)",
       Kind::kBinding, [](json& d) { d["placement_digest"] = "sha256:12"; }},
      {Rule::kIntervals, "parts[0].owns[0].heads[0]: interval [1,0) ends before it begins", Kind::kPlacement,
       [](json& d) {
         own(d, 0)["heads"] = {{1, 0}};
       }},
      {Rule::kIntervals, "parts[0].owns[0].heads[0]: interval [1,1) is empty", Kind::kPlacement,
       [](json& d) {
         own(d, 0)["heads"] = {{1, 1}};
       }},
      {Rule::kIntervals, "parts[0].owns[0].layers: intervals [0,2) and [1,2) overlap", Kind::kPlacement,
       [](json& d) {
         own(d, 0)["layers"] = {{0, 2}, {1, 2}};
       }},
      {Rule::kIntervals, "tokens: one interval [begin,end] stands here, not 3 values", Kind::kSnapshot,
       [](json& d) {
         d["tokens"] = {0, 1, 2};
       }},

      {Rule::kSchemaEmpty, "cache schema: there is no layer group", Kind::kSchema,
       [](json& d) { d["groups"] = json::array(); }},
      {Rule::kGroupEmpty, "cache schema group 0 (layers none): the group has no layers", Kind::kSchema,
       [](json& d) { d["groups"][0]["layers"] = json::array(); }},
      {Rule::kGroupEmpty, "cache schema group 0 (layers 0-1): the group has no components", Kind::kSchema,
       [](json& d) { d["groups"][0]["components"] = json::array(); }},
      {Rule::kLayerRepeated, "cache schema: layers 2 are in two groups", Kind::kSchema,
       [](json& d) {
         d["groups"][0]["layers"] = {{0, 3}};
       }},
      {Rule::kComponentRepeated, "cache schema group 1 (layers 2): component 'key' is listed twice", Kind::kSchema,
       [](json& d) { d["groups"][1]["components"][1]["name"] = "key"; }},
      {Rule::kItemBytes, "component 'key': item_bytes 2 differs from the 1 of dtype float8_e4m3fn", Kind::kSchema,
       [](json& d) { d["groups"][0]["components"][0]["item_bytes"] = 2; }},
      {Rule::kSizeOverflow, "component 'key': 9223372036854775808 heads x 8 x 1 bytes do not fit in 64 bits",
       Kind::kSchema, [](json& d) { d["groups"][0]["components"][0]["head_count"] = uint64_t{1} << 63; }},

      {Rule::kTopologyEmpty, "topology: there are no participants", Kind::kTopology,
       [](json& d) { d["participants"] = json::array(); }},
      {Rule::kParticipantRepeated, "topology participant 'p0-t0': the participant is listed twice", Kind::kTopology,
       [](json& d) { d["participants"][1]["id"] = "p0-t0"; }},
      {Rule::kRankRepeated, "topology participant 'p0-t1': rank dp 0 pp 0 tp 0 cp 0 ep 0 is also that of 'p0-t0'",
       Kind::kTopology, [](json& d) { d["participants"][1]["rank"]["tp"] = 0; }},
      {Rule::kRankBounds, "topology participant 'p0-t1': tp rank 2 is not below the tp size 2", Kind::kTopology,
       [](json& d) { d["participants"][1]["rank"]["tp"] = 2; }},

      {Rule::kPartMissing, "placement 'decode': participant 'p1-t1' has no part", Kind::kPlacement,
       [](json& d) { d["parts"].erase(3); }},
      {Rule::kPartRepeated, "placement 'decode' part 'p0-t0': the participant has two parts", Kind::kPlacement,
       [](json& d) { d["parts"].push_back(part(d, 0)); }},
      {Rule::kPartUnknown, "placement 'decode' part 'p9-t9': the topology has no such participant", Kind::kPlacement,
       [](json& d) { part(d, 3)["participant"] = "p9-t9"; }},
      {Rule::kOwnershipEmpty, "placement 'decode' part 'p0-t0': an ownership has no heads", Kind::kPlacement,
       [](json& d) { own(d, 0)["heads"] = json::array(); }},
      {Rule::kOwnershipEmpty, "placement 'decode' part 'p0-t0': an ownership has no layers", Kind::kPlacement,
       [](json& d) { own(d, 0)["layers"] = json::array(); }},
      {Rule::kOwnershipEmpty, "store layout 'by-head' part 'state': a part needs layers, components and heads",
       Kind::kLayout, [](json& d) { d["parts"][2]["components"] = json::array(); }},
      {Rule::kLayerUnknown, "placement 'decode' part 'p0-t0': layers 7 are not in the cache schema (layers 0-3)",
       Kind::kPlacement,
       [](json& d) {
         own(d, 0)["layers"] = {{0, 2}, {7, 8}};
       }},
      {Rule::kComponentUnknown, "placement 'decode' part 'p0-t0': layers 0-1 have no component 'latent'",
       Kind::kPlacement, [](json& d) { own(d, 0)["components"] = {"latent"}; }},
      {Rule::kComponentUnknown,
       "view 2 (component key_scale, layers 2-3, tokens [0,10), heads [0,2)): layers 2 have no such component",
       Kind::kManifest,
       [](json& d) {
         d["views"][2]["layers"] = {2, 4};
       }},
      {Rule::kHeadBounds,
       "placement 'decode' part 'p0-t1': heads [1,3) end past head count 2 (component key, layers 0-1)",
       Kind::kPlacement,
       [](json& d) {
         own(d, 1)["heads"] = {{1, 3}};
       }},
      {Rule::kTokenBounds, "placement 'decode' part 'p0-t0': tokens [0,11) lie outside the placement's tokens [0,10)",
       Kind::kPlacement,
       [](json& d) {
         d["tokens"] = {0, 10};
         own(d, 0)["tokens"] = {{"kind", "intervals"}, {"intervals", {{0, 11}}}};
       }},
      {Rule::kTokenAlignment,
       "placement 'decode' part 'p0-t0': token 6 cuts a row of 4 tokens (component key, layers 0-1)", Kind::kPlacement,
       [](json& d) {
         d["cache_schema"]["groups"][0]["components"][0]["token_axis"]["tokens_per_row"] = 4;
         own(d, 0)["tokens"] = {{"kind", "intervals"}, {"intervals", {{0, 6}}}};
       }},
      {Rule::kStateTokens,
       "placement 'decode' part 'p1-t0': component recurrent_state (layers 3) is a state and has no tokens to share "
       "out",
       Kind::kPlacement,
       [](json& d) {
         own(d, 2, 1)["tokens"] = {{"kind", "intervals"}, {"intervals", {{0, 1}}}};
       }},
      {Rule::kCycleBounds, "placement 'decode' part 'p0-t0': blocks [2,3) end past the 2 blocks of the cycle",
       Kind::kPlacement,
       [](json& d) {
         own(d, 0)["tokens"] = {{"kind", "cycle"},
                                {"cycle", {{"block_tokens", 1}, {"cycle_blocks", 2}, {"blocks", {{2, 3}}}}}};
       }},
      {Rule::kReplicaOrdinal, "placement 'decode' part 'p0-t0': replica ordinal 1 is not below the replica count 1",
       Kind::kPlacement, [](json& d) { own(d, 0)["replica"]["ordinal"] = 1; }},
      {Rule::kCoverageGap, "placement 'decode' dp 0: layers 0-1 component key heads [1,2): no owner", Kind::kPlacement,
       [](json& d) { part(d, 1)["owns"] = json::array(); }},
      {Rule::kCoverageGap, "store layout 'by-head': layers 3 component recurrent_state heads [1,2): in no part",
       Kind::kLayout,
       [](json& d) {
         d["parts"][2]["heads"] = {{0, 1}};
       }},
      {Rule::kCoverageOverlap,
       "placement 'decode' dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 1), 'p0-t1' (0 of 1) own the "
       "same, and are not declared replicas",
       Kind::kPlacement,
       [](json& d) {
         own(d, 1)["heads"] = {{0, 2}};
       }},
      {Rule::kCoverageOverlap,
       "store layout 'by-head' part 'full-h1': layers 0-1 component key heads [0,1): also in part 'full-h0'",
       Kind::kLayout,
       [](json& d) {
         d["parts"][1]["heads"] = {{0, 2}};
       }},
      {Rule::kReplicaSet,
       "placement 'decode' dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 2) do not make the set of "
       "replicas 0 to 1",
       Kind::kPlacement,
       [](json& d) {
         own(d, 0)["replica"] = {{"count", 2}, {"ordinal", 0}};
       }},
      {Rule::kReplicaSet,
       "dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 2), 'p0-t0' (1 of 2): one participant cannot be two "
       "replicas",
       Kind::kPlacement,
       [](json& d) {
         own(d, 0)["replica"] = {{"count", 2}, {"ordinal", 0}};
         d["parts"][0]["owns"].push_back(own(d, 0));
         own(d, 0, 1)["replica"]["ordinal"] = 1;
       }},
      {Rule::kCoverageGap, "heads [0,1): tokens [1001,1002): no owner", Kind::kPlacement,
       [](json& d) {
         d["tokens"] = {1000, 2000};
         own(d, 0)["tokens"] = {{"kind", "cycle"},
                                {"cycle", {{"block_tokens", 1}, {"cycle_blocks", 2}, {"blocks", {{0, 1}}}}}};
       }},
      {Rule::kSnapshotEmpty, "snapshot of 'kv:request-17': the snapshot has no tokens", Kind::kSnapshot,
       [](json& d) {
         d["tokens"] = {3, 3};
       }},

      {Rule::kDeviceRepeated, "device 'gpu0': the device is listed twice", Kind::kBinding,
       [](json& d) { d["devices"].push_back(d["devices"][0]); }},
      {Rule::kRegionRepeated, "region 'pool': the region is listed twice", Kind::kBinding,
       [](json& d) { d["regions"].push_back(d["regions"][0]); }},
      {Rule::kRegionDevice, "region 'pool': there is no device 'gpu9'", Kind::kBinding,
       [](json& d) { d["regions"][0]["device"] = "gpu9"; }},
      {Rule::kRegistrationLimit,
       "region 'pool': 1024 bytes are more than the 1000 that device 'gpu0' can register; split the region",
       Kind::kBinding, [](json& d) { d["devices"][0]["registration_bytes_max"] = 1000; }},
      {Rule::kSizeOverflow, "region 'pool': 1024 bytes from address 18446744073709551615 end past 2^64", Kind::kBinding,
       [](json& d) { d["regions"][0]["address"] = UINT64_MAX; }},
      {Rule::kPageTableRepeated, "page table 'pages': the page table is listed twice", Kind::kBinding,
       [](json& d) { d["page_tables"].push_back(d["page_tables"][0]); }},
      {Rule::kPageSlots, "page table 'pages': slot 5 holds two pages", Kind::kBinding,
       [](json& d) {
         d["page_tables"][0]["slots"] = {5, 0, 5};
       }},
      {Rule::kViewEmpty, "view 0 (component key, layers 0-1, tokens [0,0), heads [0,1)): the view has no tokens",
       Kind::kBinding,
       [](json& d) {
         d["views"][0]["tokens"] = {0, 0};
       }},
      {Rule::kViewRegion, "there is no region 'pond'", Kind::kBinding,
       [](json& d) { d["views"][0]["region"] = "pond"; }},
      {Rule::kViewPages, "there is no page table 'leaves'", Kind::kBinding,
       [](json& d) { d["views"][0]["pages"]["table"] = "leaves"; }},
      {Rule::kInstanceEndpoint, "region 'pool2': endpoint 'none' differs from '10.0.0.1:4711' of another region",
       Kind::kBinding,
       [](json& d) {
         d["regions"].push_back({{"id", "pool2"}, {"bytes", 1}, {"device", "gpu0"}, {"epoch", 1}});
       }},
      {Rule::kRegionsOverlap, "region 'pool2': addresses [139637976728575,139637976728577) overlap", Kind::kBinding,
       [](json& d) {
         d["regions"].push_back({{"id", "pool2"},
                                 {"bytes", 2},
                                 {"device", "gpu0"},
                                 {"epoch", 1},
                                 {"address", 0x7f00000003ff},
                                 {"endpoint", "10.0.0.1:4711"}});
       }},

      {Rule::kViewAlignment, "offset 385 is not a multiple of the item size 4", Kind::kManifest,
       [](json& d) { d["views"][3]["offset_bytes"] = 385; }},
      {Rule::kViewStrides, "head stride 60 is shorter than the 64 bytes of the dim inside it", Kind::kManifest,
       [](json& d) { d["views"][3]["stride_bytes"]["head"] = 60; }},
      {Rule::kSizeOverflow, "2 indices at head stride 18446744073709551612 do not fit in 64 bits", Kind::kManifest,
       [](json& d) { d["views"][3]["stride_bytes"]["head"] = UINT64_MAX - 3; }},
      {Rule::kViewBounds, "the view ends at byte 516, region 'request-17/rest' at 512", Kind::kManifest,
       [](json& d) { d["views"][3]["offset_bytes"] = 388; }},
      {Rule::kViewsOverlap,
       "view 4 (component value, layers 0-1, tokens [0,10), heads [0,2)): shares bytes of region 'request-17/full' "
       "with view 0 (component key, layers 0-1, tokens [0,10), heads [0,2))",
       Kind::kManifest, [](json& d) { d["views"][4]["offset_bytes"] = 8; }},
      {Rule::kViewNotOwned, "view 1: component key layers 2 heads [0,2) dims [0,8) tokens [3,4): not owned or not live",
       Kind::kManifest,
       [](json& d) {
         d["views"][1]["tokens"] = {3, 10};
       }},
      {Rule::kCoverageGap, "component key layers 2 heads [0,2) dims [0,8) tokens [4,5): owned, but in no view",
       Kind::kManifest,
       [](json& d) {
         d["views"][1]["tokens"] = {5, 10};
       }},
      {Rule::kCoverageOverlap, "view 2: component key layers 2 heads [0,2) dims [0,8) tokens [4,10): also in view 1",
       Kind::kManifest,
       [](json& d) {
         json twin = d["views"][1];
         twin["offset_bytes"] = 512;
         d["objects"][1]["bytes"] = 1024;
         d["objects"][1]["chunk_crc32c"] = {1, 2, 3, 4};
         d["views"].push_back(twin);
       }},
      {Rule::kStateTokens, "tokens [0,2) of a state component must be [0,1)", Kind::kManifest,
       [](json& d) {
         d["views"][3]["tokens"] = {0, 2};
       }},
      {Rule::kObjectKeyRepeated, "object 'request-17/full': the object is listed twice", Kind::kManifest,
       [](json& d) { d["objects"].push_back(d["objects"][0]); }},
      {Rule::kPartLife,
       "part 'window': keeps all tokens of component 'key' of layers 0-1, and the last 6 tokens of 'key' of layers 2",
       Kind::kLayout,
       [](json& d) {
         d["parts"][3]["layers"] = {{0, 3}};
       }},
      {Rule::kObjectKeyRepeated, "part 'full-h0': the key is listed twice", Kind::kLayout,
       [](json& d) { d["parts"][1]["key"] = "full-h0"; }},
      {Rule::kObjectChunks, "object 'request-17/full': 640 bytes in chunks of 256 need 3 checksums, not 2",
       Kind::kManifest,
       [](json& d) {
         d["objects"][0]["chunk_crc32c"] = {1, 2};
       }},
      {Rule::kManifestIdentity,
       "snapshot: cache_schema_digest 0000000000000000000000000000000000000000000000000000000000000000 is not that of "
       "the manifest's cache schema",
       Kind::kManifest, [](json& d) { d["snapshot"]["cache_schema_digest"] = std::string(64, '0'); }},

      {Rule::kSchemaName, "document schema: 'crossdock.placement' stands where 'crossdock.plan' is needed", Kind::kPlan,
       [](json& d) { d["schema"] = "crossdock.placement"; }},
      {Rule::kFieldType, "plan edges[3]: an edge has 7 numbers, not 2", Kind::kPlan,
       [](json& d) {
         d["edges"][3] = {0, 1};
       }},
      {Rule::kPlanIdentity, "plan target.document: the document's digest is ", Kind::kPlan,
       [](json& d) {
         d["target"]["document"] = example(Kind::kLayout);
         d["target"]["document"]["page_tokens"] = 8;
       }},
      {Rule::kPlanIndex, "plan edge 11: names an entry that its list does not have", Kind::kPlan,
       [](json& d) { d["edges"][11][6] = 99; }},
      {Rule::kPlanIndex, "plan: source 'p9' has no edge", Kind::kPlan, [](json& d) { d["sources"].push_back("p9"); }},
      {Rule::kPlanEdge, "plan edge 0: moves nothing", Kind::kPlan, [](json& d) { d["edges"][0][5] = 0; }},
      {Rule::kPlanEdge, "plan edge 1: is listed twice", Kind::kPlan,
       [](json& d) { d["edges"].push_back(d["edges"][0]); }},
      {Rule::kPlanTensor, "plan edge 0: heads [0,3) end past head count 2 (component key)", Kind::kPlan,
       [](json& d) { d["edges"][0][5] = 3; }},
      {Rule::kPlanTensor, "plan tensor 1: is listed twice", Kind::kPlan,
       [](json& d) { d["tensors"].push_back(d["tensors"][0]); }},
      {Rule::kPlanParticipant, "plan targets: a plan is for at least one target", Kind::kPlan,
       [](json& d) { d["targets"] = json::array(); }},
      {Rule::kPlanEmpty, "plan tokens: a plan is about at least one token", Kind::kPlan,
       [](json& d) {
         d["tokens"] = {4, 4};
       }},
      {Rule::kSnapshotEmpty, "plan snapshot_tokens: a snapshot holds at least one token", Kind::kPlan,
       [](json& d) {
         d["snapshot_tokens"] = {4, 4};
       }},
      {Rule::kStateTokens, "plan tensor 5: tokens [0,2) of a state component must be [0,1)", Kind::kPlan,
       [](json& d) { d["tensors"][5]["tokens"] = {0, 2}; }},
      {Rule::kCycleBounds, "plan token set 0: blocks 2 of 1 tokens do not fit a cycle of 2 blocks", Kind::kPlan,
       [](json& d) {
         d["token_sets"][0]["cycle"] = {{"block_tokens", 1}, {"cycle_blocks", 2}, {"blocks", {{2, 3}}}};
       }},
      {Rule::kTokenAlignment, "plan edge 0: tokens within [0,10) cut a row of 4 tokens (component key)", Kind::kPlan,
       [](json& d) {
         d["tensors"][0]["component"]["token_axis"]["tokens_per_row"] = 4;
         d["tensors"][0]["tokens"] = {0, 12};
       }},
  };
  return table;
}

const std::vector<BrokenText>& broken_texts() {
  static const std::vector<BrokenText> table = {
      {Rule::kJsonSyntax, "document: line 1, column 1: syntax error while parsing value - unexpected end of input", ""},
      {Rule::kJsonSyntax, "line 1, column 5: syntax error while parsing object separator - unexpected '}'", "{\"a\"}"},
      {Rule::kJsonSyntax, "line 1, column 4: syntax error while parsing value - unexpected '{'; expected end of input",
       "{} {}"},
      {Rule::kJsonSyntax, "line 1, column 12: syntax error while parsing value - invalid literal", "{\"version\":NaN}"},
      {Rule::kJsonSyntax, "line 1, column 14: syntax error while parsing object - invalid literal",
       "{\"version\":1 /* one */}"},
      {Rule::kJsonSyntax, "line 1, column 14: syntax error while parsing object key - unexpected '}'",
       "{\"version\":1,}"},
      {Rule::kJsonSyntax, "line 1, column 10: syntax error while parsing value - invalid string: ill-formed UTF-8 byte",
       "{\"name\":\"\xff\"}"},
      {Rule::kJsonSyntax, "line 1, column 16: syntax error while parsing value - invalid string: surrogate",
       "{\"name\":\"\\ud800\"}"},
      {Rule::kJsonSyntax, "line 1, column 13: syntax error while parsing object - unexpected number literal",
       "{\"version\":01}"},
      {Rule::kJsonSyntax, "document: number overflow parsing '1e400'", "{\"version\":1e400}"},
      {Rule::kJsonSyntax, "document: byte 3 of 4 is NUL", std::string("{}\0x", 4)},
      {Rule::kJsonSyntax, "document: line 1, column 1: a byte order mark", "\xef\xbb\xbf{}"},
      {Rule::kFieldInteger, "document version: -0 is not an integer from 0 to 18446744073709551615",
       "{\"schema\":\"crossdock.topology\",\"version\":-0}"},
      {Rule::kFieldInteger, "document version: 18446744073709551616 is not an integer from 0 to",
       "{\"schema\":\"crossdock.topology\",\"version\":18446744073709551616}"},
      {Rule::kJsonBytes, "document: 12 bytes, more than the limit of 11", "{\"a\":[1,2]} ", {.bytes_max = 11}},
      {Rule::kJsonDepth, "document a[0]: nested deeper than the limit of 3", "{\"a\":[[[1]]]}", {.depth_max = 3}},
      {Rule::kJsonValues, "document a: more than the limit of 3 values", "{\"a\":[1,2,3]}", {.values_max = 3}},
      {Rule::kFieldRepeated, "document a[0]: field 'b' is listed twice", "{\"a\":[{\"b\":1,\"c\":2,\"b\":3}]}"},
      {Rule::kFieldType, "document: must be an object, not an array", "[]"},
  };
  return table;
}

// The example's binding and a changed copy of it, in one instance.
void check_with_twin(const std::function<void(RuntimeBinding&)>& change, Diagnostics& diagnostics) {
  const Valid<PlacementManifest> placement = example_placement();
  const BindingContext context(placement);
  RuntimeBinding changed = *example_binding();
  change(changed);
  const Valid<RuntimeBinding> binding = example_binding();
  const Valid<RuntimeBinding> twin = valid_or_die(changed);
  check_instances(std::vector<BoundParticipant>{{&binding, &context}, {&twin, &context}}, diagnostics);
}

// A changed copy of the example's plan against its two documents.
void prove_changed(const std::function<void(TransferPlan&)>& change, Diagnostics& diagnostics) {
  const Upload upload;
  TransferPlan plan = *upload.plan();
  change(plan);
  const std::optional<Valid<TransferPlan>> changed = Valid<TransferPlan>::make(std::move(plan), diagnostics);
  ASSERT_TRUE(changed);
  verify_plan(*changed, upload.source_side, upload.target_side, VerifyLimits(), diagnostics);
}

// What two documents, a plan and its documents, or a document of another project can break.
const std::vector<BrokenOther>& broken_others() {
  static const std::vector<BrokenOther> table = {
      {Rule::kBindingIdentity, "binding 'move-17' of 'p0-t0': placement_digest 0000",
       [](Diagnostics& diagnostics) {
         RuntimeBinding binding = *example_binding();
         binding.placement_digest = Sha256Digest();
         check_binding(valid_or_die(binding), example_placement(), example_snapshot(), diagnostics);
       }},
      {Rule::kAxisOrder,
       "view 1 (component value, layers 0-3, tokens [0,10), heads [0,2)): row stride 32 and head stride 16 are of nhd "
       "pages, the placement states hnd",
       [](Diagnostics& diagnostics) {
         const Valid<CacheSchema> schema = attention(4, 2);
         PlacementManifest stated = *placed(schema, {});
         stated.paging = Paging{4, AxisOrder::kHnd};
         const Valid<PlacementManifest> placement = valid_or_die(std::move(stated));
         const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, 10));
         PoolRequest pool;
         pool.operation = OperationId("op");
         pool.page_tokens = 4;
         const auto binding = pool_binding(placement, digest(placement), placement->parts.front().participant,
                                           Range(0, 10), digest(snapshot), pool, diagnostics);
         check_binding(*binding, placement, snapshot, diagnostics);
       }},
      {Rule::kBindingIdentity, "placement 'decode' has no participant 'p7'",
       [](Diagnostics& diagnostics) {
         RuntimeBinding binding = *example_binding();
         binding.participant = ParticipantId("p7");
         check_binding(valid_or_die(binding), example_placement(), example_snapshot(), diagnostics);
       }},
      {Rule::kBindingIdentity, "tokens [0,9) are not the snapshot's [0,10)",
       [](Diagnostics& diagnostics) {
         RuntimeBinding binding = *example_binding();
         binding.tokens = Range(0, 9);
         check_binding(valid_or_die(binding), example_placement(), example_snapshot(), diagnostics);
       }},
      {Rule::kViewPages, "tokens [0,10) need 3 pages, page table 'pages' has 2",
       [](Diagnostics& diagnostics) {
         RuntimeBinding binding = *example_binding();
         binding.page_tables[0].slots.pop_back();
         check_binding(valid_or_die(binding), example_placement(), example_snapshot(), diagnostics);
       }},
      {Rule::kInstanceAgreement, "region 'pool': binding 'move-17' of 'p0-t0' describes it differently",
       [](Diagnostics& diagnostics) {
         check_with_twin([](RuntimeBinding& twin) { twin.regions[0].epoch = 8; }, diagnostics);
       }},
      {Rule::kInstanceAgreement, "generation 4 of instance 'decode-worker-0', in binding 'move-17' of 'p0-t0' 3",
       [](Diagnostics& diagnostics) {
         check_with_twin([](RuntimeBinding& twin) { twin.generation = 4; }, diagnostics);
       }},
      {Rule::kInstanceAgreement, "device 'gpu0': binding 'move-17' of 'p0-t0' describes it differently",
       [](Diagnostics& diagnostics) {
         check_with_twin([](RuntimeBinding& twin) { twin.devices[0].kind = "host"; }, diagnostics);
       }},
      {Rule::kRegionsOverlap, "instance 'decode-worker-0' region 'pool' of binding 'move-17' of 'p0-t0': addresses",
       [](Diagnostics& diagnostics) {
         check_with_twin(
             [](RuntimeBinding& twin) {
               twin.regions[0].id = RegionId("pond");
               for (View& view : twin.views) view.region = RegionId("pond");
             },
             diagnostics);
       }},
      {Rule::kViewsOverlap,
       "instance 'decode-worker-0' region 'pool': binding 'move-17' of 'p0-t0' view 0 and binding 'move-17' of "
       "'p0-t0' view 0 share bytes",
       [](Diagnostics& diagnostics) { check_with_twin([](RuntimeBinding&) {}, diagnostics); }},
      {Rule::kInstanceEndpoint,
       "endpoint '10.0.0.1:4711' belongs to instance 'imposter', in binding 'move-17' of 'p0-t0' to 'decode-worker-0'",
       [](Diagnostics& diagnostics) {
         check_with_twin([](RuntimeBinding& twin) { twin.instance = InstanceId("imposter"); }, diagnostics);
       }},
      {Rule::kConfigArchitecture, "architecture",
       [](Diagnostics& diagnostics) { read_hf_config(R"({"architectures":["NoSuchModel"]})", {}, {}, diagnostics); }},
      {Rule::kConfigField, "num_hidden_layers",
       [](Diagnostics& diagnostics) {
         read_hf_config(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64})", {}, {},
                        diagnostics);
       }},
      {Rule::kPartition,
       "2 heads (component key) cannot be shared out over tp 3: neither divides the other; state the heads of each "
       "rank",
       [](Diagnostics& diagnostics) {
         PartitionRequest request;
         request.name = "odd";
         request.tp = 3;
         request.layer_count = 4;
         partition(example_cache_schema(), request, diagnostics);
       }},
      {Rule::kForeignForm, "",
       [](Diagnostics& diagnostics) { mooncake::write_placement(example_placement(), diagnostics); }},
      {Rule::kForeignDigest, "",
       [](Diagnostics& diagnostics) {
         const std::string id(64, '0');
         const json topology = {
             {"dp_size", 1},
             {"pp_size", 1},
             {"tp_size", 1},
             {"topology_id", "sha256:" + id},
             {"participants", {{{"participant_id", "a"}, {"rank", {{"dp", 0}, {"pp", 0}, {"tp", 0}}}}}}};
         const json descriptor = {{"dtype", "bfloat16"}, {"global_layer_ids", {0}}, {"itemsize", 2},
                                  {"key_head_dim", 8},   {"layout", "nhd"},         {"page_size", 4},
                                  {"total_kv_heads", 1}, {"value_head_dim", 8}};
         const json one_part = {{"descriptor", descriptor},
                                {"head_count", 1},
                                {"head_start", 0},
                                {"layer_ids", {0}},
                                {"participant_id", "a"},
                                {"placement_set_id", "s"},
                                {"rank", {{"dp", 0}, {"pp", 0}, {"tp", 0}}},
                                {"replica_count", 1},
                                {"replica_ordinal", 0},
                                {"resource_id", "r"},
                                {"revision", "1"},
                                {"topology_id", "sha256:" + id}};
         const json placement = {{"descriptor", descriptor},       {"parts", {one_part}},     {"placement_digest", id},
                                 {"placement_id", "sha256:" + id}, {"placement_set_id", "s"}, {"resource_id", "r"},
                                 {"resource_kind", "kv_cache"},    {"revision", "1"},         {"topology", topology}};
         mooncake::read_placement(placement.dump(), {}, diagnostics);
       }},
      {Rule::kWorkLimit, "comparing token ownerships needs more than 1048576 intervals",
       [](Diagnostics& diagnostics) {
         PlacementManifest placement = *example_placement();
         // Two cycles without a common measure below 2^40 tokens.
         placement.parts[0].owns[0].tokens = CyclicTokens{1, 1048573, IntervalSet{Range(0, 1)}};
         placement.parts[0].owns.push_back(placement.parts[0].owns[0]);
         placement.parts[0].owns[1].tokens = CyclicTokens{1, 1048571, IntervalSet{Range(1, 1048571)}};
         (void)Valid<PlacementManifest>::make(placement, diagnostics);
       }},
      {Rule::kPlanSchema, "component key of layers 0-1: head_dim 8 in the source and 16 in the target",
       [](Diagnostics& diagnostics) {
         const Upload upload;
         StoreLayout layout = *example_store_layout();
         layout.cache_schema.groups[0].components[0].head_dim = 16;
         const Valid<StoreLayout> target = valid_or_die(layout);
         make_plan(upload.source_side, PlanSide(target, digest(target)), upload.options, PlanLimits(), diagnostics);
       }},
      {Rule::kPlanLimit, "more than 11 edges",
       [](Diagnostics& diagnostics) {
         const Upload upload;
         PlanLimits limits;
         limits.edge_count_max = 11;
         make_plan(upload.source_side, upload.target_side, upload.options, limits, diagnostics);
       }},
      {Rule::kPlanGap, "target 'window': layers 2 component value heads [1,2) tokens [4,10): no edge brings them",
       [](Diagnostics& diagnostics) { prove_changed([](TransferPlan& plan) { plan.edges.pop_back(); }, diagnostics); }},
      {Rule::kPlanOverlap,
       "target 'window': layers 2 component value heads [0,1) tokens [4,10): edge 9 from 'p1-t0' and edge 11 from "
       "'p1-t1' bring them",
       [](Diagnostics& diagnostics) {
         prove_changed([](TransferPlan& plan) { plan.edges.back().heads = Range(0, 2); }, diagnostics);
       }},
      {Rule::kPlanSource, "edge 8 from 'p0-t0' takes them, and that source does not own them",
       [](Diagnostics& diagnostics) {
         prove_changed([](TransferPlan& plan) { plan.edges.back().source = 0; }, diagnostics);
       }},
      {Rule::kPlanTarget,
       "target 'full-h0': layers 2 component value heads [1,2) tokens [4,10): edge 3 from 'p1-t1' brings them, and the "
       "target does not require them",
       [](Diagnostics& diagnostics) {
         prove_changed([](TransferPlan& plan) { plan.edges.back().target = 0; }, diagnostics);
       }},
  };
  return table;
}

std::string all_lines(const Diagnostics& diagnostics) {
  std::string lines;
  for (const Diagnostic& diagnostic : diagnostics.kept()) lines += diagnostic.to_line() + "\n";
  return lines;
}

void expect_diagnostic(const Diagnostics& diagnostics, Rule rule, const std::string& line) {
  const std::string tail = " [" + std::string(rule_name(rule)) + "]";
  for (const Diagnostic& diagnostic : diagnostics.kept())
    if (diagnostic.rule == rule && diagnostic.to_line().find(line) != std::string::npos &&
        diagnostic.to_line().ends_with(tail))
      return;
  ADD_FAILURE() << "no diagnostic like '" << line << "'" << tail << " among:\n" << all_lines(diagnostics);
}

TEST(Rules, EachExampleIsValidAsItStands) {
  for (const Kind kind : {Kind::kSchema, Kind::kTopology, Kind::kPlacement, Kind::kSnapshot, Kind::kBinding,
                          Kind::kLayout, Kind::kManifest, Kind::kPlan}) {
    Diagnostics diagnostics;
    EXPECT_TRUE(is_read(example(kind), kind, diagnostics)) << all_lines(diagnostics);
  }
  Diagnostics diagnostics;
  check_binding(example_binding(), example_placement(), example_snapshot(), diagnostics);
  check_binding(example_binding_without_pages(), example_placement(), example_snapshot(), diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << all_lines(diagnostics);
}

TEST(Rules, EachBrokenDocumentGetsItsLine) {
  for (const Broken& broken : broken_documents()) {
    SCOPED_TRACE(broken.line);
    json document = example(broken.kind);
    broken.mutate(document);
    Diagnostics diagnostics;
    EXPECT_FALSE(is_read(document, broken.kind, diagnostics));
    expect_diagnostic(diagnostics, broken.rule, broken.line);
  }
}

TEST(Rules, EachBrokenTextGetsItsLine) {
  for (const BrokenText& broken : broken_texts()) {
    SCOPED_TRACE(broken.text);
    Diagnostics diagnostics;
    EXPECT_FALSE(read_any_document(broken.text, broken.limits, diagnostics));
    expect_diagnostic(diagnostics, broken.rule, broken.line);
  }
}

TEST(Rules, EachBrokenRelationGetsItsLine) {
  for (const BrokenOther& broken : broken_others()) {
    SCOPED_TRACE(broken.line);
    Diagnostics diagnostics;
    broken.run(diagnostics);
    expect_diagnostic(diagnostics, broken.rule, broken.line);
  }
}

TEST(Rules, NoRuleIsWithoutATestThatBreaksIt) {
  std::set<Rule> tested;
  for (const Broken& broken : broken_documents()) tested.insert(broken.rule);
  for (const BrokenText& broken : broken_texts()) tested.insert(broken.rule);
  for (const BrokenOther& broken : broken_others()) tested.insert(broken.rule);
  for (const RuleInfo& info : rule_table()) EXPECT_TRUE(tested.contains(info.rule)) << info.name;
}

TEST(Rules, RuleNamesDiffer) {
  std::set<std::string_view> names;
  for (const RuleInfo& info : rule_table()) EXPECT_TRUE(names.insert(info.name).second) << info.name;
}

}  // namespace
}  // namespace crossdock::testing
