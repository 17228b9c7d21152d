// Plans against their two documents: right ones are accepted, and each way of being wrong is told with its place. The
// definition that they are compared with looks at each element.
#include "planner/kv/verify_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/text.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive_plan.h"

namespace crossdock {

inline void PrintTo(const PlanDiagnostic& diagnostic, std::ostream* out) {
  *out << fmt::format("kind {} tensor {} target {} layers {} heads {} tokens {} edges {}",
                      static_cast<int>(diagnostic.kind), diagnostic.tensor, diagnostic.target,
                      range_text(diagnostic.layers), range_text(diagnostic.heads), range_text(diagnostic.tokens),
                      fmt::join(diagnostic.edges, ","));
}

}  // namespace crossdock

namespace crossdock::testing {
namespace {

// ---- Documents ----

CacheSchema keys_and_values(uint64_t layer_count = 4, uint64_t head_count = 4) {
  return *attention(layer_count, head_count);
}

// ---- Checking ----

Valid<TransferPlan> valid_plan(TransferPlan plan) {
  Diagnostics diagnostics;
  auto valid = Valid<TransferPlan>::make(std::move(plan), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.kept()) ADD_FAILURE() << diagnostic.to_line();
  return *valid;
}

struct Verdict {
  PlanProof proof;
  std::vector<std::string> lines;
  std::vector<Rule> rules;  // one for each line
};

Verdict verify(const TransferPlan& plan, const PlanSide& source, const PlanSide& target,
               const VerifyLimits& limits = VerifyLimits()) {
  Diagnostics diagnostics("plan");
  Verdict verdict{verify_plan(valid_plan(plan), source, target, limits, diagnostics), {}, {}};
  for (const Diagnostic& diagnostic : diagnostics.kept()) {
    verdict.lines.push_back(diagnostic.to_line());
    verdict.rules.push_back(diagnostic.rule);
  }
  return verdict;
}

Verdict verify(const TransferPlan& plan, const SidePair& pair, const VerifyLimits& limits = VerifyLimits()) {
  return verify(plan, pair.source_side, pair.target_side, limits);
}

using Lines = std::vector<std::string>;

using Rules = std::vector<Rule>;

// ---- Plans written out: two tensor-parallel sources, two pipeline stages as targets ----

struct Stages : SidePair {
  // Sources p0-t0 (heads 0-1) and p0-t1 (heads 2-3) of layers 0-3; targets p0-t0 (layers 0-1) and p1-t0 (layers 2-3)
  // with all heads.
  explicit Stages(const CacheSchema& schema = keys_and_values()) : SidePair(schema, {.tp = 2}, {.pp = 2}) {}

  // Edges 0-3 to p0-t0, 4-7 to p1-t0: from p0-t0 (key, value), then from p0-t1. Tokens [0,16) of all.
  TransferPlan plan() const {
    TransferPlan plan;
    plan.source_digest = source_side.digest();
    plan.target_digest = target_side.digest();
    plan.tokens = Range(0, 16);
    plan.sources = {PlanEnd("p0-t0"), PlanEnd("p0-t1")};
    plan.targets = {PlanEnd("p0-t0"), PlanEnd("p1-t0")};
    const std::vector<Component>& components = target->cache_schema.groups[0].components;
    for (const Component& component : components)
      plan.tensors.push_back(PlanTensor{component, {Range(0, 4)}, LiveTokens::all(), Range(0, 16)});
    plan.layer_sets = {{Range(0, 2)}, {Range(2, 4)}};
    plan.token_sets = {{{Range(0, 16)}, std::nullopt}};
    for (uint32_t stage = 0; stage < 2; ++stage)
      for (uint32_t from = 0; from < 2; ++from)
        for (uint32_t tensor = 0; tensor < 2; ++tensor)
          plan.edges.push_back(Edge{stage, from, tensor, stage, Range(2 * from, 2 * from + 2), 0});
    return plan;
  }
};

TEST(VerifyPlan, APlanThatBringsEachElementOnceIsAccepted) {
  const Stages stages;
  const Verdict verdict = verify(stages.plan(), stages);
  EXPECT_EQ(verdict.lines, Lines());
  EXPECT_TRUE(verdict.proof.diagnostics.empty());
  EXPECT_TRUE(verdict.proof.complete);
  EXPECT_EQ(verdict.proof.diagnostic_count, 0u);
  EXPECT_EQ(verdict.proof.cells, 8u);  // 2 targets x 2 tensors x heads [0,2) and [2,4)
}

TEST(VerifyPlan, AMissingEdgeIsAGapWithItsCoordinates) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges.erase(plan.edges.begin() + 7);
  const Verdict verdict = verify(plan, stages);
  const PlanDiagnostic gap{Kind::kGap, 1, 1, Range(2, 4), Range(2, 4), Range(0, 16), {}};
  EXPECT_EQ(verdict.proof.diagnostics, std::vector<PlanDiagnostic>{gap});
  EXPECT_EQ(verdict.lines, Lines{"plan target 'p1-t0': layers 2-3 component value heads [2,4) tokens [0,16): no edge "
                                 "brings them [plan-gap]"});
}

TEST(VerifyPlan, AnEdgeThatIsTooShortLeavesAGapInLayersHeadsOrTokens) {
  const Stages stages;
  TransferPlan layers = stages.plan();
  layers.edges[0].layer_set = add_layer_set(layers, {Range(1, 2)});
  EXPECT_EQ(verify(layers, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 2), Range(0, 16), {}}}));
  TransferPlan heads = stages.plan();
  heads.edges[0].heads = Range(0, 1);
  EXPECT_EQ(verify(heads, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 2), Range(1, 2), Range(0, 16), {}}}));
  TransferPlan tokens = stages.plan();
  tokens.edges[0].token_set = add_token_set(tokens, {{Range(0, 4), Range(5, 9), Range(11, 16)}, std::nullopt});
  EXPECT_EQ(verify(tokens, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 2), Range(0, 2), Range(4, 5), {}}}));
}

