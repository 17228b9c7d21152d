// The program as a person uses it: what it prints, where, and the exit code. Expected values are written out here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kModels = CROSSDOCK_SOURCE_DIR "/examples/models/";
const std::string kLlama = kModels + "llama-3.1-70b/config.json";
const std::string kGolden = CROSSDOCK_SOURCE_DIR "/tests/golden/mooncake/";

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(fs::exists(path)) << path;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A document's text without the newline that ends the file.
std::string without_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool has_control_character(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f; });
}

// "p0-t0   0-40   key" -> "p0-t0 0-40 key"
std::string squeezed(const std::string& line) { return std::regex_replace(line, std::regex(" +"), " "); }

struct Ended {
  int exit_code = -1;  // 128 + N when signal N ended the program
  std::string out;
  std::string err;
};

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

// Each test has an empty folder of its own, in which the program runs.
class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "crossdock_cli_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    base_ = name;
    fs::create_directory(base_ / "work");
  }
  void TearDown() override { fs::remove_all(base_); }

  fs::path work(const std::string& name) const { return base_ / "work" / name; }
  std::string read(const std::string& name) const { return read_text(work(name)); }
  void write(const std::string& name, const std::string& text) const { write_text(work(name), text); }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(base_ / "work")) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  // Runs the program. `out_path`: where its standard output goes instead of into the result.
  Ended run(std::vector<std::string> arguments, const std::string& input = "", const std::string& out_path = "") const {
    arguments.insert(arguments.begin(), CROSSDOCK_PROGRAM);
    return run_program(std::move(arguments), input, out_path);
  }

  Ended run_program(std::vector<std::string> arguments, const std::string& input = "",
                    const std::string& out_path = "") const {
    const fs::path in = base_ / "stdin";
    const fs::path out = out_path.empty() ? base_ / "stdout" : fs::path(out_path);
    const fs::path err = base_ / "stderr";
    write_text(in, input);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
    const int creating = out_path.empty() ? O_CREAT | O_TRUNC : 0;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | creating, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addchdir_np(&actions, (base_ / "work").c_str());
    pid_t pid = 0;
    EXPECT_EQ(posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ), 0) << pointers[0];
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return Ended{exit_code, out_path.empty() ? read_text(out) : "", read_text(err)};
  }

  // The standard output of a run that has to succeed and say nothing else.
  std::string output_of(const std::vector<std::string>& arguments, const std::string& input = "") const {
    const Ended result = run(arguments, input);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  }

  // One document of each kind: placement.json, binding.json, ...
  void write_examples() const {
    for (const ExampleDocument& example : example_documents()) {
      const std::string name(schema_name(example.document).substr(std::string("crossdock.").size()));
      write(name + ".json", to_json(example.document) + "\n");
    }
  }

 private:
  fs::path base_;
};

// The rest of the table row of `inspect` that begins with `first`, columns one space apart.
std::string row_of(const std::string& text, const std::string& first) {
  for (const std::string& line : lines_of(text))
    if (line.starts_with(first + " ")) return squeezed(line);
  return "no row '" + first + "' in:\n" + text;
}

const std::vector<std::string>& commands() {
  static const std::vector<std::string> names = {"schema", "placement", "validate",  "inspect",
                                                 "digest", "convert",   "completion"};
  return names;
}

// --- help and usage

TEST_F(Cli, VersionIsOneLine) {
  EXPECT_TRUE(std::regex_match(output_of({"--version"}), std::regex("crossdock \\d+\\.\\d+\\.\\d+\n")));
}

TEST_F(Cli, HelpNamesEveryCommandAndTheExitCodes) {
  const std::string help = output_of({"--help"});
  for (const std::string& command : commands())
    EXPECT_NE(help.find("\n  " + command + " "), std::string::npos) << command;
  EXPECT_NE(help.find("0 done, 1 the operation failed (nothing is lost), 2 bad input or usage"), std::string::npos);
}

TEST_F(Cli, HelpOfEveryCommandHasAnExample) {
  for (const std::string& command : commands()) {
    const std::string help = output_of({command, "--help"});
    const size_t example = help.find("\nExample");
    ASSERT_NE(example, std::string::npos) << command;
    EXPECT_NE(help.find("crossdock " + command, example), std::string::npos) << help;
    EXPECT_EQ(output_of({command, "-h"}), help);
  }
}

TEST_F(Cli, WithoutACommandThereIsHelpAndExitTwo) {
  const Ended result = run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, output_of({"--help"}));
}

