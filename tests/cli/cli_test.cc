// The program as a person uses it: what it prints, where, and the exit code. Expected values are written out here.
// Wrong usage and bad input: cli_bad_input_test.cc.
#include <signal.h>
#include <sys/resource.h>

#include <functional>
#include <regex>

#include "tests/cli/run_program.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

// "p0-t0   0-40   key" -> "p0-t0 0-40 key"
std::string squeezed(const std::string& line) { return std::regex_replace(line, std::regex(" +"), " "); }

// The row of a table that begins with `first`, columns one space apart.
std::string row_of(const std::string& text, const std::string& first) {
  for (const std::string& line : lines_of(text))
    if (line.starts_with(first + " ")) return squeezed(line);
  return "no row '" + first + "' in:\n" + text;
}

// Gives the one region of a binding another name, and an address so many bytes further on.
void move_region(json& binding, const std::string& id, uint64_t bytes) {
  json& region = binding["regions"][0];
  for (json& view : binding["views"]) view["region"] = id;
  region["id"] = id;
  region["address"] = region["address"].get<uint64_t>() + bytes;
}

// Files grow no further than this while it lives; a write that would is an error, not a signal.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    handler_ = signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    signal(SIGXFSZ, handler_);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

// --- help and usage

TEST_F(Cli, VersionIsOneLine) {
  EXPECT_TRUE(std::regex_match(output_of({"--version"}), std::regex("crossdock \\d+\\.\\d+\\.\\d+\n")));
}

TEST_F(Cli, HelpNamesEveryCommandAndTheExitCodes) {
  const std::string help = output_of({"--help"});
  for (const std::string& command : commands())
    EXPECT_NE(help.find("\n  " + command + " "), std::string::npos) << command;
  EXPECT_NE(help.find("0 done, 1 the operation failed (existing files are unchanged), 2 bad input or usage"),
            std::string::npos);
}

// Each command and each of its subcommands, "store", "store put", ..., as the help lists them.
std::vector<std::vector<std::string>> command_paths(
    const std::function<std::string(std::vector<std::string>)>& help_of) {
  std::vector<std::vector<std::string>> paths = {{}};
  for (size_t i = 0; i < paths.size(); ++i) {
    bool is_list = false;
    for (const std::string& line : lines_of(help_of(paths[i]))) {
      if (is_list && line.empty()) break;
      if (is_list && line.size() > 2 && line[2] != ' ') {
        paths.push_back(paths[i]);
        paths.back().push_back(line.substr(2, line.find(' ', 2) - 2));
      }
      is_list |= line == "Subcommands:";
    }
  }
  return paths;
}

TEST_F(Cli, HelpOfEveryCommandHasItsOwnExamplesAndAHundredColumnsAtMost) {
  const auto help_of = [this](std::vector<std::string> path) {
    path.push_back("--help");
    return output_of(path);
  };
  const std::vector<std::vector<std::string>> paths = command_paths(help_of);
  EXPECT_GT(paths.size(), commands().size() + 12);  // 13 commands of 'store' and 'store pages'
  for (const std::vector<std::string>& path : paths) {
    std::string name = "crossdock";
    for (const std::string& word : path) name += " " + word;
    SCOPED_TRACE(name);
    const std::string help = help_of(path);
    const size_t example = help.find("\nExample");
    ASSERT_NE(example, std::string::npos) << help;
    EXPECT_NE(help.find(name + " ", example), std::string::npos) << help;
    for (const std::string& line : lines_of(help)) EXPECT_LE(line.size(), 100u) << line;
    if (path.empty()) continue;
    std::vector<std::string> brief = path;
    brief.push_back("-h");
    EXPECT_EQ(output_of(brief), help);
  }
}

TEST_F(Cli, WithoutACommandThereIsHelpAndExitTwo) {
  const Ended result = run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, output_of({"--help"}));
}

// --- schema and placement

TEST_F(Cli, SchemaOfLlama70bHas327680BytesPerToken) {
  const json schema = json::parse(output_of({"schema", "--config", kLlama}));
  EXPECT_EQ(schema["schema"], "crossdock.cache_schema");
  ASSERT_EQ(schema["groups"].size(), 1u);
  EXPECT_EQ(schema["groups"][0]["layers"], json::parse("[[0,80]]"));
  uint64_t bytes = 0;
  for (const json& component : schema["groups"][0]["components"])
    bytes += 80 * component["head_count"].get<uint64_t>() * component["head_dim"].get<uint64_t>() *
             component["item_bytes"].get<uint64_t>();
  EXPECT_EQ(bytes, 327680u);
}

TEST_F(Cli, SchemaTakesAnotherDtypeWithScales) {
  const json schema =
      json::parse(output_of({"schema", "--config", kLlama, "--kv-dtype", "float8_e4m3fn", "--kv-scales"}));
  std::string shapes;
  for (const json& c : schema["groups"][0]["components"])
    shapes += c["name"].get<std::string>() + " " + c["dtype"].get<std::string>() + " " + c["head_dim"].dump() + "; ";
  EXPECT_EQ(shapes, "key float8_e4m3fn 128; key_scale float32 1; value float8_e4m3fn 128; value_scale float32 1; ");
}

TEST_F(Cli, SchemaReadsADocumentFromStandardInput) {
  const std::string text = output_of({"schema", "--config", kLlama});
  EXPECT_EQ(output_of({"schema", "--schema", "-"}, json::parse(text).dump(2)), text);
}