TEST(VerifyPlan, TwoEdgesForOneElementAreAnOverlapThatNamesBoth) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges[1].heads = Range(0, 3);  // the third head is of the other source, which brings it too
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kOverlap, 1, 0, Range(0, 2), Range(2, 3), Range(0, 16), {1, 3}},
                                         {Kind::kNotSource, 1, 0, Range(0, 2), Range(2, 3), Range(0, 16), {1}}}));
  EXPECT_EQ(verdict.lines,
            (Lines{"plan target 'p0-t0': layers 0-1 component value heads [2,3) tokens [0,16): edge 1 from 'p0-t0' and "
                   "edge 3 from 'p0-t1' bring them [plan-overlap]",
                   "plan target 'p0-t0': layers 0-1 component value heads [2,3) tokens [0,16): edge 1 from 'p0-t0' "
                   "takes them, and that source does not own them [plan-source]"}));
}

TEST(VerifyPlan, AnEdgeOutsideThePartOfItsTargetIsRefused) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges[4].layer_set = add_layer_set(plan, {Range(1, 4)});  // p1-t0 has layers 2-3
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotTarget, 0, 1, Range(1, 2), Range(0, 2), Range(0, 16), {4}}}));
  EXPECT_EQ(verdict.lines, Lines{"plan target 'p1-t0': layers 1 component key heads [0,2) tokens [0,16): edge 4 from "
                                 "'p0-t0' brings them, and the target does not require them [plan-target]"});
}

TEST(VerifyPlan, AWriterThatDoesNotOwnWhatItSendsIsRefused) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges[0].source = 1;  // with the heads of source 0; now the second key edge to p0-t0
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanSource});
  ASSERT_EQ(verdict.proof.diagnostics.size(), 1u);
  const PlanDiagnostic& diagnostic = verdict.proof.diagnostics[0];
  EXPECT_EQ(std::tuple(diagnostic.kind, diagnostic.tensor, diagnostic.target), std::tuple(Kind::kNotSource, 0u, 0u));
  EXPECT_EQ(std::tuple(diagnostic.layers, diagnostic.heads, diagnostic.tokens),
            std::tuple(Range(0, 2), Range(0, 2), Range(0, 16)));
}

TEST(VerifyPlan, AnEdgeMayTakeFromSeveralOwnershipsOfItsSource) {
  constexpr uint64_t kHeads = 12;
  const CacheSchema schema{{group({Range(0, 1)}, {rows("key", 2 * kHeads)})}};
  PlacementManifest source = *placed(schema, {.tp = 2});
  for (Part& part : source.parts) {  // one ownership for each head
    const Ownership whole = part.owns[0];
    part.owns.assign(kHeads, whole);
    for (uint64_t i = 0; i < kHeads; ++i) {
      const uint64_t head = whole.heads.hull().begin() + i;
      part.owns[i].heads = IntervalSet{Range(head, head + 1)};
    }
  }
  const SidePair pair(valid_or_die(source), placed(schema, {}));
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.sources = {PlanEnd("p0-t0"), PlanEnd("p0-t1")};
  plan.targets = {PlanEnd("p0-t0")};
  plan.tensors = naive_tensors(schema, pair.target_side, {});
  plan.layer_sets = {{Range(0, 1)}};
  plan.token_sets = {{{Range::all()}, std::nullopt}};
  plan.edges = {{0, 0, 0, 0, Range(0, kHeads), 0},
                {0, 1, 0, 0, Range(kHeads, 2 * kHeads - 1), 0},
                {0, 1, 0, 0, Range(2 * kHeads - 1, 2 * kHeads), 0}};
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.edges[0].heads = Range(0, kHeads + 1);
  plan.edges[1].heads = Range(kHeads + 1, 2 * kHeads - 1);
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{
                {Kind::kNotSource, 0, 0, Range(0, 1), Range(kHeads, kHeads + 1), Range::all(), {0}}}));
}