TEST_F(Cli, WrongUsageIsNamedAndExitsWithTwo) {
  struct Usage {
    std::vector<std::string> arguments;
    std::string named;
  };
  const std::vector<Usage> table = {
      {{"frobnicate"}, "frobnicate"},
      {{"--frobnicate"}, "--frobnicate"},
      {{"validate", "--frobnicate", "in.json"}, "--frobnicate"},
      {{"placement", "--config", kLlama, "--frobnicate=3"}, "--frobnicate"},
      {{"validate"}, "file"},
      {{"inspect"}, "file"},
      {{"digest"}, "file"},
      {{"convert", "--from", "mooncake"}, "file"},
      {{"completion"}, "shell"},
      {{"schema"}, "--config"},
      {{"placement", "--tp", "8"}, "--config"},
      {{"schema", "--config"}, "--config"},
      {{"schema", "--config", kLlama, "--schema", "schema.json"}, "--schema"},
      {{"schema", "--schema", "schema.json", "--kv-scales"}, "--kv-scales"},
      {{"schema", "--config", kLlama, "extra.json"}, "extra.json"},
      {{"placement", "--config", kLlama, "--tp"}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", "0"}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", "-1"}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", "1.5"}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", "eight"}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", ""}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", "18446744073709551616"}, "--tp"},
      {{"placement", "--config", kLlama, "--tp", "2", "--tp", "4"}, "--tp"},
      {{"placement", "--config", kLlama, "--pp-layers", "all"}, "--pp-layers"},
      {{"placement", "--config", kLlama, "--engine", "steam"}, "--engine"},
      {{"placement", "--config", kLlama, "--page-size", "many"}, "--page-size"},
      {{"inspect", "in.json", "--rows", "many"}, "--rows"},
      {{"convert", "in.json"}, "--from"},
      {{"convert", "--from", "tapir", "in.json"}, "tapir"},
      {{"convert", "--from", "mooncake", "--to", "mooncake", "in.json"}, "--to"},
      {{"completion", "tcsh"}, "tcsh"},
  };
  for (const Usage& usage : table) {
    SCOPED_TRACE(json(usage.arguments).dump());
    const Ended result = run(usage.arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(usage.named), std::string::npos) << result.err;
  }
}

TEST_F(Cli, NegativeNumbersDoNotWrapAround) {
  write_examples();
  const std::vector<std::vector<std::string>> table = {
      {"placement", "--config", kLlama, "--cp", "2", "--cp-block", "-1"},
      {"placement", "--config", kLlama, "--page-size", "-1"},
      {"placement", "--config", kLlama, "--pp", "2", "--pp-layers=-1,81"},
      {"placement", "--config", kLlama, "--tp", "2", "--heads=-1,9"},
      {"inspect", "placement.json", "--rows", "-1"},
  };
  for (const std::vector<std::string>& arguments : table) {
    SCOPED_TRACE(json(arguments).dump());
    const Ended result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("-1"), std::string::npos) << result.err;
  }
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
  const std::string line = output_of(
      {"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--pp-layers", "41,39", "-o", "prefill.json"});
  const std::string text = read("prefill.json");
  EXPECT_TRUE(line.starts_with("wrote prefill.json: placement 'prefill', 16 participants, ")) << line;
  const json placement = json::parse(text);
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

TEST_F(Cli, PlacementRefusesHeadsThatDoNotAddUp) {
  const Ended result = run({"placement", "--config", kLlama, "--tp", "2", "--heads", "3,4"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("heads"), std::string::npos) << result.err;
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
  output_of({"schema", "--config", kLlama, "-o", "out.json"});
  EXPECT_EQ(read("out.json"), output_of({"schema", "--config", kLlama}));
  EXPECT_EQ(files(), std::vector<std::string>{"out.json"});
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

// Through a link, so that a program that replaces what it should write to harms only the link.
TEST_F(Cli, AFullDeviceAsOutputExitsWithOne) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  fs::create_symlink("/dev/full", work("full"));
  const Ended result = run({"schema", "--config", kLlama, "-o", "full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "crossdock: error: cannot write 'full': No space left on device\n");
  EXPECT_EQ(files(), std::vector<std::string>{"full"});
}

TEST_F(Cli, AFullDiskUnderStandardOutputExitsWithOne) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  write_examples();
  const std::vector<std::vector<std::string>> table = {
      {"schema", "--config", kLlama}, {"placement", "--config", kLlama}, {"validate", "placement.json"},
      {"inspect", "placement.json"},  {"digest", "placement.json"},      {"completion", "bash"},
  };
  for (const std::vector<std::string>& arguments : table) {
    const Ended result = run(arguments, "", "/dev/full");
    EXPECT_EQ(result.exit_code, 1) << arguments[0];
    EXPECT_NE(result.err.find("crossdock: error: cannot write to standard output"), std::string::npos) << result.err;
  }
}

TEST_F(Cli, HelpAndVersionOnAFullDiskExitWithOne) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const std::string option : {"--help", "--version"}) EXPECT_EQ(run({option}, "", "/dev/full").exit_code, 1);
}