TEST_F(Cli, PlacementGivesEachRankItsLayersAndHeads) {
  notice_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--pp-layers", "41,39", "-o", "prefill.json"});
  const json placement = json::parse(read("prefill.json"));
  EXPECT_EQ(placement["name"], "prefill");
  ASSERT_EQ(placement["parts"].size(), 16u);
  for (uint64_t pp = 0; pp < 2; ++pp)
    for (uint64_t tp = 0; tp < 8; ++tp) {
      const json& part = placement["parts"][pp * 8 + tp];
      EXPECT_EQ(part["participant"], "p" + std::to_string(pp) + "-t" + std::to_string(tp));
      ASSERT_EQ(part["owns"].size(), 1u);
      EXPECT_EQ(part["owns"][0]["layers"], json::parse(pp == 0 ? "[[0,41]]" : "[[41,80]]"));
      EXPECT_EQ(part["owns"][0]["heads"], json::array({json::array({tp, tp + 1})}));
      EXPECT_EQ(part["owns"][0]["components"], json({"key", "value"}));
      EXPECT_EQ(part["owns"][0]["tokens"]["kind"], "all");
    }
}

TEST_F(Cli, PlacementDealsTokensOutOverContextParallelRanks) {
  const json placement = json::parse(output_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--dp", "2",
                                                "--cp", "2", "--cp-block", "16", "-o", "-"}));
  ASSERT_EQ(placement["parts"].size(), 64u);
  const json& last = placement["parts"][63];
  EXPECT_EQ(last["participant"], "d1-p1-t7-c1");
  EXPECT_EQ(last["owns"][0]["layers"], json::parse("[[40,80]]"));
  EXPECT_EQ(last["owns"][0]["tokens"],
            json::parse(R"({"kind":"cycle","cycle":{"block_tokens":16,"blocks":[[1,2]],"cycle_blocks":2}})"));
}

TEST_F(Cli, PlacementSaysWhatItIsTold) {
  const json placement =
      json::parse(output_of({"placement", "--config", kLlama, "--tp", "2", "--heads", "5,3", "--name", "decode",
                             "--resource", "kv:a", "--revision", "7", "--page-size", "16", "--axis-order", "hnd"}));
  EXPECT_EQ(placement["name"], "decode");
  EXPECT_EQ(placement["resource"], "kv:a");
  EXPECT_EQ(placement["revision"], "7");
  EXPECT_EQ(placement["paging"], json::parse(R"({"axis_order":"hnd","page_tokens":16})"));
  EXPECT_EQ(placement["parts"][0]["owns"][0]["heads"], json::parse("[[0,5]]"));
  EXPECT_EQ(placement["parts"][1]["owns"][0]["heads"], json::parse("[[5,8]]"));
}

TEST_F(Cli, PlacementSharesHeadsOutAsTheirSumFits) {
  const auto heads = [](const std::string& shares) {
    return std::vector<std::string>{"placement", "--config", kLlama, "--tp", "2", "--heads", shares};
  };
  const json placement = json::parse(output_of(heads("8,0")));
  EXPECT_EQ(placement["parts"][0]["owns"][0]["heads"], json::parse("[[0,8]]"));
  EXPECT_EQ(placement["parts"][1]["owns"], json::array());
  const std::string refused = "crossdock: error: placement 'placement': the ranks have ";
  EXPECT_EQ(refusal_of(heads("3,4")), refused + "3+4 heads together, the components have 8 [partition]\n");
  EXPECT_EQ(refusal_of(heads("8,1")), refused + "8+1 heads together, the components have 8 [partition]\n");
  EXPECT_TRUE(refusal_of(heads("18446744073709551615,9")).starts_with(refused + "18446744073709551615+9 heads"));
  EXPECT_EQ(refusal_of(heads("8")),
            "crossdock: error: placement 'placement': 1 ranks are given heads, but tp is 2 [partition]\n");
}

TEST_F(Cli, LayersAboveTheLayerCountGoToTheLastStage) {
  notice_of({"schema", "--config", kLlama, "-o", "schema.json"});
  const json placement = json::parse(
      output_of({"placement", "--schema", "schema.json", "--layer-count", "60", "--draft-layers", "--pp", "2"}));
  EXPECT_EQ(placement["parts"][0]["owns"][0]["layers"], json::parse("[[0,30]]"));
  EXPECT_EQ(placement["parts"][1]["owns"][0]["layers"], json::parse("[[30,80]]"));
}

TEST_F(Cli, PagesAreTokenMajorUnlessStated) {
  const auto paging = [this](std::vector<std::string> options) {
    options.insert(options.begin(), {"placement", "--config", kLlama});
    return json::parse(output_of(options)).value("paging", json());
  };
  EXPECT_EQ(paging({}), json());
  EXPECT_EQ(paging({"--page-size", "16"}), json::parse(R"({"axis_order":"nhd","page_tokens":16})"));
}

TEST_F(Cli, EveryExampleModelMakesAPlacementThatIsValid) {
  size_t model_count = 0;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (!entry.is_directory()) continue;
    ++model_count;
    SCOPED_TRACE(entry.path().filename().string());
    const std::string text =
        output_of({"placement", "--config", (entry.path() / "config.json").string(), "--tp", "2", "--pp", "3"});
    EXPECT_TRUE(output_of({"validate", "-"}, text).starts_with("-: valid placement, sha256:"));
  }
  EXPECT_GE(model_count, 16u);
}

// --- output files

TEST_F(Cli, AFailedCommandKeepsTheFileAndLeavesNoOther) {
  write("out.json", "precious");
  EXPECT_EQ(run({"placement", "--config", kLlama, "--tp", "3", "-o", "out.json"}).exit_code, 2);
  EXPECT_EQ(run({"schema", "--config", "none.json", "-o", "out.json"}).exit_code, 2);
  EXPECT_EQ(run({"convert", "--from", "mooncake", kGolden + "bad_digest.json", "-o", "out.json"}).exit_code, 2);
  EXPECT_EQ(read("out.json"), "precious");
  EXPECT_EQ(files(), std::vector<std::string>{"out.json"});
}