TEST(VerifyPlan, APlanThatBringsNothingIsEmptyAndAllIsAGap) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges.clear();
  plan.sources.clear();
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.rules, (Rules{Rule::kPlanEmpty, Rule::kPlanGap, Rule::kPlanGap, Rule::kPlanGap, Rule::kPlanGap}));
  EXPECT_EQ(verdict.proof.diagnostics[3],
            (PlanDiagnostic{Kind::kGap, 1, 1, Range(2, 4), Range(0, 4), Range(0, 16), {}}));
}

TEST(VerifyPlan, APlanWithoutEdgesIsRightWhenNothingIsRequired) {
  // A target that owns nothing: the second stage of a model of one layer.
  const SidePair pair(keys_and_values(2), {}, {.pp = 2, .layers_per_stage = {2, 0}});
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.targets = {PlanEnd("p1-t0")};
  plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
  EXPECT_EQ(verify(plan, pair).lines, Lines());
}

TEST(VerifyPlan, OnlyTheTargetsOfThePlanRequireSomething) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.targets.pop_back();
  plan.edges.resize(4);
  EXPECT_EQ(verify(plan, stages).lines, Lines());
}

TEST(VerifyPlan, APlanForOtherDocumentsIsRefused) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges.clear();  // nothing is said about gaps against another document
  plan.sources.clear();
  plan.source_digest = sha256("another");
  Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanIdentity});
  EXPECT_EQ(verdict.lines[0], fmt::format("plan source_digest: {} is not that of placement 'p', {} [plan-identity]",
                                          sha256("another").hex(), sha256("source").hex()));
  plan.source_digest = stages.source_side.digest();
  plan.target_digest = sha256("another");
  EXPECT_EQ(verify(plan, stages).rules, Rules{Rule::kPlanIdentity});
}

TEST(VerifyPlan, TheKindOfAPlanFitsItsSides) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.kind = PlanKind::kUpload;
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.lines,
            Lines{"plan kind: upload does not lead from placement 'p' to placement 'p' [plan-identity]"});
  plan.kind = PlanKind::kRestore;
  EXPECT_EQ(verify(plan, stages).rules, Rules{Rule::kPlanIdentity});
}

TEST(VerifyPlan, BothDocumentsAreAboutOneResource) {
  const Stages stages;
  PlacementManifest other = *stages.target;
  other.resource = ResourceId("another");
  const SidePair pair(stages.source, valid_or_die(other));
  EXPECT_EQ(verify(stages.plan(), pair).lines,
            Lines{"plan: placement 'p' is about resource 'r', placement 'p' about 'another' [plan-identity]"});
}

TEST(VerifyPlan, SourcesAndTargetsAreParticipantsOfTheirDocuments) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.sources[1] = PlanEnd("p0-t9");
  plan.targets[1] = PlanEnd("p9-t0");
  EXPECT_EQ(verify(plan, stages).lines,
            (Lines{"plan source 'p0-t9': placement 'p' has no such participant or part [plan-participant]",
                   "plan target 'p9-t0': placement 'p' has no such participant or part [plan-participant]"}));
}

TEST(VerifyPlan, ATensorHasTheDimsWindowLayersAndTokensOfTheDocuments) {
  const Stages stages;
  const auto line_after = [&](auto change) {
    TransferPlan plan = stages.plan();
    change(plan.tensors[1]);
    const Verdict verdict = verify(plan, stages);
    EXPECT_EQ(verdict.proof.cells, 0u);
    return verdict.lines.size() == 1 ? verdict.lines[0] : fmt::format("{} lines", verdict.lines.size());
  };
  const std::string place = "plan layers 0-3 component value: ";
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.head_dim = 16; }),
            place + "head_dim 16 in the plan, 8 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.head_count = 5; }),
            place + "head_count 5 in the plan, 4 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.item_bytes = 4; }),
            place + "item_bytes 4 in the plan, 2 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.dtype = "float16"; }),
            place + "dtype float16 in the plan, bfloat16 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.encoding = "packed"; }),
            place + "encoding packed in the plan, plain in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.tokens_per_row = 2; }),
            place + "tokens_per_row 2 in the plan, 1 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.live = LiveTokens::window(8); }),
            place + "live_tokens: the last 8 tokens in the plan, all tokens in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.tokens = Range(0, 17); }),
            place + "tokens [0,17) in the plan, [0,16) follow from its tokens and the documents [plan-tensor]");
}

