// Snapshots and bindings made without a runtime: what they say by default, what they take, and where they are written.
#include <map>
#include <set>

#include "tests/cli/run_program.h"

namespace crossdock::testing {
namespace {

using Strings = std::vector<std::string>;

class CliBind : public Cli {
 protected:
  // p.json: Llama 3.1 70B over tp 2 x pp 2; s.json: its first 100 tokens.
  void make_documents(const Strings& more = {}) const {
    Strings placement = {"placement", "--config", kLlama, "--tp", "2", "--pp", "2", "-o", "p.json"};
    placement.insert(placement.end(), more.begin(), more.end());
    notice_of(placement);
    notice_of({"snapshot", "--placement", "p.json", "--tokens", "100", "-o", "s.json"});
  }

  static Strings bind(const Strings& more, const std::string& placement = "p.json") {
    Strings arguments = {"bind", "--placement", placement, "--snapshot", "s.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  json binding_of(const Strings& more, const std::string& participant = "p0-t0") const {
    Strings arguments = bind({"--participant", participant});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(output_of(arguments));
  }

  // Sorted names of the files in a folder.
  Strings files_in(const std::string& folder) const {
    Strings names;
    for (const auto& entry : fs::directory_iterator(work(folder))) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  // Runs `bind` into the folder "out" and lets `validate` check everything that it wrote.
  void expect_all_valid(Strings more) const {
    fs::remove_all(work("out"));
    more.insert(more.end(), {"--output-dir", "out"});
    const Ended made = run(bind(more));
    ASSERT_EQ(made.exit_code, 0) << made.err;
    Strings arguments = {"validate", "p.json", "s.json", "--complete"};
    for (const std::string& name : files_in("out")) arguments.push_back("out/" + name);
    const Ended checked = run(arguments);
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  }
};

// --- snapshot

TEST_F(CliBind, ASnapshotSaysWhatItsPlacementSaysAndTheDefaults) {
  notice_of({"placement", "--config", kLlama, "--resource", "kv:a", "-o", "p.json"});
  notice_of({"schema", "--config", kLlama, "-o", "schema.json"});
  const json snapshot = json::parse(output_of({"snapshot", "--placement", "p.json", "--tokens", "32768"}));
  EXPECT_EQ(snapshot, (json{{"schema", "crossdock.snapshot"},
                            {"version", 1},
                            {"tenant", "default"},
                            {"resource", "kv:a"},
                            {"model_id", "unstated"},
                            {"model_revision", "unstated"},
                            {"salt", ""},
                            {"semantic_fingerprint", "unstated"},
                            {"cache_schema_digest", sha256sum("schema.json")},
                            {"tokens", {0, 32768}},
                            {"token_fingerprint", "unstated"}}));
}

TEST_F(CliBind, ASnapshotSaysWhatItIsTold) {
  notice_of({"placement", "--config", kLlama, "-o", "p.json"});
  const json snapshot =
      json::parse(output_of({"snapshot", "--placement", "p.json", "--tokens", "4096:8192", "--tenant", "team-a",
                             "--model-id", "org/model", "--model-revision", "main", "--adapter", "me@home@v2", "--salt",
                             "pepper", "--semantic-fingerprint", "rope", "--token-fingerprint", "these"}));
  EXPECT_EQ(snapshot["tokens"], json::parse("[4096,8192]"));
  EXPECT_EQ(snapshot["tenant"], "team-a");
  EXPECT_EQ(snapshot["model_id"], "org/model");
  EXPECT_EQ(snapshot["model_revision"], "main");
  EXPECT_EQ(snapshot["adapter"], (json{{"id", "me@home"}, {"revision", "v2"}}));
  EXPECT_EQ(snapshot["salt"], "pepper");
  EXPECT_EQ(snapshot["semantic_fingerprint"], "rope");
  EXPECT_EQ(snapshot["token_fingerprint"], "these");
}

TEST_F(CliBind, PlacementsOfOneModelHaveTheSameSnapshot) {
  notice_of({"placement", "--config", kLlama, "--tp", "8", "-o", "prefill.json"});
  notice_of({"placement", "--config", kLlama, "--tp", "2", "--pp", "4", "--page-size", "16", "-o", "decode.json"});
  EXPECT_EQ(output_of({"snapshot", "--placement", "prefill.json", "--tokens", "7"}),
            output_of({"snapshot", "--placement", "decode.json", "--tokens", "0:7"}));
}

TEST_F(CliBind, WhatIsWrittenIsSaid) {
  notice_of({"placement", "--config", kLlama, "-o", "p.json"});
  const std::string notice = notice_of({"snapshot", "--placement", "p.json", "--tokens", "7", "-o", "s.json"});
  EXPECT_EQ(notice.substr(0, notice.rfind(',')), "crossdock: wrote s.json: snapshot of 'kv:cache', tokens [0,7)");
  EXPECT_EQ(output_of({"digest", "s.json"}), "sha256:" + sha256sum("s.json") + "  s.json\n");
}

TEST_F(CliBind, TokensAndAdaptersThatCannotBeReadAreNamed) {
  notice_of({"placement", "--config", kLlama, "-o", "p.json"});
  const auto refused = [this](const std::string& option, const std::string& text) {
    Strings arguments = {"snapshot", "--placement", "p.json", option, text};
    if (option != "--tokens") arguments.insert(arguments.end(), {"--tokens", "7"});
    const std::string error = refusal_of(arguments);
    EXPECT_TRUE(error.starts_with("crossdock: error: " + option + ": '" + text + "' is n")) << error;
    EXPECT_TRUE(error.ends_with(" ('crossdock snapshot --help' shows how it is used)\n")) << error;
    EXPECT_EQ(lines_of(error).size(), 1u) << error;
  };
  for (const std::string text : {"", "0", "-1", "+1", "010", "0x10", "1.0", "1e3", "many", "18446744073709551616", ":",
                                 "7:", ":7", "7:7", "8:7", "1:2:3", "1,2", " 1", "00:1"})
    refused("--tokens", text);
  for (const std::string text : {"", "@", "lora", "lora@", "@v2"}) refused("--adapter", text);
}

TEST_F(CliBind, ASnapshotLiesWithinTheTokensOfItsPlacement) {
  write_examples();
  json placement = json::parse(read("placement.json"));
  placement["tokens"] = {4, 12};
  write("p.json", placement.dump());
  EXPECT_EQ(refusal_of({"snapshot", "--placement", "p.json", "--tokens", "12"}),
            "crossdock: error: tokens [0,12) exceed the tokens [4,12) of placement 'decode'\n");
  output_of({"snapshot", "--placement", "p.json", "--tokens", "4:12"});
}

TEST_F(CliBind, NamesOfASnapshotHaveTheirRules) {
  notice_of({"placement", "--config", kLlama, "-o", "p.json"});
  const std::string error =
      refusal_of({"snapshot", "--placement", "p.json", "--tokens", "7", "--tenant", std::string(257, 'x')});
  EXPECT_TRUE(error.starts_with("crossdock: error: snapshot of 'kv:cache'")) << error;
  EXPECT_TRUE(error.ends_with("[name]\n")) << error;
  EXPECT_NE(refusal_of({"snapshot", "--tokens", "7"}).find("--placement is required"), std::string::npos);
  EXPECT_NE(refusal_of({"snapshot", "--placement", "p.json"}).find("--tokens is required"), std::string::npos);
}

// --- bind: what is in a binding

TEST_F(CliBind, ABindingHasAPoolForEachComponent) {
  make_documents();
  const json binding = binding_of({}, "p1-t1");
  EXPECT_EQ(binding["schema"], "crossdock.binding");
  EXPECT_EQ(binding["operation"], "synthetic");
  EXPECT_EQ(binding["instance"], "p/p1-t1");
  EXPECT_EQ(binding["placement_digest"], sha256sum("p.json"));
  EXPECT_EQ(binding["snapshot_digest"], sha256sum("s.json"));
  EXPECT_EQ(binding["tokens"], json::parse("[0,100]"));
  EXPECT_EQ(binding["page_tables"],
            json::parse(R"([{"id":"pages-0","page_tokens":16,"slots":[0,1,2,3,4,5,6],"token_begin":0}])"));
  // 40 layers of 7 pages of 16 tokens of 4 heads of 128 items of 2 bytes.
  ASSERT_EQ(binding["regions"].size(), 2u);
  EXPECT_EQ(binding["regions"][0]["id"], "key-g0");
  EXPECT_EQ(binding["regions"][0]["bytes"], 40 * 7 * 16 * 4 * 128 * 2);
  EXPECT_EQ(binding["regions"][1]["id"], "value-g0");
  ASSERT_EQ(binding["views"].size(), 2u);
  EXPECT_EQ(binding["views"][0], json::parse(R"({"component":"key","dims":[0,128],"heads":[4,8],"layers":[40,80],
    "offset_bytes":0,"pages":{"page_stride_bytes":16384,"table":"pages-0"},"region":"key-g0",
    "stride_bytes":{"dim":2,"head":256,"layer":114688,"row":1024},"tokens":[0,100]})"));
}

TEST_F(CliBind, PagesAreThoseOfThePlacementUnlessStated) {
  const auto pages = [this](const Strings& more) {
    const json binding = binding_of(more);
    const json& strides = binding["views"][0]["stride_bytes"];
    return binding["page_tables"][0]["page_tokens"].dump() + (strides["head"] > strides["row"] ? " hnd" : " nhd");
  };
  make_documents();
  EXPECT_EQ(pages({}), "16 nhd");
  EXPECT_EQ(pages({"--page-size", "8", "--axis-order", "hnd"}), "8 hnd");
  make_documents({"--page-size", "64", "--axis-order", "hnd"});
  EXPECT_EQ(pages({}), "64 hnd");
  EXPECT_EQ(pages({"--page-size", "32"}), "32 hnd");
}

TEST_F(CliBind, TheAxisOrderIsThePlacements) {
  make_documents({"--page-size", "16", "--axis-order", "hnd"});
  EXPECT_EQ(refusal_of(bind({"--participant", "p0-t0", "--axis-order", "nhd"})),
            "crossdock: error: --axis-order nhd: placement 'p' states the axis order hnd\n");
  const json right = json::parse(output_of(bind({"--participant", "p0-t0", "--axis-order", "hnd"})));
  json placement = json::parse(read("p.json"));
  placement["paging"]["axis_order"] = "nhd";
  write("p.json", placement.dump());
  json wrong = right;  // the same strides, and a placement that says that they are of other pools
  wrong["placement_digest"] = json::parse(output_of({"digest", "--json", "p.json"})).at(0).at("digest");
  write("b.json", wrong.dump());
  const std::string lines = run({"validate", "b.json", "p.json", "s.json"}).out;
  EXPECT_NE(lines.find("row stride 256 and head stride 4096 are of hnd pages, the placement states nhd [axis-order]"),
            std::string::npos)
      << lines;
  placement["paging"]["axis_order"] = "hdn";
  write("p.json", placement.dump());
  const std::string error = refusal_of(bind({"--participant", "p0-t0"}));
  EXPECT_NE(error.find("'hdn' is not one of hnd, nhd [field-choice]"), std::string::npos) << error;
}

TEST_F(CliBind, RegionsAreByGroupOrByLayer) {
  make_documents();
  EXPECT_EQ(binding_of({"--one-region"}), binding_of({}));
  const json binding = binding_of({"--region-per-layer"}, "p1-t0");
  ASSERT_EQ(binding["regions"].size(), 80u);
  EXPECT_EQ(binding["regions"][0]["id"], "key-040");
  EXPECT_EQ(binding["regions"][79]["id"], "value-079");
  EXPECT_EQ(binding["views"].size(), 80u);
  const std::string error = refusal_of(bind({"--participant", "p0-t0", "--one-region", "--region-per-layer"}));
  EXPECT_NE(error.find("excludes"), std::string::npos) << error;
}

TEST_F(CliBind, PagesLieInOrderUnlessShuffled) {
  make_documents();
  const auto slots = [this](const Strings& more) { return binding_of(more)["page_tables"][0]["slots"]; };
  const json shuffled = slots({"--page-size", "2", "--shuffle", "0"});
  EXPECT_EQ(shuffled, slots({"--page-size", "2", "--shuffle", "0"}));
  EXPECT_NE(shuffled, slots({"--page-size", "2", "--shuffle", "1"}));
  EXPECT_NE(shuffled, slots({"--page-size", "2"}));
  json sorted = shuffled;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, slots({"--page-size", "2"}));
}

TEST_F(CliBind, SparePagesMakeRegionsLonger) {
  make_documents();
  EXPECT_EQ(binding_of({"--spare-pages", "3"})["regions"][0]["bytes"], 40 * 10 * 16 * 4 * 128 * 2);
  EXPECT_NE(refusal_of(bind({"--participant", "p0-t0", "--spare-pages", "16777217"}))
                .find("is not an integer from 0 to 16777216"),
            std::string::npos);
}

TEST_F(CliBind, InstancesOfTwoPlacementsHaveDifferentNames) {
  make_documents();
  EXPECT_EQ(binding_of({"--instance-prefix", "node7:"})["instance"], "node7:p0-t0");
  EXPECT_EQ(binding_of({"--instance-prefix", ""})["instance"], "p0-t0");
  // Of one name and with different regions they would be one instance that says two things.
  notice_of({"placement", "--config", kLlama, "--pp", "2", "--tp", "1", "--name", "q", "-o", "q.json"});
  Strings arguments = {"validate", "p.json", "q.json", "s.json"};
  for (const std::string side : {"p", "q"}) {
    EXPECT_EQ(run(bind({"--output-dir", side}, side + ".json")).exit_code, 0);
    for (const std::string& name : files_in(side)) arguments.push_back(side + "/" + name);
  }
  EXPECT_EQ(run(arguments).exit_code, 0);
}

TEST_F(CliBind, EveryExampleModelBindsAndIsValid) {
  size_t model_count = 0;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (!entry.is_directory()) continue;
    ++model_count;
    SCOPED_TRACE(entry.path().filename().string());
    notice_of({"placement", "--config", (entry.path() / "config.json").string(), "--tp", "2", "--pp", "2", "--cp", "2",
               "--cp-block", "16", "-o", "p.json"});
    notice_of({"snapshot", "--placement", "p.json", "--tokens", "3:5000", "-o", "s.json"});
    expect_all_valid({"--page-size", "32", "--shuffle", "5", "--spare-pages", "10"});
    expect_all_valid({"--axis-order", "hnd", "--region-per-layer"});
  }
  EXPECT_GE(model_count, 16u);
}

// --- bind: what is written where

TEST_F(CliBind, EachParticipantHasItsFileInTheFolder) {
  make_documents();
  const Ended made = run(bind({"--output-dir", "deep/er", "--operation", "move-1"}));
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_EQ(made.out, "");
  EXPECT_EQ(files_in("deep/er"), (Strings{"p0-t0.json", "p0-t1.json", "p1-t0.json", "p1-t1.json"}));
  EXPECT_TRUE(made.err.starts_with("crossdock: wrote deep/er: 4 bindings, ")) << made.err;
  EXPECT_EQ(lines_of(made.err).size(), 1u);
  for (const std::string& name : files_in("deep/er"))
    EXPECT_EQ(json::parse(read("deep/er/" + name))["participant"], name.substr(0, 5));
  // One alone is the same, wherever it goes.
  const Strings one = {"--participant", "p1-t0", "--operation", "move-1"};
  EXPECT_EQ(output_of(bind(one)), read("deep/er/p1-t0.json") + "\n");
  notice_of(bind({"--participant", "p1-t0", "--operation", "move-1", "-o", "one.json"}));
  EXPECT_EQ(read("one.json"), read("deep/er/p1-t0.json"));
  notice_of(bind({"--participant", "p1-t0", "--output-dir", "alone"}));
  EXPECT_EQ(files_in("alone"), Strings{"p1-t0.json"});
}

TEST_F(CliBind, WhateverAParticipantIsCalledItsFileLiesInTheFolder) {
  const Strings names = {"..",
                         ".",
                         "../../p.json",
                         "/etc/passwd",
                         "a/b",
                         "a%2Fb",
                         ".hidden",
                         "new\nline",
                         "\xc3\xa9",
                         " ",
                         "-o",
                         "dots.in.it",
                         std::string(256, 'x'),
                         std::string(255, 'x') + "y",
                         std::string(181, '-'),
                         std::string(60, '/')};
  notice_of({"placement", "--config", kLlama, "--dp", "16", "-o", "p.json"});
  json placement = json::parse(read("p.json"));
  ASSERT_EQ(placement["parts"].size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    placement["parts"][i]["participant"] = names[i];
    placement["topology"]["participants"][i]["id"] = names[i];
  }
  write("p.json", placement.dump());
  notice_of({"snapshot", "--placement", "p.json", "--tokens", "7", "-o", "s.json"});
  const Ended made = run(bind({"--output-dir", "out"}));
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.err.find(": 16 bindings, "), std::string::npos) << made.err;
  EXPECT_EQ(files(), (Strings{"out", "p.json", "s.json"}));
  std::map<std::string, std::string> file_of;
  for (const std::string& name : files_in("out")) file_of[json::parse(read("out/" + name))["participant"]] = name;
  ASSERT_EQ(file_of.size(), names.size());
  EXPECT_EQ(file_of[".."], "%2E..json");
  EXPECT_EQ(file_of["."], "%2E.json");
  EXPECT_EQ(file_of["../../p.json"], "%2E.%2F..%2Fp.json.json");
  EXPECT_EQ(file_of["a/b"], "a%2Fb.json");
  EXPECT_EQ(file_of["a%2Fb"], "a%252Fb.json");
  EXPECT_EQ(file_of["\xc3\xa9"], "%C3%A9.json");
  EXPECT_EQ(file_of["-o"], "-o.json");
  EXPECT_EQ(file_of["dots.in.it"], "dots.in.it.json");
  write("long", std::string(256, 'x'));
  EXPECT_EQ(file_of[std::string(256, 'x')], std::string(180, 'x') + "-" + sha256sum("long") + ".json");
}

TEST_F(CliBind, NothingIsWrittenWhenOneParticipantCannotBeBound) {
  // Only the last stage has the layer whose scales stand for 4 tokens.
  write_examples();
  json placement = json::parse(read("placement.json"));
  for (json& component : placement["cache_schema"]["groups"][1]["components"])
    component["token_axis"] = json::parse(R"({"kind":"rows","tokens_per_row":4})");
  write("p.json", placement.dump());
  notice_of({"snapshot", "--placement", "p.json", "--tokens", "8", "-o", "s.json"});
  const std::string error = refusal_of(bind({"--page-size", "6", "--output-dir", "out"}));
  EXPECT_EQ(error,
            "crossdock: error: binding 'synthetic' of 'p1-t0' component 'key' (layers 2): pages of 6 tokens cut a row "
            "of 4 tokens [token-alignment]\n");
  EXPECT_FALSE(fs::exists(work("out")));
  expect_all_valid({"--page-size", "8"});
}

TEST_F(CliBind, AFolderOrFileThatCannotBeWrittenIsAFailure) {
  make_documents();
  write("file", "precious");
  const Ended no_folder = run(bind({"--output-dir", "file"}));
  EXPECT_EQ(no_folder.exit_code, 1);
  EXPECT_TRUE(no_folder.err.starts_with("crossdock: error: cannot create the folder 'file': ")) << no_folder.err;
  EXPECT_EQ(read("file"), "precious");
  fs::create_directories(work("out/p0-t1.json"));
  const Ended no_file = run(bind({"--output-dir", "out"}));
  EXPECT_EQ(no_file.exit_code, 1);
  EXPECT_NE(no_file.err.find("out/p0-t1.json"), std::string::npos) << no_file.err;
  EXPECT_EQ(files_in("out"), (Strings{"p0-t0.json", "p0-t1.json"}));
}

// --- bind: what is refused

TEST_F(CliBind, WhereBindingsGoHasToBeClear) {
  make_documents();
  const std::string no_place =
      "crossdock: error: bindings of all participants need a folder: give --output-dir DIR, or one participant with "
      "--participant NAME\n";
  EXPECT_EQ(refusal_of(bind({})), no_place);
  EXPECT_EQ(refusal_of(bind({"-o", "out.json"})), no_place);
  EXPECT_EQ(refusal_of(bind({"-o", "out.json", "--output-dir", "out", "--participant", "p0-t0"})),
            "crossdock: error: give either -o FILE or --output-dir DIR\n");
  EXPECT_EQ(files(), (Strings{"p.json", "s.json"}));
}

TEST_F(CliBind, AnUnknownParticipantIsNamed) {
  make_documents();
  EXPECT_EQ(refusal_of(bind({"--participant", "p9-t9", "--output-dir", "out"})),
            "crossdock: error: binding 'synthetic' of 'p9-t9': placement 'p' has no participant 'p9-t9' "
            "[binding-identity]\n");
  EXPECT_FALSE(fs::exists(work("out")));
}

TEST_F(CliBind, ASnapshotOfSomethingElseIsRefused) {
  make_documents();
  const auto error_of = [this] { return refusal_of(bind({"--output-dir", "out"})); };
  notice_of({"placement", "--config", kLlama, "--resource", "kv:b", "-o", "other.json"});
  notice_of({"snapshot", "--placement", "other.json", "--tokens", "100", "-o", "s.json"});
  EXPECT_EQ(error_of(),
            "crossdock: error: placement 'p' with the snapshot: resource 'kv:cache' is not the snapshot's 'kv:b' "
            "[binding-identity]\n");
  notice_of({"placement", "--config", kModels + "llama-3.1-8b/config.json", "-o", "other.json"});
  notice_of({"snapshot", "--placement", "other.json", "--tokens", "100", "-o", "s.json"});
  EXPECT_TRUE(
      error_of().starts_with("crossdock: error: placement 'p' with the snapshot: the snapshot's cache schema "));
  EXPECT_EQ(refusal_of(bind({"--output-dir", "out"}, "s.json")).substr(0, 8), "s.json: ");
  EXPECT_FALSE(fs::exists(work("out")));
}

TEST_F(CliBind, TooManyPagesAreRefused) {
  notice_of({"placement", "--config", kLlama, "-o", "p.json"});
  notice_of({"snapshot", "--placement", "p.json", "--tokens", "1000000000000", "-o", "s.json"});
  EXPECT_EQ(refusal_of(bind({"--output-dir", "out"})),
            "crossdock: error: binding 'synthetic' of 'p0-t0' component 'key' (layers 0-79): with its 62500000000 the "
            "views hold more than 4194304 pages [work-limit]\n");
  notice_of({"snapshot", "--placement", "p.json", "--tokens", "1000000", "-o", "s.json"});
  EXPECT_EQ(
      refusal_of(bind({"--output-dir", "out", "--region-per-layer"})),
      "crossdock: error: binding 'synthetic' of 'p0-t0' component 'key' (layers 0-79): with its 5000000 the views "
      "hold more than 4194304 pages [work-limit]\n"
      "crossdock: error: binding 'synthetic' of 'p0-t0': --one-region makes one view of all neighbouring layers "
      "[work-limit]\n");
  EXPECT_EQ(files(), (Strings{"p.json", "s.json"}));
}

}  // namespace
}  // namespace crossdock::testing