TEST_F(Cli, AWriteThatFailsHalfwayKeepsTheFile) {
  write("out.json", "precious");
  Ended result;
  {
    const FileSizeLimit limit(1000);  // the placement takes more
    result = run({"placement", "--config", kLlama, "--tp", "8", "-o", "out.json"});
  }
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("out.json"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  EXPECT_EQ(read("out.json"), "precious");
  EXPECT_EQ(files(), std::vector<std::string>{"out.json"});
}

TEST_F(Cli, AFileThatIsThereIsReplacedAsAWhole) {
  write("out.json", std::string(100000, 'x'));
  notice_of({"schema", "--config", kLlama, "-o", "out.json"});
  EXPECT_EQ(read("out.json") + "\n", output_of({"schema", "--config", kLlama}));
  EXPECT_EQ(files(), std::vector<std::string>{"out.json"});
}

TEST_F(Cli, AWrittenFileHasTheDigestOfItsDocument) {
  notice_of({"schema", "--config", kLlama, "-o", "schema.json"});
  notice_of({"placement", "--config", kLlama, "--tp", "16", "--dp", "2", "-o", "placement.json"});
  notice_of({"convert", "--from", "mooncake", kGolden + "placement_replicas.json", "-o", "foreign.json"});
  for (const std::string& name : files()) {
    const Ended other = run_program({"sha256sum", name});
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(output_of({"digest", name}), "sha256:" + other.out);
  }
}

TEST_F(Cli, OnStandardOutputADocumentEndsItsLine) {
  notice_of({"schema", "--config", kLlama, "-o", "schema.json"});
  EXPECT_EQ(output_of({"schema", "--config", kLlama}), read("schema.json") + "\n");
  EXPECT_EQ(output_of({"schema", "--config", kLlama, "-o", "-"}), read("schema.json") + "\n");
  EXPECT_EQ(output_of({"schema", "--config", kLlama, "-o", "/dev/stdout"}), read("schema.json") + "\n");
}

TEST_F(Cli, WhatWasWrittenIsSaidOnStandardError) {
  const std::string notice = notice_of({"placement", "--config", kLlama, "--tp", "8", "-o", "prefill.v1.json"});
  const uintmax_t bytes = fs::file_size(work("prefill.v1.json"));
  ASSERT_TRUE(bytes >= 1000 && bytes < 1000000);
  EXPECT_EQ(notice, "crossdock: wrote prefill.v1.json: placement 'prefill', 8 participants, " +
                        std::to_string(bytes / 1000) + "," + std::to_string(1000 + bytes % 1000).substr(1) +
                        " bytes\n");
}

TEST_F(Cli, ThroughALinkTheFileIsReplacedAndKeepsItsPermissions) {
  fs::create_directory(work("kept"));
  write("kept/real.json", "old");
  const fs::perms permissions = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  fs::permissions(work("kept/real.json"), permissions);
  fs::create_symlink("kept/real.json", work("inner.json"));
  fs::create_symlink("inner.json", work("outer.json"));
  notice_of({"schema", "--config", kLlama, "-o", "outer.json"});
  EXPECT_EQ(fs::read_symlink(work("outer.json")), "inner.json");
  EXPECT_EQ(fs::read_symlink(work("inner.json")), "kept/real.json");
  EXPECT_EQ(read("kept/real.json") + "\n", output_of({"schema", "--config", kLlama}));
  EXPECT_EQ(fs::status(work("kept/real.json")).permissions(), permissions);
  EXPECT_EQ(files(), (std::vector<std::string>{"inner.json", "kept", "outer.json"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(work("kept")), fs::directory_iterator()), 1);
}

TEST_F(Cli, APipeIsWrittenAsItIs) {
  if (!fs::exists("/proc/self/fd")) GTEST_SKIP() << "no /proc here";
  const Ended piped =
      run_program({"bash", "-c", R"("$0" schema --config "$1" -o /proc/self/fd/1 | cat)", program_path(), kLlama});
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_EQ(piped.out + "\n", output_of({"schema", "--config", kLlama}));
}

// 1400 participants with 2048 intervals of layers, each a list of two numbers: 3 x 2048 x 1400 values are more than
// the 8,388,608 that a reader takes (docs/formats/README.md).
TEST_F(Cli, ADocumentThatNobodyCouldReadIsNotWritten) {
  json schema = json::parse(to_json(example_cache_schema()));
  schema["groups"].erase(2);
  schema["groups"].erase(1);
  schema["groups"][0]["components"].erase(2);
  schema["groups"][0]["components"].erase(1);
  schema["groups"][0]["layers"] = json::array();
  for (int layer = 0; layer < 2048; ++layer) schema["groups"][0]["layers"].push_back({2 * layer, 2 * layer + 1});
  write("schema.json", schema.dump());
  write("out.json", "precious");
  const Ended result = run({"placement", "--schema", "schema.json", "--dp", "1400", "-o", "out.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("crossdock: error: ")) << result.err;
  EXPECT_TRUE(result.err.ends_with(": more than the limit of 8388608 values [json-values]\n")) << result.err;
  EXPECT_EQ(read("out.json"), "precious");
  EXPECT_EQ(files(), (std::vector<std::string>{"out.json", "schema.json"}));
}

TEST_F(Cli, AnOutputThatCannotBeWrittenExitsWithOne) {
  for (const std::string path : {"no/such/folder/out.json", "."}) {
    const Ended result = run({"schema", "--config", kLlama, "-o", path});
    EXPECT_EQ(result.exit_code, 1) << path;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("crossdock: error: cannot ")) << result.err;
    EXPECT_NE(result.err.find(path), std::string::npos) << result.err;
  }
  EXPECT_TRUE(files().empty());
}

// By a descriptor, not by name: a program that replaces what it should write to then harms nothing.
TEST_F(Cli, AFullDeviceAsOutputExitsWithOne) {
  if (!fs::is_character_file("/dev/full") || !fs::exists("/proc/self/fd")) GTEST_SKIP() << "no /dev/full here";
  const Ended result = run({"schema", "--config", kLlama, "-o", "/proc/self/fd/1"}, "", "/dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "crossdock: error: cannot write '/proc/self/fd/1': No space left on device\n");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Cli, AFullDiskUnderStandardOutputExitsWithOne) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  write_examples();
  const std::vector<std::vector<std::string>> table = {
      {"schema", "--config", kLlama},
      {"placement", "--config", kLlama},
      {"validate", "placement.json"},
      {"inspect", "placement.json"},
      {"digest", "placement.json"},
      {"convert", "--from", "mooncake", kGolden + "placement_dp2.json"},
      {"completion", "bash"},
      {"--help"},
      {"--version"},
      {"validate", "--help"},
  };
  for (const std::vector<std::string>& arguments : table) {
    const Ended result = run(arguments, "", "/dev/full");
    EXPECT_EQ(result.exit_code, 1) << arguments[0];
    EXPECT_EQ(result.err, "crossdock: error: cannot write to standard output\n") << arguments[0];
  }
}

// --- validate

TEST_F(Cli, ValidateSaysForEachFileWhatItIs) {
  write_examples();
  std::vector<std::string> arguments = {"validate"};
  std::string lines;
  for (const std::string& name : files()) {
    arguments.push_back(name);
    lines += name + ": valid " + name.substr(0, name.find('.')) + ", sha256:" + sha256sum(name) + "\n";
    if (name == "binding.json")
      lines += "binding.json: note: checked against its placement\nbinding.json: note: checked against its snapshot\n";
  }
  ASSERT_EQ(arguments.size(), 8u);
  EXPECT_EQ(output_of(arguments), lines);
}

TEST_F(Cli, ValidateReportsAllFilesOfWhichSomeAreInvalid) {
  write_examples();
  json broken = json::parse(read("placement.json"));
  broken["parts"][1]["owns"][0]["heads"] = {{1, 3}};
  broken["name"] = "broken";
  write("broken.json", broken.dump());
  const Ended result = run({"validate", "topology.json", "broken.json", "snapshot.json"});
  EXPECT_EQ(result.exit_code, 2);
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_TRUE(lines.front().starts_with("topology.json: valid topology, sha256:"));
  EXPECT_EQ(lines[1],
            "broken.json: placement 'broken' part 'p0-t1': heads [1,3) end past head count 2 (component key, layers "
            "0-1) [head-bounds]");
  EXPECT_TRUE(lines.back().starts_with("snapshot.json: valid snapshot, sha256:"));
}

TEST_F(Cli, ValidateAsJsonIsOneValue) {
  write_examples();
  json broken = json::parse(read("snapshot.json"));
  broken["tokens"] = {3, 3};
  write("broken.json", broken.dump());
  const Ended result = run({"validate", "--json", "topology.json", "broken.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  const json fault = {{"document", "snapshot of 'kv:request-17'"},
                      {"message", "the snapshot has no tokens"},
                      {"place", ""},
                      {"rule", "snapshot-empty"}};
  const json expected = {{"between_bindings", json::array()},
                         {"files",
                          {{{"complete", true},
                            {"digest", sha256sum("topology.json")},
                            {"diagnostic_count", 0},
                            {"diagnostics", json::array()},
                            {"notes", json::array()},
                            {"path", "topology.json"},
                            {"schema", "crossdock.topology"},
                            {"valid", true}},
                           {{"complete", true},
                            {"diagnostic_count", 1},
                            {"diagnostics", json::array({fault})},
                            {"notes", json::array()},
                            {"path", "broken.json"},
                            {"valid", false}}}}};
  EXPECT_EQ(json::parse(result.out), expected);
}

TEST_F(Cli, ValidateCountsTheFaultsItDoesNotShow) {
  std::string text = "{";
  for (int i = 0; i < 250; ++i) text += "\"colour" + std::to_string(i) + "\":1,";
  text += R"("schema":"crossdock.topology","version":1,"participants":[],)"
          R"("sizes":{"cp":1,"dp":1,"ep":1,"pp":1,"tp":1}})";
  const Ended result = run({"validate", "-"}, text);
  EXPECT_EQ(result.exit_code, 2);
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 101u);
  EXPECT_EQ(lines.back(), "-: and 150 more errors");
  EXPECT_EQ(json::parse(run({"validate", "--json", "-"}, text).out)["files"][0]["diagnostic_count"], 250);
}

TEST_F(Cli, ValidateGoesOnAfterAFileThatCannotBeRead) {
  write_examples();
  const std::string topology = output_of({"validate", "topology.json"});
  const Ended result = run({"validate", "none.json", "topology.json", "."});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "none.json: cannot open 'none.json': No such file or directory\n" + topology +
                            ".: cannot read '.': Is a directory\n");
  EXPECT_EQ(result.err, "");

  const Ended as_json = run({"validate", "--json", "none.json", "topology.json"});
  EXPECT_EQ(as_json.exit_code, 2);
  EXPECT_EQ(as_json.err, "");
  const json files = json::parse(as_json.out)["files"];
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0],
            json::parse(
                R"({"complete":true,"diagnostic_count":0,"diagnostics":[],"notes":[],"path":"none.json","valid":false,)"
                R"("unreadable":"cannot open 'none.json': No such file or directory"})"));
  EXPECT_EQ(files[1]["valid"], true);
}

TEST_F(Cli, ValidateNotesWhatABindingWasCheckedAgainst) {
  write_examples();
  const auto notes_among = [this](std::vector<std::string> names) {
    names.insert(names.begin(), "validate");
    std::string notes;
    for (const std::string& line : lines_of(output_of(names)))
      if (line.starts_with("binding.json: note: ")) notes += line.substr(20) + "\n";
    return notes;
  };
  const std::string not_placement =
      "NOT checked: its views (bytes, strides, ownership) need its placement, which is not among the files: sha256:" +
      sha256sum("placement.json");
  const std::string not_snapshot =
      "NOT checked: its snapshot, which is not among the files: sha256:" + sha256sum("snapshot.json");
  EXPECT_TRUE(notes_among({"binding.json", "snapshot.json"}).starts_with(not_placement + "\n"));
  EXPECT_EQ(notes_among({"placement.json", "binding.json"}), "checked against its placement\n" + not_snapshot + "\n");
  EXPECT_EQ(notes_among({"snapshot.json", "binding.json", "placement.json"}),
            "checked against its placement\nchecked against its snapshot\n");

  const json file = json::parse(output_of({"validate", "--json", "binding.json", "placement.json"}))["files"][0];
  EXPECT_EQ(file["notes"], json({"checked against its placement", not_snapshot}));
  EXPECT_EQ(file["valid"], true);
  EXPECT_EQ(file["complete"], false);
  EXPECT_EQ(run({"validate", "--complete", "binding.json"}).exit_code, 2);
  EXPECT_EQ(run({"validate", "--complete", "binding.json", "placement.json"}).exit_code, 2);
  EXPECT_EQ(run({"validate", "--complete", "binding.json", "placement.json", "snapshot.json"}).exit_code, 0);
}

TEST_F(Cli, ValidateChecksABindingAgainstItsPlacementAndSnapshot) {
  write_examples();
  json binding = json::parse(read("binding.json"));
  binding["tokens"] = {0, 9};
  write("shorter.json", binding.dump());
  binding["participant"] = "p7";
  write("stranger.json", binding.dump());
  const Ended result = run({"validate", "shorter.json", "stranger.json", "placement.json", "snapshot.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.out.find("shorter.json: binding 'move-17' of 'p0-t0': tokens [0,9) are not the snapshot's [0,10) "
                            "[binding-identity]\n"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("stranger.json: binding 'move-17' of 'p7': placement 'decode' has no participant 'p7' "
                            "[binding-identity]\n"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("placement.json: valid placement"), std::string::npos);
}

TEST_F(Cli, ValidateChecksTheBindingsOfAnInstanceAgainstEachOther) {
  write_examples();
  json binding = json::parse(read("binding.json"));
  write("twin.json", binding.dump());
  binding["instance"] = "imposter";
  write("imposter.json", binding.dump());

  const Ended twins = run({"validate", "binding.json", "twin.json", "placement.json", "snapshot.json"});
  EXPECT_EQ(twins.exit_code, 2);
  EXPECT_EQ(lines_of(twins.out).back(),
            "between the bindings: instance 'decode-worker-0' region 'pool': binding.json view 0 and twin.json view 0 "
            "share bytes [views-overlap]");

  const Ended result = run({"validate", "--json", "binding.json", "imposter.json", "placement.json", "snapshot.json"});
  EXPECT_EQ(result.exit_code, 2);
  const json between = json::parse(result.out)["between_bindings"];
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(between[0]["document"], "imposter.json");
  EXPECT_EQ(between[0]["rule"], "instance-endpoint");

  // Nothing to say about bindings that are not one instance's.
  write("other.json", to_json(example_binding_without_pages()));
  const std::string fine = output_of({"validate", "binding.json", "other.json", "placement.json", "snapshot.json"});
  EXPECT_EQ(fine.find("between"), std::string::npos) << fine;
}

TEST_F(Cli, FaultsBetweenBindingsNameBothFiles) {
  write_examples();
  const json binding = json::parse(read("binding.json"));
  struct Case {
    std::string rule;
    std::function<void(json&)> other;  // what makes it disagree with binding.json
  };
  const std::vector<Case> table = {
      {"views-overlap", [](json&) {}},
      {"instance-endpoint", [](json& d) { d["instance"] = "imposter"; }},
      {"instance-endpoint", [](json& d) { d["regions"][0]["endpoint"] = "10.0.0.2:4711"; }},
      {"instance-agreement", [](json& d) { d["regions"][0]["epoch"] = 8; }},
      {"regions-overlap", [](json& d) { move_region(d, "pool-b", 512); }},
  };
  // Of the same instance, and in nobody's way.
  json apart = binding;
  move_region(apart, "pool-c", 1 << 20);
  write("apart.json", apart.dump());
  for (const Case& wrong : table) {
    SCOPED_TRACE(wrong.rule);
    json other = binding;
    wrong.other(other);
    write("other.json", other.dump());
    const Ended result =
        run({"validate", "binding.json", "other.json", "apart.json", "placement.json", "snapshot.json"});
    EXPECT_EQ(result.exit_code, 2);
    for (const std::string& line : lines_of(result.out)) {
      if (!line.starts_with("between the bindings: ") || !line.ends_with("[" + wrong.rule + "]")) continue;
      EXPECT_NE(line.find("binding.json"), std::string::npos) << line;
      EXPECT_NE(line.find("other.json"), std::string::npos) << line;
      EXPECT_EQ(line.find("apart.json"), std::string::npos) << line;
    }
    EXPECT_NE(result.out.find("[" + wrong.rule + "]\n"), std::string::npos) << result.out;
  }
}

// --- inspect and digest

TEST_F(Cli, InspectShowsWhoOwnsWhatAndHowManyBytes) {
  notice_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--pp-layers", "41,39", "-o", "prefill.json"});
  const std::string text = output_of({"inspect", "prefill.json"});
  EXPECT_TRUE(
      text.starts_with("placement 'prefill': resource kv:cache, revision 1\n"
                       "topology: dp 1 pp 2 tp 8 cp 1 ep 1, 16 participants\n"
                       "cache: 80 layers with a cache, 327,680 bytes per token\n"))
      << text;
  // 41 (39) layers x 1 head x (128 + 128) items x 2 bytes
  EXPECT_EQ(row_of(text, "p0-t0"), "p0-t0 0-40 key,value 0 all 0 of 1 20,992 0");
  EXPECT_EQ(row_of(text, "p1-t7"), "p1-t7 41-79 key,value 7 all 0 of 1 19,968 0");
  EXPECT_TRUE(text.ends_with("digest sha256:" + sha256sum("prefill.json") + "\n"));
  EXPECT_EQ(output_of({"inspect", "-"}, read("prefill.json")), text);
}

TEST_F(Cli, InspectShowsNoMoreRowsThanAskedFor) {
  const std::string placement = output_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2"});
  const std::string text = output_of({"inspect", "-", "--rows", "3"}, placement);
  EXPECT_NE(text.find("\np0-t2 "), std::string::npos);
  EXPECT_EQ(text.find("\np0-t3 "), std::string::npos);
  EXPECT_NE(text.find("... and 13 more rows"), std::string::npos) << text;
}

TEST_F(Cli, InspectAlignsItsColumns) {
  const std::string text = output_of({"inspect", "-"}, to_json(example_topology()));
  EXPECT_NE(text.find("participant  dp  pp  tp  cp  ep\n"
                      "p0-t0         0   0   0   0   0\n"
                      "p0-t1         0   0   1   0   0\n"),
            std::string::npos)
      << text;
}

TEST_F(Cli, InspectListsParticipantsByRank) {
  const std::string text = output_of({"inspect", "-"}, output_of({"placement", "--config", kLlama, "--tp", "16"}));
  std::vector<std::string> rows;
  for (const std::string& line : lines_of(text))
    if (line.starts_with("p0-t")) rows.push_back(squeezed(line));
  ASSERT_EQ(rows.size(), 16u);
  // Two ranks for each of the 8 heads: 80 layers x 1 head x (128 + 128) items x 2 bytes.
  for (size_t tp = 0; tp < 16; ++tp)
    EXPECT_EQ(rows[tp], "p0-t" + std::to_string(tp) + " 0-79 key,value " + std::to_string(tp / 2) + " all " +
                            std::to_string(tp % 2) + " of 2 40,960 0");

  json topology = json::parse(to_json(example_topology()));
  topology["participants"][0]["id"] = "zebra";  // rank 0 of all axes
  const std::string zebra_first = output_of({"inspect", "-"}, topology.dump());
  EXPECT_TRUE(lines_of(zebra_first)[2].starts_with("zebra ")) << zebra_first;
}

TEST_F(Cli, InspectSaysWhoOwnsNothing) {
  const std::string placement = output_of({"placement", "--config", kLlama, "--tp", "2", "--heads", "8,0"});
  const std::string text = output_of({"inspect", "-"}, placement);
  EXPECT_EQ(row_of(text, "p0-t0"), "p0-t0 0-79 key,value 0-7 all 0 of 1 327,680 0");
  EXPECT_EQ(row_of(text, "p0-t1"), "p0-t1 none");
}

TEST_F(Cli, InspectShowsTheCacheAndThePagesOfAPlacement) {
  const std::string text = output_of({"inspect", "-"}, to_json(example_placement()));
  EXPECT_TRUE(
      text.starts_with("placement 'decode': resource kv:request-17, revision 1, pages of 4 tokens (nhd)\n"
                       "topology: dp 1 pp 2 tp 2 cp 1 ep 1, 4 participants\n"
                       "cache: 4 layers with a cache, 128 bytes per token, 128 bytes of state\n"
                       "layers  live tokens  component        dtype          encoding  heads  dim  row\n"
                       "   0-1  all          key              float8_e4m3fn  plain         2    8  token\n"
                       "   0-1  all          key_scale        float32        plain         2    1  token\n"
                       "   0-1  all          value            float8_e4m3fn  plain         2    4  token\n"
                       "     2  last 6       key              bfloat16       plain         2    8  token\n"
                       "     2  last 6       value            bfloat16       plain         2    8  token\n"
                       "     3  all          recurrent_state  float32        plain         2   16  state\n"
                       "\n"
                       "participant  layers  components           heads  tokens  replica  bytes/token  state bytes\n"
                       "p0-t0           0-1  key,key_scale,value      0  all     0 of 1            32            0\n"))
      << text;
  const std::string cycles = output_of(
      {"inspect", "-"}, output_of({"placement", "--config", kLlama, "--tp", "8", "--cp", "2", "--cp-block", "16"}));
  EXPECT_EQ(row_of(cycles, "p0-t7-c1"), "p0-t7-c1 0-79 key,value 7 block 1 of 2 x 16 0 of 1 20,480 0");
}

// The views of docs/formats/binding.md, their intervals as people count: [0,2) is 0-1.
TEST_F(Cli, InspectShowsWhereViewsLie) {
  const std::string binding = output_of({"inspect", "-"}, to_json(example_binding()));
  EXPECT_NE(binding.find("\n"
                         "device  kind  registers at most\n"
                         "gpu0    cuda          1,048,576\n"
                         "\n"
                         "region  epoch  bytes  device  address         endpoint\n"
                         "pool        7  1,024  gpu0    0x7f0000000000  10.0.0.1:4711\n"
                         "\n"
                         "page table  page tokens  first token  pages\n"
                         "pages                 4            0      3\n"
                         "\n"
                         "component  layers  tokens  heads  dims  region  offset  layer stride  row stride  head stride"
                         "  dim stride  pages\n"
                         "key           0-1  [0,10)      0   0-7  pool         0            64          16            0"
                         "           1  pages x 128\n"),
            std::string::npos)
      << binding;
  const std::string manifest = output_of({"inspect", "-"}, to_json(example_store_manifest()));
  EXPECT_EQ(row_of(manifest, "component"),
            "component layers tokens heads dims object offset layer stride row stride head stride dim stride pages");
  EXPECT_EQ(row_of(manifest, "recurrent_state"), "recurrent_state 3 [0,1) 0-1 0-15 request-17/rest 384 0 0 64 4 -");
  EXPECT_EQ(row_of(manifest, "request-17/full"), "request-17/full 640 256 3");
  const std::string layout = output_of({"inspect", "-"}, to_json(example_store_layout()));
  EXPECT_EQ(row_of(layout, "full-h1"), "full-h1 0-1 key,key_scale,value 1");
  EXPECT_EQ(row_of(layout, "window"), "window 2 key,value 0-1");
}

TEST_F(Cli, InspectAndDigestGoOnAfterABadFile) {
  write_examples();
  write("broken.json", "{");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"inspect"}, {"inspect", "--json"}, {"digest"}, {"digest", "--json"}}) {
    SCOPED_TRACE(json(command).dump());
    const auto with = [&](const std::vector<std::string>& names) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), names.begin(), names.end());
      return arguments;
    };
    const Ended result = run(with({"none.json", "topology.json", "broken.json", "snapshot.json"}));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, output_of(with({"topology.json", "snapshot.json"})));
    const std::vector<std::string> errors = lines_of(result.err);
    ASSERT_EQ(errors.size(), 2u) << result.err;
    EXPECT_EQ(errors[0], "crossdock: error: cannot open 'none.json': No such file or directory");
    EXPECT_TRUE(errors[1].starts_with("broken.json: document: line 1, column 2: syntax error")) << errors[1];
  }
}