TEST(VerifyPlan, TensorsAreExactlyThoseOfTheDocuments) {
  const Stages stages;
  TransferPlan missing = stages.plan();
  missing.tensors.pop_back();
  std::erase_if(missing.edges, [](const Edge& edge) { return edge.tensor == 1; });
  EXPECT_EQ(verify(missing, stages).lines,
            Lines{"plan layers 0-3 component value: the plan has no such tensor [plan-tensor]"});
  TransferPlan extra = stages.plan();
  extra.tensors.push_back(PlanTensor{rows("zeta", 4), {Range(0, 4)}, LiveTokens::all(), Range(0, 16)});
  EXPECT_EQ(verify(extra, stages).lines,
            Lines{"plan layers 0-3 component zeta: tensor 2 is none of the two documents [plan-tensor]"});
  TransferPlan other_layers = stages.plan();
  other_layers.tensors[1].layers = IntervalSet{Range(0, 5)};
  EXPECT_EQ(verify(other_layers, stages).rules, (Rules{Rule::kPlanTensor, Rule::kPlanTensor}));
}

TEST(VerifyPlan, DocumentsThatDoNotFitTogetherAreRefusedWithTheField) {
  const auto line_after = [](auto change) {
    CacheSchema schema = keys_and_values();
    change(schema.groups[0]);
    const SidePair pair(placed(schema, {.tp = 2}), placed(keys_and_values(), {.pp = 2}));
    const Verdict verdict = verify(Stages().plan(), pair);
    return verdict.lines.size() == 1 ? verdict.lines[0] : fmt::format("{} lines", verdict.lines.size());
  };
  EXPECT_EQ(line_after([](LayerGroup&) {}), "0 lines");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components.push_back(rows("zeta", 4)); }), "0 lines");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].dtype = "float16"; }),
            "plan layers 0-3 component key: dtype float16 in the source, bfloat16 in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].head_dim = 4; }),
            "plan layers 0-3 component key: head_dim 4 in the source, 8 in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].encoding = "packed"; }),
            "plan layers 0-3 component key: encoding packed in the source, plain in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].head_count = 8; }),
            "plan layers 0-3 component key: head_count 8 in the source, 4 in the target [plan-schema]");
  EXPECT_EQ(
      line_after([](LayerGroup& of) { of.components[0].tokens_per_row = std::nullopt; }),
      "plan layers 0-3 component key: tokens_per_row none (a state) in the source, 1 in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components.pop_back(); }),
            "plan layers 0-3 component value: placement 'p' has no such component [plan-schema]");
  EXPECT_EQ(
      line_after([](LayerGroup& of) {
        of.component_life = {{ComponentName("key"), LiveTokens::window(100)}};
      }),
      "plan layers 0-3 component key: the last 100 tokens live in the source, all tokens in the target [plan-schema]");
}

TEST(VerifyPlan, LayersThatOnlyTheTargetHasAreRefused) {
  const SidePair pair(placed(keys_and_values(2), {.tp = 2}), placed(keys_and_values(4), {.pp = 2}));
  TransferPlan plan = Stages().plan();
  for (PlanTensor& tensor : plan.tensors) tensor.layers = IntervalSet{Range(0, 2)};
  plan.edges.resize(4);
  EXPECT_EQ(verify(plan, pair).lines,
            Lines{"plan layers 2-3: are in placement 'p' and not in placement 'p' [plan-schema]"});
  CacheSchema holed = keys_and_values(4);
  holed.groups[0].layers = IntervalSet{Range(0, 1), Range(2, 4)};
  const SidePair with_hole(placed(holed, {.tp = 2}), placed(keys_and_values(4), {.pp = 2}));
  EXPECT_EQ(verify(Stages().plan(), with_hole).lines[0],
            "plan layers 1: are in placement 'p' and not in placement 'p' [plan-schema]");
}

TEST(VerifyPlan, ASourceMayKeepMoreThanTheWindowOfTheTargetButNotLess) {
  const auto lines_for = [](std::optional<uint64_t> source_window, std::optional<uint64_t> target_window) {
    CacheSchema source = keys_and_values();
    CacheSchema target = keys_and_values();
    source.groups[0].live = life_of(source_window);
    target.groups[0].live = life_of(target_window);
    TransferPlan plan = Stages().plan();
    for (PlanTensor& tensor : plan.tensors) tensor.live = life_of(target_window);
    return verify(plan, SidePair(placed(source, {.tp = 2}), placed(target, {.pp = 2}))).lines;
  };
  EXPECT_EQ(lines_for(std::nullopt, 7), Lines());
  EXPECT_EQ(lines_for(8, 7), Lines());
  EXPECT_EQ(lines_for(7, 7), Lines());
  EXPECT_EQ(
      lines_for(6, 7),
      (Lines{"plan layers 0-3 component key: the last 6 tokens live in the source, the last 7 tokens in the target "
             "[plan-schema]",
             "plan layers 0-3 component value: the last 6 tokens live in the source, the last 7 tokens in the "
             "target [plan-schema]"}));
}

