// Runs the program as a person does, each test in an empty folder of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/example_documents.h"
#include "tests/support/paths.h"

namespace crossdock::testing {

namespace fs = std::filesystem;
using nlohmann::json;

inline const std::string kModels = source_path("examples/models/");
inline const std::string kLlama = kModels + "llama-3.1-70b/config.json";
inline const std::string kGolden = source_path("tests/golden/mooncake/");

inline std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(fs::exists(path)) << path;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Nothing but lines of ASCII that a terminal shows as they are.
inline bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

inline const std::vector<std::string>& commands() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"schema",  "placement", "validate", "inspect",   "digest",
                                    "convert", "snapshot",  "bind",     "plan",      "verify-plan",
                                    "replay",  "reshard",   "store",    "completion"};
    if (program_has_simulation()) all.insert(all.begin(), {"simulate", "check"});
    return all;
  }();
  return names;
}

struct Ended {
  int exit_code = -1;  // 128 + N when signal N ended the program
  std::string out;
  std::string err;
};

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
    arguments.insert(arguments.begin(), program_path());
    return run_program(std::move(arguments), input, out_path);
  }

  // `cpu_seconds_max`: past it the kernel ends the program. `used` gets what it has used.
  Ended run_program(std::vector<std::string> arguments, const std::string& input = "", const std::string& out_path = "",
                    rlim_t cpu_seconds_max = RLIM_INFINITY, rusage* used = nullptr) const {
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
    const int error = posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(error, 0) << pointers[0];
    if (error != 0) return Ended();
    const rlimit limit{cpu_seconds_max, cpu_seconds_max};
    if (cpu_seconds_max != RLIM_INFINITY) {
      EXPECT_EQ(prlimit(pid, RLIMIT_CPU, &limit, nullptr), 0);
    }
    int status = 0;
    EXPECT_EQ(wait4(pid, &status, 0, used), pid);
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

  // What a run with -o, which has to succeed, says on standard error: one line.
  std::string notice_of(const std::vector<std::string>& arguments, const std::string& input = "") const {
    const Ended result = run(arguments, input);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("crossdock: wrote ")) << result.err;
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
    return result.err;
  }

  // What a run that has to be refused says on standard error.
  std::string refusal_of(const std::vector<std::string>& arguments, const std::string& input = "") const {
    const Ended result = run(arguments, input);
    EXPECT_EQ(result.exit_code, 2);
    if (std::find(arguments.begin(), arguments.end(), "--json") == arguments.end())
      EXPECT_EQ(result.out, "");
    else
      EXPECT_EQ(json::parse(result.out).at("exit_status"), 2) << result.out;
    return result.err;
  }

  // In hexadecimal, of a file's bytes, by another program.
  std::string sha256sum(const std::string& name) const { return run_program({"sha256sum", name}).out.substr(0, 64); }

  // One document of each kind in its canonical form: placement.json, binding.json, ...
  void write_examples() const {
    for (const ExampleDocument& example : example_documents()) {
      const std::string name(schema_name(example.document).substr(std::string("crossdock.").size()));
      write(name + ".json", to_json(example.document));
    }
  }

 private:
  fs::path base_;
};

}  // namespace crossdock::testing