TEST_F(Cli, InspectAsJsonIsOneValuePerFile) {
  write_examples();
  notice_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--pp-layers", "41,39", "-o", "prefill.json"});
  const std::vector<std::string> lines =
      lines_of(output_of({"inspect", "--json", "prefill.json", "placement.json", "snapshot.json"}));
  ASSERT_EQ(lines.size(), 3u);
  const json prefill = json::parse(lines[0]);
  EXPECT_EQ(prefill["document"], json::parse(read("prefill.json")));
  EXPECT_EQ(prefill["volume"]["cache"], json::parse(R"({"bytes_per_token":327680,"state_bytes":0})"));
  ASSERT_EQ(prefill["volume"]["parts"].size(), 16u);
  EXPECT_EQ(prefill["volume"]["parts"][0],
            json::parse(R"({"participant":"p0-t0","volume":{"bytes_per_token":20992,"state_bytes":0}})"));
  // p1-t1: key and value 8 x 2 bytes each of layer 2, a state of 16 x 4 bytes.
  EXPECT_EQ(json::parse(lines[1])["volume"]["parts"][3],
            json::parse(R"({"participant":"p1-t1","volume":{"bytes_per_token":32,"state_bytes":64}})"));
  EXPECT_EQ(json::parse(lines[2])["volume"], json::object());
}