TEST(VerifyPlan, ATargetMayHaveFewerLayersThanTheSource) {
  Rng rng(1);
  CacheSchema some = keys_and_values();
  some.groups[0].layers = IntervalSet{Range(1, 2), Range(3, 4)};
  const SidePair pair(placed(keys_and_values(), {.pp = 2, .tp = 2}), placed(some, {.tp = 4}));
  const TransferPlan plan = naive_plan(pair.source_side, pair.target_side, {}, rng);
  EXPECT_EQ(plan.tensors[0].layers, (IntervalSet{Range(1, 2), Range(3, 4)}));
  EXPECT_EQ(verify(plan, pair).lines, Lines());
}

// ---- Tokens ----

// Source c0 and c1 own blocks of 2 tokens in turn; the target owns all tokens, without end.
struct Interleaved : SidePair {
  explicit Interleaved(const CacheSchema& schema = {{group({Range(0, 1)}, {rows("key", 1)})}})
      : SidePair(schema, {.cp = 2, .cp_block_tokens = 2}, {}) {}

  TransferPlan plan() const {
    TransferPlan plan;
    plan.source_digest = source_side.digest();
    plan.target_digest = target_side.digest();
    plan.sources = {PlanEnd("p0-t0-c0"), PlanEnd("p0-t0-c1")};
    plan.targets = {PlanEnd("p0-t0")};
    plan.tensors = {PlanTensor{rows("key", 1), {Range(0, 1)}, LiveTokens::all(), Range::all()}};
    plan.layer_sets = {{Range(0, 1)}};
    for (uint32_t from = 0; from < 2; ++from) {
      plan.token_sets.push_back(TokenSet{{Range::all()}, CyclicTokens{2, 2, {Range(from, from + 1)}}});
      plan.edges.push_back(Edge{0, from, 0, 0, Range(0, 1), from});
    }
    return plan;
  }
};

TEST(VerifyPlan, CyclesThatShareOutTokensWithoutEndAreAccepted) {
  const Interleaved pair;
  EXPECT_EQ(verify(pair.plan(), pair).lines, Lines());
}

TEST(VerifyPlan, AMissingBlockOfACycleIsAGapAtItsFirstTokens) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  plan.edges.pop_back();
  plan.sources.pop_back();
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 1), Range(2, 4), {}}}));
}

TEST(VerifyPlan, CyclesOfDifferentShapesAreComparedOverTheirCommonPeriod) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  // The same tokens as [2,4) of every 4, and then also [8,9) of every 12.
  plan.token_sets[1].cycle = CyclicTokens{1, 4, {Range(2, 4)}};
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.token_sets[1].cycle = CyclicTokens{1, 12, {Range(2, 4), Range(6, 9), Range(10, 12)}};
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kOverlap, 0, 0, Range(0, 1), Range(0, 1), Range(8, 9), {0, 1}},
                                         {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(8, 9), {1}}}));
}

TEST(VerifyPlan, ADiagnosticFarBehindTheLastStatedBoundaryIsFound) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  const uint64_t far = uint64_t{1} << 60;
  // From `far` on only [2,3) of every 4 tokens.
  plan.token_sets[1].intervals = IntervalSet{Range(0, far)};
  plan.token_sets.push_back(TokenSet{{Range(far, Range::kUnbounded)}, CyclicTokens{1, 4, {Range(2, 3)}}});
  plan.edges.push_back(Edge{0, 1, 0, 0, Range(0, 1), 2});
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 1), Range(far + 3, far + 4), {}}}));
}

TEST(VerifyPlan, AStretchReachesOverBoundariesAndPeriods) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  // Everything from both: twice without end, and not the sources' own.
  for (TokenSet& tokens : plan.token_sets) tokens.cycle.reset();
  plan.token_sets[1].intervals = IntervalSet{Range(5, Range::kUnbounded)};
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{
                {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(2, 4), {0}},
                {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(5, 6), {1}},
                {Kind::kOverlap, 0, 0, Range(0, 1), Range(0, 1), Range(5, Range::kUnbounded), {0, 1}}}));
}

TEST(VerifyPlan, TwoOwnershipsOfOneTargetRequireTheirUnion) {
  const CacheSchema schema{{group({Range(0, 1)}, {rows("key", 1)})}};
  PlacementManifest two_cycles = *placed(schema, {});
  Ownership& owned = two_cycles.parts[0].owns[0];
  owned.tokens = CyclicTokens{2, 2, {Range(0, 1)}};
  Ownership other = owned;
  other.tokens = CyclicTokens{2, 2, {Range(1, 2)}};
  two_cycles.parts[0].owns.push_back(other);
  const SidePair pair(placed(schema, {}), valid_or_die(two_cycles));
  TransferPlan plan = Interleaved().plan();
  plan.sources = {PlanEnd("p0-t0")};
  plan.edges = {{0, 0, 0, 0, Range(0, 1), 0}};
  plan.token_sets = {{{Range::all()}, std::nullopt}};
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.token_sets = {{{Range(0, 5)}, std::nullopt}};
  EXPECT_EQ(
      verify(plan, pair).proof.diagnostics,
      (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 1), Range(5, Range::kUnbounded), {}}}));
}