// --- validate

TEST_F(Cli, ValidateSaysForEachFileWhatItIs) {
  write_examples();
  std::vector<std::string> arguments = {"validate"};
  std::string lines;
  for (const std::string& name : files()) {
    arguments.push_back(name);
    lines += name + ": valid " + name.substr(0, name.find('.')) +
             ", sha256:" + sha256(without_newline(read(name))).hex() + "\n";
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
                          {{{"digest", sha256(without_newline(read("topology.json"))).hex()},
                            {"fault_count", 0},
                            {"faults", json::array()},
                            {"notes", json::array()},
                            {"path", "topology.json"},
                            {"schema", "crossdock.topology"},
                            {"valid", true}},
                           {{"fault_count", 1},
                            {"faults", json::array({fault})},
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
  EXPECT_EQ(lines.back(), "-: and 150 more faults");
  EXPECT_EQ(json::parse(run({"validate", "--json", "-"}, text).out)["files"][0]["fault_count"], 250);
}

TEST_F(Cli, ValidateNotesWhatABindingWasNotCheckedAgainst) {
  write_examples();
  const std::string placement_digest = sha256(without_newline(read("placement.json"))).hex();
  const std::string snapshot_digest = sha256(without_newline(read("snapshot.json"))).hex();
  const std::string unchecked = "not checked against its placement, sha256:" + placement_digest;
  const std::string half_checked = "not checked against its snapshot, sha256:" + snapshot_digest;

  const std::string alone = output_of({"validate", "binding.json", "snapshot.json"});
  EXPECT_NE(alone.find("binding.json: note: " + unchecked), std::string::npos) << alone;
  const std::string half = output_of({"validate", "placement.json", "binding.json"});
  EXPECT_NE(half.find("binding.json: note: " + half_checked), std::string::npos) << half;
  const std::string whole = output_of({"validate", "snapshot.json", "binding.json", "placement.json"});
  EXPECT_EQ(whole.find("note"), std::string::npos) << whole;

  const json result = json::parse(output_of({"validate", "--json", "binding.json"}));
  ASSERT_EQ(result["files"][0]["notes"].size(), 1u);
  EXPECT_TRUE(result["files"][0]["notes"][0].get<std::string>().starts_with(unchecked));
  EXPECT_EQ(result["files"][0]["valid"], true);
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
  EXPECT_NE(twins.out.find("between the bindings: binding 'move-17' of 'p0-t0' region 'pool': "), std::string::npos);
  EXPECT_NE(twins.out.find(" share bytes [views-overlap]\n"), std::string::npos) << twins.out;

  const Ended result = run({"validate", "--json", "binding.json", "imposter.json", "placement.json", "snapshot.json"});
  EXPECT_EQ(result.exit_code, 2);
  const json between = json::parse(result.out)["between_bindings"];
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(between[0]["rule"], "instance-endpoint");
  EXPECT_EQ(between[0]["message"], "endpoint '10.0.0.1:4711' belongs to instance 'decode-worker-0' and to 'imposter'");

  // Nothing to say about bindings that are not one instance's.
  write("other.json", to_json(example_binding_without_pages()));
  const std::string fine = output_of({"validate", "binding.json", "other.json", "placement.json", "snapshot.json"});
  EXPECT_EQ(fine.find("between"), std::string::npos) << fine;
}

// --- inspect and digest

TEST_F(Cli, InspectShowsWhoOwnsWhatAndHowManyBytes) {
  output_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--pp-layers", "41,39", "-o", "prefill.json"});
  const std::string text = output_of({"inspect", "prefill.json"});
  EXPECT_TRUE(
      text.starts_with("placement 'prefill': resource kv:cache, revision 1\n"
                       "topology: dp 1 pp 2 tp 8 cp 1 ep 1, 16 participants\n"
                       "cache: 80 layers with a cache, 327,680 bytes per token\n"))
      << text;
  // 41 (39) layers x 1 head x (128 + 128) items x 2 bytes
  EXPECT_EQ(row_of(text, "p0-t0"), "p0-t0 0-40 key,value 0 all 0 of 1 20,992 0");
  EXPECT_EQ(row_of(text, "p1-t7"), "p1-t7 41-79 key,value 7 all 0 of 1 19,968 0");
  EXPECT_TRUE(text.ends_with("digest sha256:" + sha256(without_newline(read("prefill.json"))).hex() + "\n"));
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

TEST_F(Cli, InspectAsJsonIsOneValuePerFile) {
  write_examples();
  output_of({"placement", "--config", kLlama, "--tp", "8", "--pp", "2", "--pp-layers", "41,39", "-o", "prefill.json"});
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
  for (const ExampleDocument& example : example_documents()) {
    SCOPED_TRACE(example.title);
    const std::string text = to_json(example.document);
    const std::string shown = output_of({"inspect", "-"}, text);
    EXPECT_GE(lines_of(shown).size(), 4u);
    EXPECT_TRUE(shown.ends_with("digest sha256:" + sha256(text).hex() + "\n")) << shown;
    const json as_json = json::parse(output_of({"inspect", "--json", "-"}, text));
    EXPECT_EQ(as_json["document"], json::parse(text));
    EXPECT_EQ(as_json["digest"], sha256(text).hex());
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
  const std::string digest = "0891be7b92eddac5a420f3c65d4ef2d9f223f912f81c81457ad30409b794bf56";  // docs/formats.md
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
  EXPECT_EQ(json::parse(text), json({{{"digest", sha256(without_newline(read("topology.json"))).hex()},
                                      {"path", "topology.json"},
                                      {"schema", "crossdock.topology"}},
                                     {{"digest", sha256(without_newline(read("snapshot.json"))).hex()},
                                      {"path", "snapshot.json"},
                                      {"schema", "crossdock.snapshot"}}}));
}

// --- convert

TEST_F(Cli, ConvertBringsMooncakePlacementsThereAndBack) {
  for (const std::string name : {"placement_gqa_pp2_tp2.json", "placement_dp2.json", "placement_replicas.json"}) {
    SCOPED_TRACE(name);
    const std::string foreign = read_text(kGolden + name);
    output_of({"convert", "--from", "mooncake", kGolden + name, "-o", name});
    EXPECT_TRUE(output_of({"validate", name}).starts_with(name + ": valid placement, "));
    EXPECT_EQ(without_newline(output_of({"convert", "--to", "mooncake", name})), foreign);
    EXPECT_EQ(output_of({"convert", "--from", "mooncake", "-"}, foreign), read(name));
  }
}

TEST_F(Cli, ConvertBringsSnapshotsAndBindingsThereAndBack) {
  const std::vector<std::string> beside = {"--placement", "placement.json", "--snapshot", "snapshot.json"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), beside.begin(), beside.end());
    return arguments;
  };
  output_of({"convert", "--from", "mooncake", kGolden + "placement_gqa_pp2_tp2.json", "-o", "placement.json"});
  output_of({"convert", "--from", "mooncake", kGolden + "snapshot.json", "--placement", "placement.json", "-o",
             "snapshot.json"});
  output_of(with({"convert", "--from", "mooncake", kGolden + "binding.json", "-o", "binding.json"}));
  EXPECT_EQ(output_of({"validate", "placement.json", "snapshot.json", "binding.json"}).find("note"), std::string::npos);
  EXPECT_EQ(without_newline(output_of({"convert", "--to", "mooncake", "snapshot.json"})),
            read_text(kGolden + "snapshot.json"));
  EXPECT_EQ(without_newline(output_of(with({"convert", "--to", "mooncake", "binding.json"}))),
            read_text(kGolden + "binding.json"));
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
  EXPECT_EQ(complete("crossdock validate cross"), "crossdock.bash\n");
  const std::string all = complete("crossdock ''");
  for (const std::string& command : commands()) EXPECT_NE(all.find(command), std::string::npos) << command;
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

// --- what must not happen

TEST_F(Cli, VerboseLinesGoToStandardError) {
  write_examples();
  const Ended loud = run({"-v", "validate", "placement.json"});
  EXPECT_EQ(loud.exit_code, 0);
  EXPECT_EQ(loud.out, output_of({"validate", "placement.json"}));
  EXPECT_TRUE(loud.err.starts_with("crossdock: placement.json: ")) << loud.err;
  EXPECT_EQ(run({"validate", "placement.json", "--verbose"}).out, loud.out);
}

TEST_F(Cli, ControlCharactersInADocumentAreEscaped) {
  json placement = json::parse(to_json(example_placement()));
  placement["name"] = "red\x1b[31m\nline";
  placement["topology"]["participants"][0]["id"] = "p0\ttab";
  placement["parts"][0]["participant"] = "p0\ttab";
  write("in.json", placement.dump());
  const std::string shown = output_of({"inspect", "in.json"});
  EXPECT_FALSE(has_control_character(shown)) << shown;
  EXPECT_TRUE(shown.starts_with("placement 'red\\x1b[31m\\x0aline': ")) << shown;
  EXPECT_NE(shown.find("\np0\\x09tab "), std::string::npos) << shown;

  placement["parts"][1]["owns"] = json::array();
  placement["parts\r"] = 1;
  write("in.json", placement.dump());
  const Ended result = run({"validate", "in.json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_FALSE(has_control_character(result.out)) << result.out;
  EXPECT_NE(result.out.find("field 'parts\\x0d' is unknown"), std::string::npos) << result.out;
}

TEST_F(Cli, ControlCharactersInArgumentsAreEscaped) {
  write_examples();
  fs::copy(work("placement.json"), work("a\x1b[31m\n.json"));
  const std::vector<std::vector<std::string>> table = {
      {"validate", "a\x1b[31m\n.json"},
      {"digest", "a\x1b[31m\n.json"},
      {"inspect", "none\x1b[31m.json"},
      {"-v", "validate", "a\x1b[31m\n.json"},
      {"placement", "--config", kLlama, "-o", "out.json", "--name", "\x1b[31m"},
      {"placement", "--config", kLlama, "-o", "b\x1b[31m.json"},
      {"schema", "--config", kLlama, "-o", "none\x1b[31m/out.json"},
      {"frobnicate\x1b[31m"},
  };
  for (const std::vector<std::string>& arguments : table) {
    const Ended result = run(arguments);
    EXPECT_FALSE(has_control_character(result.out + result.err)) << json(arguments).dump() << "\n"
                                                                 << result.out << result.err;
  }
}

TEST_F(Cli, AFileNameThatIsNotUtf8IsNoProblem) {
  write("a\xff.json", to_json(example_topology()));
  for (const std::string command : {"validate", "digest", "inspect"}) {
    EXPECT_EQ(run({command, "a\xff.json"}).exit_code, 0) << command;
    const Ended result = run({command, "--json", "a\xff.json"});
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
    EXPECT_TRUE(json::accept(result.out)) << command << ": " << result.out;
  }
}

// --- bad input

struct BadInput {
  std::string line;  // what one line of the output begins with or, after "...", ends with
  std::vector<std::string> arguments;
  std::string text = {};  // of the file in.json
};

using Mutate = std::function<void(json&)>;

template <class Document>
std::string mutated(const Valid<Document>& document, const Mutate& mutate) {
  json value = json::parse(to_json(document));
  mutate(value);
  return value.dump();
}

std::string config_with(const Mutate& mutate) {
  json config = json::parse(read_text(kLlama));
  mutate(config);
  return config.dump();
}

const std::vector<std::string> kValidate = {"validate", "in.json"};
const std::vector<std::string> kSchema = {"schema", "--config", "in.json"};

std::vector<BadInput> bad_texts() {
  const std::string topology = to_json(example_topology());
  const auto with_version = [](const std::string& value) {
    return R"({"schema":"crossdock.topology","version":)" + value + "}";
  };
  const std::string syntax = "in.json: document: byte ";
  return {
      {syntax + "1: ", kValidate, ""},
      {syntax, kValidate, " \n"},
      {syntax, kValidate, topology.substr(0, topology.size() - 1)},
      {syntax + std::to_string(topology.size() + 1) + ": ", kValidate, topology + "}"},
      {syntax, kValidate, topology + topology},
      {syntax, kValidate, with_version("NaN")},
      {syntax, kValidate, with_version("1 // one\n")},
      {syntax, kValidate, with_version("1,")},
      {syntax, kValidate, with_version("01")},
      {syntax, kValidate, with_version("0x1")},
      {syntax, kValidate, with_version("'1'")},
      {syntax, kValidate, with_version("\"\xc3\"")},
      {syntax, kValidate, with_version("\"\\ud800\"")},
      {syntax, kValidate, with_version("1e400")},
      {syntax, kValidate, std::string(64, '\0')},
      {"in.json: document: must be an object, not an array [field-type]", kValidate, "[" + topology + "]"},
      {"in.json: document: must be an object, not null [field-type]", kValidate, "null"},
      {"...: nested deeper than the limit of 32 [json-depth]", kValidate, std::string(1000000, '[')},
      {"in.json: document: field 'version' stands there twice [field-repeated]", kValidate,
       with_version(R"(1,"version":1)")},
      {"in.json: document: field 'schema' stands there twice [field-repeated]", kValidate,
       with_version(R"(1,"\u0073chema":"crossdock.topology")")},
      {"in.json: document version: -1 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("-1")},
      {"in.json: document version: 1.5 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("1.5")},
      {"in.json: document version: 1e0 is not an integer from 0 to 18446744073709551615 [field-integer]", kValidate,
       with_version("1e0")},
      {"in.json: document version: 18446744073709551616 is not an integer from 0 to 18446744073709551615 "
       "[field-integer]",
       kValidate, with_version("18446744073709551616")},
      {"in.json: document version: must be an integer, not a boolean [field-type]", kValidate, with_version("true")},
      {"in.json: document version: must be an integer, not a string [field-type]", kValidate, with_version("\"1\"")},
      {"in.json: document version: must be an integer, not null [field-type]", kValidate, with_version("null")},
      {"in.json: document version: version 2 of 'crossdock.topology' is unknown; this program reads version 1 "
       "[schema-version]",
       kValidate, with_version("2")},
      {"in.json: document schema: 'crossdock.plan' is not one of crossdock.binding, ", kValidate,
       R"({"schema":"crossdock.plan","version":1})"},
      {"in.json: document: field 'schema' is missing [field-missing]", kValidate, "{}"},
  };
}

std::vector<BadInput> bad_placements() {
  const auto placement = [](const Mutate& mutate) { return mutated(example_placement(), mutate); };
  const std::string decode = "in.json: placement 'decode' ";
  return {
      {"...topology.participants[0]: field 'colour' is unknown [field-unknown]", kValidate,
       placement([](json& d) { d["topology"]["participants"][0]["colour"] = "red"; })},
      {"...parts[1]: field 'participant' is missing [field-missing]", kValidate,
       placement([](json& d) { d["parts"][1].erase("participant"); })},
      {"...parts[0].owns[0].heads[0]: interval [1,0) ends before it begins [intervals]", kValidate,
       placement([](json& d) {
         d["parts"][0]["owns"][0]["heads"] = {{1, 0}};
       })},
      {"...resource: a name must not be empty [name]", kValidate, placement([](json& d) { d["resource"] = ""; })},
      {"...participant 'p0-t1': tp rank 2 is not below the tp size 2 [rank-bounds]", kValidate,
       placement([](json& d) { d["topology"]["participants"][1]["rank"]["tp"] = 2; })},
      {"in.json: placement 'decode': participant 'p1-t1' has no part [part-missing]", kValidate,
       placement([](json& d) { d["parts"].erase(3); })},
      {decode + "dp 0: layers 0-1 component key heads [1,2): no owner [coverage-gap]", kValidate,
       placement([](json& d) { d["parts"][1]["owns"] = json::array(); })},
      {decode + "dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 1), 'p0-t1' (0 of 1) own the same, and are "
                "not declared replicas [coverage-overlap]",
       kValidate, placement([](json& d) {
         d["parts"][1]["owns"][0]["heads"] = {{0, 2}};
       })},
      {decode + "dp 0: layers 0-1 component key heads [0,1): 'p0-t0' (0 of 2) do not make the set of replicas 0 to 1 "
                "[replica-set]",
       kValidate, placement([](json& d) { d["parts"][0]["owns"][0]["replica"]["count"] = 2; })},
      {decode + "part 'p0-t1': heads [1,3) end past head count 2 (component key, layers 0-1) [head-bounds]", kValidate,
       placement([](json& d) {
         d["parts"][1]["owns"][0]["heads"] = {{1, 3}};
       })},
      {decode + "part 'p0-t0': layers 7 are not in the cache schema (layers 0-3) [layer-unknown]", kValidate,
       placement([](json& d) {
         d["parts"][0]["owns"][0]["layers"] = {{0, 2}, {7, 8}};
       })},
      {decode + "part 'p0-t0': layers 0-1 have no component 'latent' [component-unknown]", kValidate,
       placement([](json& d) { d["parts"][0]["owns"][0]["components"] = {"latent"}; })},
  };
}

std::vector<BadInput> bad_views() {
  const auto binding = [](const Mutate& mutate) { return mutated(example_binding(), mutate); };
  const auto manifest = [](const Mutate& mutate) { return mutated(example_store_manifest(), mutate); };
  const std::string zeros(64, '0');
  return {
      {"...region 'pool': 1024 bytes are more than the 1000 that device 'gpu0' can register; split the region "
       "[registration-limit]",
       kValidate, binding([](json& d) { d["devices"][0]["registration_bytes_max"] = 1000; })},
      {"...region 'pool': 1024 bytes from address 18446744073709551615 end past 2^64 [size-overflow]", kValidate,
       binding([](json& d) { d["regions"][0]["address"] = UINT64_MAX; })},
      {"...page table 'pages': slot 5 holds two pages [page-slots]", kValidate, binding([](json& d) {
         d["page_tables"][0]["slots"] = {5, 0, 5};
       })},
      {"...placement_digest: 'sha256:12' is not 64 lower-case hexadecimal digits [digest-text]", kValidate,
       binding([](json& d) { d["placement_digest"] = "sha256:12"; })},
      {"...the view ends at byte 516, region 'request-17/rest' at 512 [view-bounds]", kValidate,
       manifest([](json& d) { d["views"][3]["offset_bytes"] = 388; })},
      {"...head stride 60 is shorter than the 64 bytes of the dim inside it [view-strides]", kValidate,
       manifest([](json& d) { d["views"][3]["stride_bytes"]["head"] = 60; })},
      {"...view 4 (component value, layers 0-1, tokens [0,10), heads [0,2)): shares bytes of region 'request-17/full' "
       "with view 0 (component key, layers 0-1, tokens [0,10), heads [0,2)) [views-overlap]",
       kValidate, manifest([](json& d) { d["views"][4]["offset_bytes"] = 8; })},
      {"in.json: store manifest of 'kv:request-17' snapshot: cache_schema_digest " + zeros +
           " is not that of the manifest's cache schema (897d367453440780",
       kValidate, manifest([&](json& d) { d["snapshot"]["cache_schema_digest"] = zeros; })},
  };
}

std::vector<BadInput> bad_models() {
  const std::string llama = "in.json: model config 'LlamaForCausalLM' ";
  const auto split = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"placement", "--config", kLlama});
    return arguments;
  };
  const std::string refused = "crossdock: error: placement 'placement': ";
  return {
      {"in.json: model config architectures: 'AbacusForCausalLM' is not known; known: ", kSchema,
       config_with([](json& c) { c["architectures"] = {"AbacusForCausalLM"}; })},
      {"in.json: model config architectures: is missing; known: ", kSchema, "{}"},
      {llama + "num_hidden_layers: is missing; LlamaForCausalLM needs it [config-field]", kSchema,
       config_with([](json& c) { c.erase("num_hidden_layers"); })},
      {llama + "num_hidden_layers: -80 is not an integer from 0 to 18446744073709551615 [field-integer]", kSchema,
       config_with([](json& c) { c["num_hidden_layers"] = -80; })},
      {llama + "num_hidden_layers: 9223372036854775808 layers, more than the limit of 100000 [config-field]", kSchema,
       config_with([](json& c) { c["num_hidden_layers"] = uint64_t{1} << 63; })},
      {llama + "num_key_value_heads: 3 does not divide num_attention_heads 64 [config-field]", kSchema,
       config_with([](json& c) { c["num_key_value_heads"] = 3; })},
      {llama + "torch_dtype: 'float31' is not a dtype with a known item size [config-field]", kSchema,
       config_with([](json& c) { c["torch_dtype"] = "float31"; })},
      {"...: 64 heads x 9223372036854775808 x 2 bytes do not fit in 64 bits [size-overflow]", kSchema,
       config_with([](json& c) {
         c["num_key_value_heads"] = 64;
         c["head_dim"] = uint64_t{1} << 63;
       })},
      {"...option kv_scales: needs an fp8 kv_dtype, not bfloat16 [config-field]",
       {"schema", "--config", kLlama, "--kv-scales"}},
      {refused + "8 heads (component key) cannot be shared out over tp 3: neither divides the other; ",
       split({"--tp", "3"})},
      {refused + "the stages have 41+40 layers together, the model has 80 [partition]",
       split({"--pp", "2", "--pp-layers", "41,40"})},
      {refused + "1 stages are given layers, but pp is 2 [partition]", split({"--pp", "2", "--pp-layers", "80"})},
      {refused + "dp 1024 x pp 1024 x tp 1024 x cp 1 are more than 1048576 participants [partition]",
       split({"--dp", "1024", "--pp", "1024", "--tp", "1024"})},
      {refused + "a context-parallel block of 0 tokens is below 1 [partition]",
       split({"--cp", "2", "--cp-block", "0"})},
      {refused + "resource must have 1 to 256 bytes of UTF-8 [name]", split({"--resource", ""})},
  };
}

std::vector<BadInput> bad_conversions() {
  const auto from = [](const std::string& name) {
    return std::vector<std::string>{"convert", "--from", "mooncake", kGolden + name};
  };
  return {
      {"...placement_digest: the content gives f10271271ddd7fc32f812379c43567405c4b05dafdb7a34d1917d202b90a2bc9 "
       "[foreign-digest]",
       from("bad_digest.json")},
      {"...dp 0: layers 0-1 component key heads [3,4): no owner [coverage-gap]", from("bad_head_gap.json")},
      {"...parts[0].layer_ids: layer 1 is listed twice [layer-repeated]", from("bad_layer_twice.json")},
      {"...descriptor.layout: must be 'nhd' [field-choice]", from("bad_layout.json")},
      {"crossdock: error: a snapshot names other documents by digest: give --placement", from("snapshot.json")},
      {"crossdock: error: a binding names other documents by digest: give --placement and --snapshot",
       from("binding.json")},
      {"crossdock: error: 'in.json' is not a Mooncake placement, snapshot or resolved binding",
       {"convert", "--from", "mooncake", "in.json"},
       to_json(example_topology())},
      {"crossdock: error: Mooncake has no document for a crossdock.topology",
       {"convert", "--to", "mooncake", "in.json"},
       to_json(example_topology())},
      {"in.json: placement 'decode' cache_schema: 3 layer groups, must be one [foreign-form]",
       {"convert", "--to", "mooncake", "in.json"},
       to_json(example_placement())},
  };
}

std::vector<BadInput> bad_files() {
  return {
      {"crossdock: error: cannot open 'none.json': No such file or directory", {"validate", "none.json"}},
      {"crossdock: error: cannot open 'none.json': No such file or directory", {"schema", "--config", "none.json"}},
      {"crossdock: error: cannot open '': No such file or directory", {"inspect", ""}},
      {"crossdock: error: cannot read '.': Is a directory", {"digest", "."}},
      {"crossdock: error: cannot read '.': Is a directory", {"placement", "--schema", "."}},
      {"in.json: document schema: 'crossdock.snapshot' stands where 'crossdock.cache_schema' is needed [schema-name]",
       {"placement", "--schema", "in.json"},
       to_json(example_snapshot())},
      {"in.json: document schema: 'crossdock.topology' stands where 'crossdock.placement' is needed [schema-name]",
       {"convert", "--from", "mooncake", kGolden + "snapshot.json", "--placement", "in.json"},
       to_json(example_topology())},
  };
}

bool has_line(const std::string& text, const std::string& wanted) {
  const bool is_end = wanted.starts_with("...");
  for (const std::string& line : lines_of(text))
    if (is_end ? line.ends_with(wanted.substr(3)) : line.starts_with(wanted)) return true;
  return false;
}

TEST_F(Cli, BadInput) {
  for (const auto& table : {bad_texts(), bad_placements(), bad_views(), bad_models(), bad_conversions(), bad_files()}) {
    for (const BadInput& bad : table) {
      SCOPED_TRACE(json(bad.arguments).dump() + " " + bad.line);
      write("in.json", bad.text);
      const Ended result = run(bad.arguments);
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_TRUE(has_line(result.out + result.err, bad.line)) << result.out << result.err;
      EXPECT_FALSE(has_control_character(result.out + result.err)) << result.out << result.err;
      // Faults are what validate is asked for; elsewhere nothing stands where a result is expected.
      const bool is_result = bad.arguments[0] == "validate" && !bad.line.starts_with("crossdock: ");
      EXPECT_EQ(is_result ? result.err : result.out, "");
    }
  }
  EXPECT_EQ(files(), std::vector<std::string>{"in.json"});
}

TEST_F(Cli, BadTextIsBadInEveryCommand) {
  const std::string placement = to_json(example_placement());
  write("in.json", placement.substr(0, placement.size() - 1));
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"inspect", "in.json"},
                                                    {"digest", "in.json"},
                                                    {"schema", "--config", "in.json"},
                                                    {"schema", "--schema", "in.json"},
                                                    {"placement", "--config", "in.json"},
                                                    {"placement", "--schema", "in.json"},
                                                    {"convert", "--from", "mooncake", "in.json"},
                                                    {"convert", "--to", "mooncake", "in.json"}}) {
    SCOPED_TRACE(json(arguments).dump());
    const Ended result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("byte " + std::to_string(placement.size())), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("[json-syntax]"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace crossdock::testing