TEST_F(Cli, InspectKnowsEveryKindOfDocument) {
  write_examples();
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    const std::string shown = output_of({"inspect", name});
    EXPECT_GE(lines_of(shown).size(), 4u);
    EXPECT_TRUE(shown.ends_with("digest sha256:" + sha256sum(name) + "\n")) << shown;
    const json as_json = json::parse(output_of({"inspect", "--json", name}));
    EXPECT_EQ(as_json["document"], json::parse(read(name)));
    EXPECT_EQ(as_json["digest"], sha256sum(name));
  }
}

TEST_F(Cli, DigestDoesNotDependOnOrderOrSpacing) {
  const json placement = json::parse(to_json(example_placement()));
  json shuffled = placement;
  std::reverse(shuffled["parts"].begin(), shuffled["parts"].end());
  std::reverse(shuffled["topology"]["participants"].begin(), shuffled["topology"]["participants"].end());
  std::reverse(shuffled["parts"][3]["owns"][0]["components"].begin(),
               shuffled["parts"][3]["owns"][0]["components"].end());
  std::reverse(shuffled["cache_schema"]["groups"].begin(), shuffled["cache_schema"]["groups"].end());
  nlohmann::ordered_json backwards;  // fields from last to first
  for (auto field = shuffled.rbegin(); field != shuffled.rend(); ++field) backwards[field.key()] = field.value();
  write("a.json", placement.dump());
  write("b.json", backwards.dump(4) + "\n\n");
  ASSERT_NE(read("a.json").substr(0, 20), read("b.json").substr(0, 20));
  const std::string digest =
      "0891be7b92eddac5a420f3c65d4ef2d9f223f912f81c81457ad30409b794bf56";  // docs/formats/placement.md
  EXPECT_EQ(output_of({"digest", "a.json", "b.json"}),
            "sha256:" + digest + "  a.json\nsha256:" + digest + "  b.json\n");
  json renamed = placement;
  renamed["name"] = "Decode";
  EXPECT_EQ(output_of({"digest", "-"}, renamed.dump()).find(digest), std::string::npos);
}