TEST(VerifyPlan, AZigzagIsAccepted) {
  // Blocks {0,3} and {1,2} of a cycle of four.
  const Interleaved pair;
  PlacementManifest zigzag = *pair.source;
  std::get<CyclicTokens>(zigzag.parts[0].owns[0].tokens) = CyclicTokens{3, 4, {Range(0, 1), Range(3, 4)}};
  std::get<CyclicTokens>(zigzag.parts[1].owns[0].tokens) = CyclicTokens{3, 4, {Range(1, 3)}};
  const SidePair changed(valid_or_die(zigzag), pair.target);
  TransferPlan plan = pair.plan();
  plan.token_sets[0].cycle = CyclicTokens{3, 4, {Range(0, 1), Range(3, 4)}};
  plan.token_sets[1].cycle = CyclicTokens{3, 4, {Range(1, 3)}};
  EXPECT_EQ(verify(plan, changed).lines, Lines());
  std::swap(plan.token_sets[0], plan.token_sets[1]);
  EXPECT_EQ(verify(plan, changed).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(0, 3), {1}},
                                         {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(3, 9), {0}}}));
}

TEST(VerifyPlan, CyclesWithoutAShortCommonPeriodReachTheLimit) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  plan.token_sets[1].cycle = CyclicTokens{1, 1'000'003, {Range(2, 4)}};
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanLimit});
  EXPECT_FALSE(verdict.proof.complete);
  plan.token_sets[1].cycle = CyclicTokens{uint64_t{1} << 40, (uint64_t{1} << 40) - 1, {Range(2, 4)}};
  EXPECT_EQ(verify(plan, pair).rules, Rules{Rule::kPlanLimit});
}

TEST(VerifyPlan, OfAWindowOnlyTheLastTokensAreRequired) {
  CacheSchema schema{{group({Range(0, 1)}, {rows("key", 1), rows("scale", 1)}, 6)}};
  schema.groups[0].components[1].tokens_per_row = 4;
  const SidePair pair(schema, {}, {});
  Rng rng(1);
  const AskedTokens asked{Range(1, 17), Range::all()};
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, asked, rng);
  plan.token_sets.clear();
  plan.edges.clear();
  plan.edges.push_back(Edge{0, 0, 0, 0, Range(0, 1), add_token_set(plan, {{Range(11, 17)}, std::nullopt})});
  plan.edges.push_back(Edge{0, 0, 1, 0, Range(0, 1), add_token_set(plan, {{Range(8, 17)}, std::nullopt})});
  EXPECT_EQ(plan.tensors[0].tokens, Range(11, 17));
  EXPECT_EQ(plan.tensors[1].tokens, Range(8, 17));  // from the row that holds token 11
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.tensors[0].tokens = Range(1, 17);
  EXPECT_EQ(verify(plan, pair).lines,
            Lines{"plan layers 0 component key: tokens [1,17) in the plan, [11,17) follow from its tokens and the "
                  "documents [plan-tensor]"});
}

TEST(VerifyPlan, TheTokensOfAPlanDoNotCutARow) {
  CacheSchema schema{{group({Range(0, 1)}, {rows("scale", 1)})}};
  schema.groups[0].components[0].tokens_per_row = 4;
  const SidePair pair(schema, {}, {});
  Rng rng(1);
  const auto lines_for = [&](AskedTokens asked) {
    return verify(naive_plan(pair.source_side, pair.target_side, asked, rng), pair).lines;
  };
  EXPECT_EQ(lines_for({std::nullopt, Range(4, 16)}), Lines());
  EXPECT_EQ(lines_for({Range(3, 18), Range::all()}), Lines());  // where the snapshot begins and ends
  EXPECT_EQ(lines_for({Range(3, 18), Range(2, 18)}), Lines());
  EXPECT_EQ(lines_for({std::nullopt, Range(4, 18)}),
            Lines{"plan layers 0 component scale: the plan's tokens [4,18) cut a row of 4 tokens [plan-tensor]"});
  EXPECT_EQ(lines_for({Range(3, 18), Range(6, 18)}),
            Lines{"plan layers 0 component scale: the plan's tokens [6,18) cut a row of 4 tokens [plan-tensor]"});
}

