// `crossdock plan` and `crossdock verify-plan` as a person uses them. Expected values are worked out by hand: a token
// of one head of one layer of Llama 3.1 70B has 256 bytes of keys and 256 of values.
#include <regex>
#include <set>

#include "tests/cli/run_program.h"

namespace crossdock::testing {
namespace {

class CliPlan : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    place("prefill", {"--tp", "8", "--pp", "2", "--pp-layers", "41,39"});
    place("decode", {"--tp", "4"});
  }
  void place(const std::string& name, std::vector<std::string> split) {
    std::vector<std::string> arguments = {"placement", "--config", kLlama, "-o", name + ".json"};
    arguments.insert(arguments.end(), split.begin(), split.end());
    notice_of(arguments);
  }
  // Bindings of all participants; their paths.
  std::vector<std::string> bind(const std::string& name, const std::string& tokens,
                                std::vector<std::string> more = {}) {
    if (!fs::exists(work("snap.json")))
      notice_of({"snapshot", "--placement", name + ".json", "--tokens", tokens, "-o", "snap.json"});
    std::vector<std::string> arguments = {"bind",      "--placement",       name + ".json", "--snapshot",
                                          "snap.json", "--output-dir",      name,           "--operation",
                                          "move-1",    "--instance-prefix", name + "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run(arguments).exit_code, 0) << run(arguments).err;
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(work(name)))
      paths.push_back(name + "/" + entry.path().filename().string());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  json json_of(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    return json::parse(output_of(arguments));
  }
  std::vector<std::string> live(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"plan", "--source", "prefill.json", "--target", "decode.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(CliPlan, TheTableTellsPairsTotalsAndTheLowerBound) {
  const std::vector<std::string> lines = lines_of(output_of(live()));
  ASSERT_GE(lines.size(), 22u);
  EXPECT_EQ(lines[0], "live plan: placement 'prefill' -> placement 'decode'");
  EXPECT_EQ(lines[1], "source  target  edges  bytes/token");
  EXPECT_EQ(lines[2], "p0-t0   p0-t0       2       20,992");  // 41 layers x 512
  EXPECT_EQ(lines[4], "p1-t0   p0-t0       2       19,968");  // 39 layers x 512
  EXPECT_EQ(lines[19], "16 sources, 4 targets, 16 pairs, 32 edges, 327,680 bytes per token");
  EXPECT_EQ(lines[20], "lower bound: 327,680 bytes per token, what the targets require, each element once");
  EXPECT_EQ(lines[21], "proved: 32 cells compared, each required element is brought once, by one that owns it");
}

TEST_F(CliPlan, WithASnapshotBytesAreExact) {
  notice_of({"snapshot", "--placement", "decode.json", "--tokens", "1000", "-o", "snap.json"});
  const json summary = json_of(live({"--snapshot", "snap.json"}));
  EXPECT_EQ(summary["total"]["bytes"], 327'680'000);
  EXPECT_EQ(summary["lower_bound"]["bytes"], 327'680'000);
  EXPECT_EQ(summary["pairs"].size(), 16u);
  const json part = json_of(live({"--snapshot", "snap.json", "--tokens", "100:350"}));
  EXPECT_EQ(part["total"]["bytes"], 81'920'000);
  EXPECT_EQ(refusal_of(live({"--snapshot", "snap.json", "--tokens", "1000:"})),
            "crossdock: error: --tokens 1000:: the snapshot has tokens [0,1000)\n");
  // A part of what is asked for is not there.
  EXPECT_EQ(refusal_of(live({"--snapshot", "snap.json", "--tokens", "900:1040"})),
            "crossdock: error: --tokens 900:1040: the snapshot has tokens [0,1000)\n");
}

TEST_F(CliPlan, ExpandPrintsAJsonLineForEachLayerSortedAsText) {
  const std::string text = output_of(live({"--expand"}));
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_EQ(lines.size(), 8u * 80 * 2);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  EXPECT_EQ(lines.front(),
            R"({"source":"p0-t0","target":"p0-t0","layer":0,"component":"key","head_start":0,"head_count":1,)"
            R"("token_start":0,"token_count":18446744073709551615,"source_head_offset":0,"target_head_offset":0,)"
            R"("head_dim":128,"itemsize":2})");
  std::set<std::tuple<uint64_t, std::string, uint64_t>> seen;
  for (const std::string& line : lines) {
    const json row = json::parse(line);
    EXPECT_TRUE(seen.emplace(row["layer"], row["component"], row["head_start"]).second);
  }
  const std::vector<std::string> one = lines_of(output_of(live({"--expand", "--participant", "p0-t3"})));
  EXPECT_EQ(one.size(), 2u * 80 * 2);
}

TEST_F(CliPlan, APlanDocumentProvesItself) {
  EXPECT_EQ(run(live({"-o", "plan.json"})).exit_code, 0);
  const std::string proved = output_of({"verify-plan", "plan.json"});
  EXPECT_TRUE(std::regex_match(
      proved, std::regex("plan.json: proved for all 4 targets: 32 edges bring placement 'decode' what it requires, "
                         "each element once \\(32 cells\\), sha256:[0-9a-f]{64}\n")))
      << proved;
  EXPECT_TRUE(json_of({"verify-plan", "plan.json"})["proved"]);
  // The same through a pipe, and without documents.
  EXPECT_EQ(run({"verify-plan", "-"}, read("plan.json")).exit_code, 0);
  EXPECT_EQ(run(live({"--no-documents", "-o", "bare.json"})).exit_code, 0);
  EXPECT_LT(read("bare.json").size(), read("plan.json").size());
  EXPECT_EQ(refusal_of({"verify-plan", "bare.json"}),
            "crossdock: error: the plan does not include its source document: give it with --source\n");
  EXPECT_EQ(run({"verify-plan", "bare.json", "--source", "prefill.json", "--target", "decode.json"}).exit_code, 0);
  const Ended swapped = run({"verify-plan", "bare.json", "--source", "decode.json", "--target", "prefill.json"});
  EXPECT_EQ(swapped.exit_code, 2);
  EXPECT_NE(swapped.out.find("[plan-identity]"), std::string::npos);
}

TEST_F(CliPlan, ValidateTakesPlansAndOtherCommandsSayWhatDoes) {
  EXPECT_EQ(run(live({"-o", "plan.json"})).exit_code, 0);
  EXPECT_EQ(run(live({"-o", "bare.json", "--no-documents"})).exit_code, 0);
  const std::vector<std::string> lines = lines_of(output_of({"validate", "plan.json", "bare.json"}));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("plan.json: valid plan, sha256:")) << lines[0];
  EXPECT_EQ(lines[1], "plan.json: note: compared with the documents that it carries");
  EXPECT_TRUE(lines[3].starts_with("bare.json: note: NOT checked: ")) << lines[3];
  EXPECT_EQ(run({"validate", "bare.json", "--complete"}).exit_code, 2);
  json damaged = json::parse(read("plan.json"));
  damaged["edges"].erase(damaged["edges"].begin());
  write("gap.json", damaged.dump());
  const Ended gap = run({"validate", "gap.json"});
  EXPECT_EQ(gap.exit_code, 2);
  EXPECT_NE(gap.out.find("[plan-gap]"), std::string::npos) << gap.out;
  for (const std::string command : {"inspect", "digest"})
    EXPECT_EQ(refusal_of({command, "plan.json"}),
              "crossdock: error: 'plan.json' is a plan: use 'crossdock verify-plan', which proves it and prints its "
              "digest\n");
}

TEST_F(CliPlan, ADamagedPlanIsToldGapByGap) {
  EXPECT_EQ(run(live({"-o", "plan.json"})).exit_code, 0);
  json plan = json::parse(read("plan.json"));
  // The first edge brings keys of head 0, layers 0-40; the fourth values of head 1.
  plan["edges"].erase(plan["edges"].begin());
  write("gap.json", plan.dump());
  const Ended gap = run({"verify-plan", "gap.json"});
  EXPECT_EQ(gap.exit_code, 2);
  EXPECT_EQ(gap.err, "");
  EXPECT_NE(gap.out.find("layers 0-40 component key heads [0,1)"), std::string::npos) << gap.out;
  EXPECT_NE(gap.out.find("[plan-gap]"), std::string::npos);
  const Ended told = run({"verify-plan", "gap.json", "--json"});
  EXPECT_EQ(told.exit_code, 2);
  const json result = json::parse(told.out);
  EXPECT_FALSE(result["proved"]);
  ASSERT_EQ(result["places"].size(), 1u);
  EXPECT_EQ(
      result["places"][0],
      json::parse(R"({"component":"key","edges":[],"heads":[0,1],"kind":"gap","layers":[0,41],)"
                  R"("stretches":[[0,18446744073709551615]],"target":"p0-t0","tokens":[0,18446744073709551615]})"));
}

TEST_F(CliPlan, AllStretchesOfAGapAreTold) {
  EXPECT_EQ(run(live({"--tokens", "0:24", "--participant", "p0-t0", "-o", "plan.json"})).exit_code, 0);
  json plan = json::parse(read("plan.json"));
  ASSERT_EQ(plan["token_sets"], json::parse(R"([{"intervals":[[0,24]]}])"));
  plan["token_sets"][0]["intervals"] = {{4, 8}, {12, 16}};
  write("gap.json", plan.dump());
  const json result = json::parse(run({"verify-plan", "gap.json", "--json"}).out);
  ASSERT_FALSE(result["places"].empty());
  EXPECT_EQ(result["places"][0]["tokens"], json::parse("[0,4]"));
  EXPECT_EQ(result["places"][0]["stretches"], json::parse("[[0,4],[8,12],[16,24]]"));
  EXPECT_EQ(result["scope"], "1 of 4 targets, only tokens [0,24)");
  EXPECT_EQ(result["target_count"], 1);
  EXPECT_EQ(result["targets_in_document"], 4);
}

TEST_F(CliPlan, APlacementWithAnEndIsUploadedAsFarAsItGoes) {
  json placement = json::parse(read("prefill.json"));
  placement["tokens"] = {0, 4096};
  write("ended.json", placement.dump());
  const json summary = json_of({"plan", "--upload", "--source", "ended.json"});
  EXPECT_EQ(summary["total"]["bytes"], 327'680u * 4096);
}

TEST_F(CliPlan, BytesOfAnotherSnapshotAreNotRestored) {
  write("stored.json", to_json(example_store_manifest()));
  write("small.json", to_json(example_placement()));
  json snapshot = json::parse(to_json(example_snapshot()));
  snapshot["tenant"] = "team-b";
  write("other.json", snapshot.dump());
  EXPECT_EQ(run({"bind", "--placement", "small.json", "--snapshot", "other.json", "--page-size", "4", "--output-dir",
                 "small"})
                .exit_code,
            0);
  EXPECT_EQ(refusal_of({"plan", "--restore", "--manifest", "stored.json", "--target", "small.json", "--steps",
                        "--target-binding", "small"}),
            "stored.json -> small.json: plan: source and target are bound for different snapshots [plan-identity]\n");
}

TEST_F(CliPlan, UploadsAndRestoresGoThroughALayout) {
  const Ended upload = run({"plan", "--upload", "--source", "prefill.json", "--object-order", "hpld", "--page-size",
                            "32", "--layout-output", "layout.json", "-o", "upload.json"});
  EXPECT_EQ(upload.exit_code, 0) << upload.err;
  EXPECT_NE(upload.out.find("16 sources, 16 targets, 16 pairs, 32 edges, 327,680 bytes per token"), std::string::npos)
      << upload.out;
  EXPECT_EQ(run({"verify-plan", "upload.json"}).exit_code, 0);
  const json layout = json::parse(read("layout.json"));
  EXPECT_EQ(layout["object_order"], "hpld");
  EXPECT_EQ(layout["page_tokens"], 32);
  ASSERT_EQ(layout["parts"].size(), 16u);
  EXPECT_EQ(layout["parts"][1]["key"], "l00-40_h1");

  const std::vector<std::string> lines =
      lines_of(output_of({"plan", "--restore", "--layout", "layout.json", "--target", "decode.json", "--expand"}));
  EXPECT_EQ(lines.size(), 8u * 80 * 2);
  // hpld: head, token, layer, dim. Layer 1 of the keys lies one row of dims behind layer 0; values follow the keys of a
  // page of 32 tokens and 41 layers.
  EXPECT_NE(std::find(lines.begin(), lines.end(),
                      R"({"participant":"p0-t0","layer":1,"component":"value","head_start":1,"head_count":1,)"
                      R"("part_index":1,"part_offset":336128,"token_stride_bytes":10496,"head_stride_bytes":335872})"),
            lines.end())
      << lines[1];
  EXPECT_EQ(
      run({"plan", "--restore", "--layout", "layout.json", "--target", "decode.json", "-o", "restore.json"}).exit_code,
      0);
  EXPECT_EQ(run({"verify-plan", "restore.json"}).exit_code, 0);
}

TEST_F(CliPlan, StepsAreCountedAfterBinding) {
  std::vector<std::string> arguments = live({"--snapshot", "snap.json", "--steps"});
  const auto add_all = [&](const std::string& option, const std::vector<std::string>& paths) {
    arguments.push_back(option);
    arguments.insert(arguments.end(), paths.begin(), paths.end());
  };
  add_all("--source-binding", bind("prefill", "100", {"--page-size", "64", "--shuffle", "1"}));
  add_all("--target-binding", bind("decode", "100", {"--page-size", "16", "--shuffle", "2"}));
  const json summary = json_of(arguments);
  const json& total = summary["steps"]["total"];
  EXPECT_EQ(total["bytes"], 32'768'000);
  EXPECT_EQ(total["head_rows"], 100 * 80 * 8 * 2);  // a token of a head of a layer of a component each
  EXPECT_GE(total["steps_planned"], total["steps"]);
  EXPECT_GE(total["ranges"], total["steps"]);
  // A source's row of one head is contiguous with the next one's; a target's is not.
  EXPECT_EQ(total["ranges"], total["head_rows"]);

  std::vector<std::string> costed = arguments;
  for (const char* more : {"--operation-ns", "1000", "--bandwidth", "50000000000", "--staging", "4194304",
                           "--gather-bandwidth", "10000000000"})
    costed.emplace_back(more);
  const json choice = json_of(costed)["steps"]["pairs"][0];
  EXPECT_TRUE(choice["pack"]);  // a microsecond for each 256 bytes is far more than copying them
  EXPECT_EQ(choice["packed"]["staging_bytes"], 2'099'200);  // all that the pair moves: 41 layers x 512 x 100

  std::vector<std::string> expanded = arguments;
  expanded.emplace_back("--expand");
  uint64_t bytes = 0;
  for (const std::string& line : lines_of(output_of(expanded))) bytes += json::parse(line)["bytes"].get<uint64_t>();
  EXPECT_EQ(bytes, 32'768'000u);

  arguments.erase(std::find(arguments.begin(), arguments.end(), "decode/p0-t3.json"));
  const std::string refused = refusal_of(arguments);
  EXPECT_EQ(refused, "prefill.json -> decode.json: plan: target 'p0-t3' has no binding [plan-participant]\n");
}

TEST_F(CliPlan, AStoreManifestIsRestoredAndALayoutIsWritten) {
  // Tokens [0,10): 20 bytes of keys, scales and values in each of two layers and heads; 6 tokens of a window with 32
  // bytes a head; a state of 64 bytes a head.
  const uint64_t bytes = 10 * 2 * 2 * (8 + 4 + 4) + 6 * 2 * 32 + 2 * 64;
  write("stored.json", to_json(example_store_manifest()));
  write("layout.json", to_json(example_store_layout()));
  write("small.json", to_json(example_placement()));
  write("snap.json", to_json(example_snapshot()));
  EXPECT_EQ(
      run({"bind", "--placement", "small.json", "--snapshot", "snap.json", "--page-size", "4", "--output-dir", "small"})
          .exit_code,
      0);
  const std::vector<std::string> restore = {"plan", "--restore", "--manifest", "stored.json", "--target", "small.json"};
  const json logical = json_of(restore);
  EXPECT_EQ(logical["total"]["bytes"], bytes);
  EXPECT_EQ(logical["pairs"].size(), 4u);
  EXPECT_EQ(logical["pairs"][0]["source"], "store");
  std::vector<std::string> bound = restore;
  for (const char* more : {"--steps", "--target-binding", "small"}) bound.emplace_back(more);
  EXPECT_EQ(json_of(bound)["steps"]["total"]["bytes"], bytes);
  const json upload = json_of({"plan", "--upload", "--source", "small.json", "--layout", "layout.json", "--snapshot",
                               "snap.json", "--steps", "--source-binding", "small"});
  EXPECT_EQ(upload["steps"]["total"]["bytes"], bytes);
  // The manifest says which tokens there are; a snapshot of others is refused.
  json other = json::parse(read("snap.json"));
  other["tokens"] = {0, 8};
  write("other.json", other.dump());
  std::vector<std::string> wrong = restore;
  for (const char* more : {"--snapshot", "other.json"}) wrong.emplace_back(more);
  EXPECT_NE(refusal_of(wrong).find("--snapshot other.json differs from the snapshot of --manifest stored.json"),
            std::string::npos);
  fs::create_directory(work("empty"));
  std::vector<std::string> empty = restore;
  for (const char* more : {"--steps", "--target-binding", "empty"}) empty.emplace_back(more);
  EXPECT_EQ(refusal_of(empty), "crossdock: error: the folder 'empty' has no .json file\n");
}

TEST_F(CliPlan, BalancedReadsFromAllReplicas) {
  place("wide", {"--tp", "16"});
  const json plain = json_of({"plan", "--source", "wide.json", "--target", "decode.json"});
  const json balanced =
      json_of({"plan", "--source", "wide.json", "--target", "decode.json", "--selection", "balanced"});
  const auto source_count = [](const json& summary) {
    std::set<std::string> sources;
    for (const json& pair : summary["pairs"]) sources.insert(pair["source"]);
    return sources.size();
  };
  EXPECT_EQ(source_count(plain), 8u);
  EXPECT_EQ(source_count(balanced), 16u);
  EXPECT_EQ(balanced["balance"]["balanced_bytes"], balanced["balance"]["bound_bytes"]);
  EXPECT_EQ(balanced["balance"]["bound_bytes"], 327'680u / 16 * 32'768);
}

TEST_F(CliPlan, WrongUsageIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"plan", "--source", "prefill.json"}, "--source and --target are needed (or --upload, or --restore)"},
      {{"plan", "--upload", "--restore"}, "give either --upload or --restore"},
      {{"plan", "--upload"}, "--upload needs --source, and takes neither --target nor --manifest"},
      {{"plan", "--restore", "--target", "decode.json"},
       "--restore needs --target, and either --manifest or --layout instead of --source"},
      {live({"--layout", "x.json"}), "--manifest and --layout need --restore or --upload"},
      {live({"--steps"}), "--steps needs --source-binding"},
      {live({"--tokens", "7"}), "--tokens '7' is not an interval like 0:4096"},
      {live({"--tokens", "7:7"}), "--tokens '7:7' is not an interval like 0:4096"},
      {live({"--source-dp", "-1"}), "--source-dp '-1' is not a data-parallel rank"},
      {live({"--selection", "balanced", "--nic", "n0"}),
       "--nic 'n0' is not of the form NAME=PARTICIPANT,PARTICIPANT,..."},
      {live({"--nic", "n0=p0-t0"}), "--nic needs --selection balanced"},
      {live({"--object-order", "plhd"}), "--object-order needs --upload without --layout"},
      {live({"--page-size", "16"}), "--page-size needs --upload or --selection by-page"},
      {live({"--bandwidth", "16"}),
       "--operation-ns, --bandwidth, --strided-axes, --staging and --gather-... need --steps"},
      {live({"-o", "-", "--expand"}), "-o - prints the plan alone: leave out --expand, --json and --layout-output -"},
      {live({"--expand", "--json"}), "--expand prints JSON lines already; leave out --json"},
  };
  for (const auto& [arguments, message] : wrong)
    EXPECT_EQ(refusal_of(arguments), "crossdock: error: " + message + "\n");
  EXPECT_EQ(refusal_of({"plan", "--source", "prefill.json", "--target", "nowhere.json"}),
            "crossdock: error: cannot open 'nowhere.json': No such file or directory\n");
  write("snap.json", "{}");
  EXPECT_NE(refusal_of({"plan", "--source", "snap.json", "--target", "decode.json"}).find("[field-missing]"),
            std::string::npos);
}

TEST_F(CliPlan, WhatCannotBePlannedIsRefusedAndWritesNothing) {
  notice_of({"placement", "--config", kModels + "deepseek-v3/config.json", "--tp", "8", "-o", "latent.json"});
  const Ended result = run({"plan", "--source", "latent.json", "--target", "decode.json", "-o", "plan.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("layers 61-79: placement 'decode' has them, placement 'latent' has not [plan-schema]"),
            std::string::npos)
      << result.err;
  EXPECT_FALSE(fs::exists(work("plan.json")));
}

}  // namespace
}  // namespace crossdock::testing