TEST_F(Cli, DigestAsJsonIsOneValue) {
  write_examples();
  const std::string text = output_of({"digest", "--json", "topology.json", "snapshot.json"});
  EXPECT_EQ(lines_of(text).size(), 1u);
  EXPECT_EQ(
      json::parse(text),
      json({{{"digest", sha256sum("topology.json")}, {"path", "topology.json"}, {"schema", "crossdock.topology"}},
            {{"digest", sha256sum("snapshot.json")}, {"path", "snapshot.json"}, {"schema", "crossdock.snapshot"}}}));
}

// --- convert

TEST_F(Cli, ConvertBringsMooncakePlacementsThereAndBack) {
  for (const std::string name : {"placement_gqa_pp2_tp2.json", "placement_dp2.json", "placement_replicas.json"}) {
    SCOPED_TRACE(name);
    const std::string foreign = read_text(kGolden + name);
    notice_of({"convert", "--from", "mooncake", kGolden + name, "-o", name});
    EXPECT_TRUE(output_of({"validate", name}).starts_with(name + ": valid placement, "));
    EXPECT_EQ(output_of({"convert", "--from", "mooncake", "-"}, foreign), read(name) + "\n");
    notice_of({"convert", "--to", "mooncake", name, "-o", "back.json"});
    EXPECT_EQ(read("back.json"), foreign);
    EXPECT_EQ(output_of({"convert", "--to", "mooncake", name}), foreign + "\n");
  }
}