TEST(VerifyPlan, AStateIsBroughtOnceWhateverTokensAreAskedFor) {
  const SidePair pair({{group({Range(0, 2)}, {state("recurrent", 2)})}}, {.tp = 2}, {});
  Rng rng(1);
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, {Range(0, 12), Range(4, 8)}, rng);
  EXPECT_EQ(plan.tensors[0].tokens, Range(0, 1));
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.edges.pop_back();
  drop_idle_sources(plan);
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanGap});
  EXPECT_EQ(verdict.proof.diagnostics[0].tokens, Range(0, 1));
}

TEST(VerifyPlan, ASideOwnsTokensOnlyWithinThoseThatItIsAbout) {
  const CacheSchema schema{{group({Range(0, 1)}, {rows("key", 1)})}};
  PlacementManifest short_one = *placed(schema, {});
  short_one.tokens = Range(0, 10);
  TransferPlan plan = Interleaved().plan();
  plan.sources = {PlanEnd("p0-t0")};
  plan.edges.resize(1);
  plan.snapshot_tokens = Range(0, 16);
  plan.tensors[0].tokens = Range(0, 16);
  plan.token_sets[0] = TokenSet{{Range(0, 16)}, std::nullopt};
  const SidePair short_source(valid_or_die(short_one), placed(schema, {}));
  EXPECT_EQ(verify(plan, short_source).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(10, 16), {0}}}));
  const SidePair short_target(placed(schema, {}), valid_or_die(short_one));
  EXPECT_EQ(verify(plan, short_target).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotTarget, 0, 0, Range(0, 1), Range(0, 1), Range(10, 16), {0}}}));
}

// ---- Stores ----

TEST(VerifyPlan, UploadAndRestoreAreProvedLikeALiveMove) {
  Rng rng(1);
  const Valid<PlacementManifest> placement = example_placement();
  const Valid<StoreLayout> layout = example_store_layout();
  const Valid<StoreManifest> manifest = example_store_manifest();
  const PlanSide runtime(placement, sha256("placement"));
  const PlanSide parts(layout, sha256("layout"));
  const PlanSide store(manifest, sha256("manifest"));
  const AskedTokens asked{Range(0, 10), Range::all()};
  const TransferPlan upload = naive_plan(runtime, parts, asked, rng);
  EXPECT_EQ(verify(upload, runtime, parts).lines, Lines());
  EXPECT_EQ(upload.targets.size(), 4u);
  const TransferPlan restore = naive_plan(store, runtime, asked, rng);
  EXPECT_EQ(verify(restore, store, runtime).lines, Lines());
  EXPECT_EQ(restore.sources, std::vector<PlanEnd>{PlanEnd("store")});
  const TransferPlan from_parts = naive_plan(parts, runtime, asked, rng);
  EXPECT_EQ(verify(from_parts, parts, runtime).lines, Lines());

  TransferPlan broken = upload;
  broken.edges.erase(broken.edges.begin());
  drop_idle_sources(broken);
  EXPECT_EQ(verify(broken, runtime, parts).rules, Rules{Rule::kPlanGap});
}

// ---- Reports and limits ----

TEST(VerifyPlan, OneDiagnosticOverNeighbouringSlabsIsOneAndOneLineNamesAllLayers) {
  // Layers 0, 2, 4 have a window. The target's edges are cut at layer 2, the diagnostic is not.
  const CacheSchema schema{{group({Range(0, 1), Range(2, 3), Range(4, 5)}, {rows("key", 2)}, 8),
                            group({Range(1, 2), Range(3, 4), Range(5, 6)}, {rows("key", 2)})}};
  const SidePair pair(schema, {}, {});
  Rng rng(1);
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, {Range(0, 8), Range::all()}, rng);
  plan.edges.clear();
  plan.token_sets = {{{Range(0, 8)}, std::nullopt}};
  const uint32_t first = add_layer_set(plan, {Range(0, 1)});
  const uint32_t others = add_layer_set(plan, {Range(2, 3), Range(4, 5)});
  const uint32_t full = add_layer_set(plan, {Range(1, 2), Range(3, 4), Range(5, 6)});
  plan.edges = {{0, 0, 0, first, Range(0, 1), 0}, {0, 0, 0, others, Range(0, 1), 0}, {0, 0, 1, full, Range(0, 2), 0}};
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(1, 2), Range(0, 8), {}},
                                         {Kind::kGap, 0, 0, Range(2, 3), Range(1, 2), Range(0, 8), {}},
                                         {Kind::kGap, 0, 0, Range(4, 5), Range(1, 2), Range(0, 8), {}}}));
  EXPECT_EQ(verdict.lines, Lines{"plan target 'p0-t0': layers 0,2,4 component key heads [1,2) tokens [0,8): no edge "
                                 "brings them [plan-gap]"});

  const Stages stages;
  TransferPlan cut = stages.plan();
  cut.edges[0].heads = Range(0, 1);
  cut.edges[0].layer_set = add_layer_set(cut, {Range(0, 1)});
  cut.edges.push_back(cut.edges[0]);
  cut.edges.back().layer_set = add_layer_set(cut, {Range(1, 2)});
  EXPECT_EQ(verify(cut, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 2), Range(1, 2), Range(0, 16), {}}}));
}

