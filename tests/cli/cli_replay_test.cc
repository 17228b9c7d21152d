// `crossdock replay` as a person uses it, with recordings of runs of this build.
#include <algorithm>

#include "tests/cli/run_program.h"
#include "tests/support/recorded_runs.h"

namespace crossdock::testing {
namespace {

class CliReplay : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    for (const RecordedRun& run : plain_recordings()) {
      std::string name = run.name + ".jsonl";
      std::replace(name.begin(), name.end(), '/', '-');
      std::replace(name.begin(), name.end(), ' ', '-');
      write(name, run.text);
    }
  }
  // The number and the text of the first line that has this in it.
  size_t line_with(const std::string& name, const std::string& what) const {
    const std::vector<std::string> lines = lines_of(read(name));
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find(what) != std::string::npos) return i;
    ADD_FAILURE() << name << " has no " << what;
    return 0;
  }
  void write_lines(const std::string& name, const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write(name, text);
  }
};

TEST_F(CliReplay, TellsTheStatesOfARunAndThatItIsTheSame) {
  EXPECT_EQ(output_of({"replay", "upload.jsonl"}),
            "upload.jsonl: upload, 11 rounds, 10 posts, 10 completions\n"
            "           0.000000000 s  pinning\n"
            "           0.000000000 s  beginning\n"
            "           0.000000000 s  putting\n"
            "           0.000000000 s  committing\n"
            "           0.000000000 s  releasing\n"
            "           0.000000000 s  finished\n"
            "same as recorded\n");
}

TEST_F(CliReplay, TakesAllRecordingsOfARunAtOnce) {
  std::vector<std::string> arguments = {"replay"};
  for (const std::string& name : files()) arguments.push_back(name);
  const std::string out = output_of(arguments);
  size_t count = 0;
  for (const std::string& line : lines_of(out)) count += line == "same as recorded";
  EXPECT_EQ(count, files().size());
  EXPECT_EQ(count, 9u);
  EXPECT_EQ(output_of({"replay", "-"}, read("restore.jsonl")).substr(0, 12), "-: restore, ");
}

TEST_F(CliReplay, ADifferenceIsToldAndIsAFailure) {
  std::vector<std::string> lines = lines_of(read("restore.jsonl"));
  const size_t at = line_with("restore.jsonl", "\"call\":\"get\"");
  const size_t digits = lines[at].find("\"steps\":") - 3;
  lines[at][digits] = lines[at][digits] == '0' ? '1' : '0';
  write_lines("changed.jsonl", lines);
  const Ended ended = run({"replay", "changed.jsonl"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.err, "");
  const std::vector<std::string> out = lines_of(ended.out);
  ASSERT_GE(out.size(), 4u);
  const std::string place = "(line " + std::to_string(at + 1) + ") on, in its post ";
  EXPECT_NE(out[out.size() - 3].find(place), std::string::npos) << ended.out;
  EXPECT_TRUE(out[out.size() - 2].starts_with("  recorded: {\"call\":\"get\",")) << ended.out;
  EXPECT_TRUE(out[out.size() - 1].starts_with("  replayed: {\"call\":\"get\",")) << ended.out;

  const json report = json::parse(run({"replay", "--json", "changed.jsonl"}).out);
  EXPECT_EQ(report["same"], false);
  EXPECT_EQ(report["difference"]["line"], at + 1);
  EXPECT_NE(report["difference"]["recorded"], report["difference"]["replayed"]);
  EXPECT_TRUE(report["difference"]["what"].get<std::string>().starts_with("post "));
}

TEST_F(CliReplay, JsonHasAllThatIsPrinted) {
  const json report = json::parse(output_of({"replay", "source-p0-t0.jsonl", "--json"}));
  EXPECT_EQ(report["path"], "source-p0-t0.jsonl");
  EXPECT_EQ(report["protocol"], "writer");
  EXPECT_EQ(report["same"], true);
  EXPECT_EQ(report["finished"], true);
  EXPECT_FALSE(report.contains("difference"));
  EXPECT_EQ(report["states"].front(), (json{{"state", "pinning"}, {"time_ns", 1'000'000'000}}));
  EXPECT_EQ(report["states"].back()["state"], "finished");
  EXPECT_GT(report["round_count"].get<int>(), 10);
  EXPECT_GT(report["post_count"].get<int>(), 10);
  EXPECT_GT(report["completion_count"].get<int>(), 10);
}

// What the program runs is what it records, options included.
TEST_F(CliReplay, EveryRecordingOfATransferIsReplayed) {
  for (const std::string& fail : {std::string(), std::string("copy"), std::string("bit")}) {
    std::vector<std::string> usage = {"reshard", "--config", kLlama, "--from",  "tp2",      "--to",
                                      "tp4",     "--tokens", "20",   "--quiet", "--record", "runs" + fail};
    if (!fail.empty()) usage.insert(usage.end(), {"--fail", fail});
    EXPECT_EQ(run(usage).exit_code, fail.empty() ? 0 : 1);
    size_t count = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(work("runs" + fail))) {
      const Ended ended = run({"replay", entry.path().string()});
      EXPECT_EQ(ended.exit_code, 0) << entry.path() << "\n" << ended.out << ended.err;
      ++count;
    }
    EXPECT_EQ(count, 7u) << "two sources, four targets and the coordinator";
  }
}

TEST_F(CliReplay, ARunThatWasCutOffIsTheSameAsFarAsItGoes) {
  std::vector<std::string> lines = lines_of(read("coordinator.jsonl"));
  lines.resize(lines.size() - 2);
  write_lines("cut.jsonl", lines);
  EXPECT_EQ(lines_of(output_of({"replay", "cut.jsonl"})).back(),
            "same as recorded, as far as that goes: it has no end");
}

TEST_F(CliReplay, WhatIsNoRecordingIsRefusedWithItsLine) {
  write_examples();
  std::vector<std::string> lines = lines_of(read("upload.jsonl"));
  lines.erase(lines.begin() + 1);
  write_lines("without.jsonl", lines);
  write("empty.jsonl", "");
  EXPECT_NE(refusal_of({"replay", "binding.json"}).find("binding.json: line 1 schema: 'crossdock.binding'"),
            std::string::npos)
      << refusal_of({"replay", "binding.json"});
  EXPECT_NE(refusal_of({"replay", "without.jsonl"}).find("no line before it has the crossdock."), std::string::npos);
  EXPECT_NE(refusal_of({"replay", "empty.jsonl"}).find("begins with a header"), std::string::npos);
  EXPECT_NE(refusal_of({"replay", "absent.jsonl"}).find("absent.jsonl"), std::string::npos);
  // The others are replayed all the same.
  const Ended both = run({"replay", "empty.jsonl", "upload.jsonl"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(lines_of(both.out).back(), "same as recorded");
}

}  // namespace
}  // namespace crossdock::testing