TEST_F(Cli, ConvertBringsSnapshotsAndBindingsThereAndBack) {
  const std::vector<std::string> beside = {"--placement", "placement.json", "--snapshot", "snapshot.json"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), beside.begin(), beside.end());
    return arguments;
  };
  notice_of({"convert", "--from", "mooncake", kGolden + "placement_gqa_pp2_tp2.json", "-o", "placement.json"});
  notice_of({"convert", "--from", "mooncake", kGolden + "snapshot.json", "--placement", "placement.json", "-o",
             "snapshot.json"});
  notice_of(with({"convert", "--from", "mooncake", kGolden + "binding.json", "-o", "binding.json"}));
  const std::string valid = output_of({"validate", "placement.json", "snapshot.json", "binding.json"});
  EXPECT_TRUE(
      valid.ends_with("note: checked against its placement\nbinding.json: note: checked against its snapshot\n"))
      << valid;
  notice_of({"convert", "--to", "mooncake", "snapshot.json", "-o", "back.json"});
  EXPECT_EQ(read("back.json"), read_text(kGolden + "snapshot.json"));
  notice_of(with({"convert", "--to", "mooncake", "binding.json", "-o", "back.json"}));
  EXPECT_EQ(read("back.json"), read_text(kGolden + "binding.json"));
}