TEST(VerifyPlan, TheFirstDiagnosticsAreKeptAndAllAreCounted) {
  const SidePair pair(keys_and_values(2, 8), {}, {.pp = 2, .tp = 8});
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.targets = all_ends(pair.target_side);
  plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
  VerifyLimits limits;
  limits.diagnostic_count_max = 5;
  const Verdict verdict = verify(plan, pair, limits);
  EXPECT_EQ(verdict.proof.diagnostic_count, 32u);  // 16 targets x 2 tensors
  EXPECT_TRUE(verdict.proof.complete);
  ASSERT_EQ(verdict.proof.diagnostics.size(), 5u);
  EXPECT_EQ(verdict.proof.diagnostics[4],
            (PlanDiagnostic{Kind::kGap, 0, 2, Range(0, 1), Range(2, 3), Range::all(), {}}));
  EXPECT_EQ(verdict.lines.back(), "plan: 27 more blocks of elements are wrong [plan-gap]");
  limits.diagnostic_count_max = 0;
  const Verdict counted_only = verify(plan, pair, limits);
  EXPECT_EQ(counted_only.proof.diagnostic_count, 32u);
  EXPECT_FALSE(counted_only.lines.empty());
}

TEST(VerifyPlan, StripesAcrossStripesReachTheWorkLimit) {
  constexpr uint64_t kStripes = 200;
  const SidePair pair({{group({Range(0, kStripes)}, {rows("key", kStripes)})}}, {}, {});
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.sources = {PlanEnd("p0-t0")};
  plan.targets = {PlanEnd("p0-t0")};
  plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
  plan.token_sets = {{{Range::all()}, std::nullopt}};
  const uint32_t all_layers = add_layer_set(plan, {Range(0, kStripes)});
  for (uint64_t i = 0; i < kStripes; ++i) {
    plan.edges.push_back(Edge{0, 0, 0, all_layers, Range(i, i + 1), 0});
    plan.edges.push_back(Edge{0, 0, 0, add_layer_set(plan, {Range(i, i + 1)}), Range(0, kStripes), 0});
  }
  VerifyLimits limits;
  limits.work_max = 100'000;
  const Verdict stopped = verify(plan, pair, limits);
  EXPECT_FALSE(stopped.proof.complete);
  EXPECT_EQ(stopped.rules.front(), Rule::kPlanLimit);
  EXPECT_LT(stopped.proof.cells, 100'000u);
  const Verdict whole = verify(plan, pair);
  EXPECT_TRUE(whole.proof.complete);
  EXPECT_EQ(whole.proof.cells, kStripes * kStripes);
}

// Edges in a grid, from the smallest to the largest: the steps grow with their number and no faster.
TEST(VerifyPlan, TheWorkIsLinearInEdgesThatShareTheirBoundaries) {
  for (const uint64_t layer_count : {4u, 16u, 64u}) {
    const SidePair pair(keys_and_values(layer_count, 8), {.pp = layer_count, .tp = 8},
                        {.pp = layer_count / 2, .tp = 4});
    TransferPlan plan;
    plan.source_digest = pair.source_side.digest();
    plan.target_digest = pair.target_side.digest();
    plan.sources = all_ends(pair.source_side);
    plan.targets = all_ends(pair.target_side);
    plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
    plan.token_sets = {{{Range::all()}, std::nullopt}};
    std::vector<uint32_t> layer_sets;
    for (uint64_t layer = 0; layer < layer_count; ++layer)
      layer_sets.push_back(add_layer_set(plan, {Range(layer, layer + 1)}));
    for (uint32_t s = 0; s < plan.sources.size(); ++s)
      for (uint32_t t = 0; t < plan.targets.size(); ++t)
        for (uint32_t tensor = 0; tensor < 2; ++tensor) {
          const Ownership& from = pair.source_side.owners()[s].owns[0];
          const Ownership& to = pair.target_side.owners()[t].owns[0];
          if (to.layers.contains(from.layers) && to.heads.contains(from.heads))
            plan.edges.push_back(Edge{t, s, tensor, layer_sets[from.layers.hull().begin()], from.heads.hull(), 0});
        }
    ASSERT_EQ(plan.edges.size(), layer_count * 8 * 2);
    VerifyLimits limits;
    limits.work_max = plan.edges.size() * 20;
    EXPECT_EQ(verify(plan, pair, limits).lines, Lines()) << layer_count;
  }
}

}  // namespace
}  // namespace crossdock::testing