// --- completion

TEST_F(Cli, CompletionForBashCompletesCommandsAndOptions) {
  write("crossdock.bash", output_of({"completion", "bash"}));
  const Ended syntax = run_program({"bash", "-n", "crossdock.bash"});
  EXPECT_EQ(syntax.exit_code, 0) << syntax.err;
  const auto complete = [&](const std::string& words) {
    const std::string script = "source ./crossdock.bash; COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _crossdock; echo \"${COMPREPLY[*]}\"";
    const Ended result = run_program({"bash", "--norc", "-c", script});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(complete("crossdock val"), "validate\n");
  EXPECT_EQ(complete("crossdock placement --pp"), "--pp --pp-layers\n");
  EXPECT_EQ(complete("crossdock inspect --r"), "--rows\n");
  EXPECT_EQ(complete("crossdock -v val"), "validate\n");
  const std::string all = complete("crossdock ''");
  for (const std::string& command : commands()) EXPECT_NE(all.find(command), std::string::npos) << command;

  EXPECT_EQ(complete("crossdock placement --engine ''"), "vllm sglang\n");
  EXPECT_EQ(complete("crossdock placement --engine s"), "sglang\n");
  EXPECT_EQ(complete("crossdock placement --axis-order ''"), "nhd hnd\n");
  EXPECT_EQ(complete("crossdock convert --from ''"), "mooncake\n");
  EXPECT_EQ(complete("crossdock convert --to moon"), "mooncake\n");
  EXPECT_EQ(complete("crossdock completion ''"), "bash zsh fish\n");

  // Where a file belongs nothing is offered, and the shell falls back on file names.
  for (const std::string words : {"validate cross", "inspect ''", "placement --config ''", "convert -o ''"})
    EXPECT_EQ(complete("crossdock " + words), "\n") << words;
  const Ended registered = run_program({"bash", "--norc", "-c", "source ./crossdock.bash; complete -p crossdock"});
  EXPECT_EQ(registered.out, "complete -o default -F _crossdock crossdock\n");
}

TEST_F(Cli, CompletionForBashOffersEveryOptionOfTheHelp) {
  write("crossdock.bash", output_of({"completion", "bash"}));
  for (const std::string& command : commands()) {
    const std::string script = "source ./crossdock.bash; COMP_WORDS=(crossdock " + command +
                               " -v --); COMP_CWORD=3; _crossdock; echo \" ${COMPREPLY[*]} \"";
    const std::string offered = run_program({"bash", "--norc", "-c", script}).out;
    std::string help = output_of({command, "--help"});
    help.resize(std::min(help.find("\nExamples:"), help.size()));  // which may be of commands of the command
    const std::regex option("--[a-z][a-z-]*");
    size_t option_count = 0;
    for (std::sregex_iterator found(help.begin(), help.end(), option), end; found != end; ++found, ++option_count)
      EXPECT_NE(offered.find(" " + found->str() + " "), std::string::npos) << command << " " << found->str();
    EXPECT_GE(option_count, 1u) << command;
  }
}

TEST_F(Cli, CompletionForBashKnowsCommandsOfCommands) {
  write("crossdock.bash", output_of({"completion", "bash"}));
  const auto complete = [&](const std::string& words, size_t number) {
    const std::string script = "source ./crossdock.bash; COMP_WORDS=(" + words +
                               "); COMP_CWORD=" + std::to_string(number) + "; _crossdock; echo \" ${COMPREPLY[*]} \"";
    return run_program({"bash", "--norc", "-c", script}).out;
  };
  EXPECT_EQ(complete("crossdock store p", 2), " put pages pin \n");
  EXPECT_EQ(complete("crossdock store pages ''", 3), " put match get \n");
  EXPECT_NE(complete("crossdock store put cache --", 4).find(" --object-order "), std::string::npos);
  EXPECT_EQ(complete("crossdock store get cache --", 4).find(" --object-order "), std::string::npos);
  EXPECT_NE(complete("crossdock store pages match cache --", 5).find(" --tokens-file "), std::string::npos);
  EXPECT_EQ(complete("crossdock store put --from ''", 4), "  \n");
}

TEST_F(Cli, CompletionForZshAndFishNamesEveryCommand) {
  EXPECT_TRUE(output_of({"completion", "zsh"}).starts_with("#compdef crossdock\n"));
  const std::string zsh = output_of({"completion", "zsh"});
  const std::string fish = output_of({"completion", "fish"});
  for (const std::string& command : commands()) {
    EXPECT_NE(zsh.find(command), std::string::npos) << command;
    EXPECT_NE(fish.find("-a " + command + " -d '"), std::string::npos) << command;
  }
  EXPECT_NE(fish.find("'__fish_seen_subcommand_from placement' -l pp-layers"), std::string::npos);
}

// --- log lines

TEST_F(Cli, VerboseLinesGoToStandardError) {
  write_examples();
  const Ended loud = run({"-v", "validate", "placement.json"});
  EXPECT_EQ(loud.exit_code, 0);
  EXPECT_EQ(loud.out, output_of({"validate", "placement.json"}));
  EXPECT_TRUE(loud.err.starts_with("crossdock: placement.json: ")) << loud.err;
  EXPECT_EQ(run({"validate", "placement.json", "--verbose"}).out, loud.out);
}

}  // namespace
}  // namespace crossdock::testing
