// The command line: commands, options, help and usage errors. Only command_line.cc includes the library that parses it
// (CLI11), because each file that includes it takes seconds longer to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace crossdock::cli {

// A handle of one option, valid as long as its CommandLine.
class Option {
 public:
  Option required();
  // A usage error when both are given.
  Option excludes(const Option& other);
  // A usage error for any other value.
  Option one_of(const std::vector<std::string>& values);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

// A name of an option, as completion scripts need it.
struct OptionName {
  std::string text;  // "--output", "-o"
  bool takes_value;
};

// A handle of a command, valid as long as its CommandLine. Options are named "--name" or "-n,--name"; a name without
// dashes is a positional argument. `type` is the word for the value in the help. Each value is written
// while the command line is parsed, before the action runs, and has to outlive the CommandLine.
class Command {
 public:
  Command subcommand(const std::string& name, const std::string& description);
  // A usage error when none of the subcommands is named.
  Command requires_subcommand();

  Option flag(const std::string& names, bool& value, const std::string& help);
  // Calls set(N) for a flag that is given N times.
  Option counted_flag(const std::string& names, std::function<void(size_t)> set, const std::string& help);

  // Text that is not empty. A value that is not empty before is the default, which the help shows.
  Option text(const std::string& names, std::string& value, const std::string& type, const std::string& help);
  // Text that may be empty.
  Option any_text(const std::string& names, std::string& value, const std::string& type, const std::string& help);
  Option any_text(const std::string& names, std::optional<std::string>& value, const std::string& type,
                  const std::string& help);
  // One text or more.
  Option texts(const std::string& names, std::vector<std::string>& values, const std::string& type,
               const std::string& help);
  // Text that set() reads; the message of its status is the usage error.
  Option parsed(const std::string& names, std::function<Status(const std::string&)> set, const std::string& type,
                const std::string& help);

  // A decimal integer from `minimum` to `maximum`. A value that is not 0 before is the default, which the help shows.
  Option number(const std::string& names, uint64_t& value, uint64_t minimum, uint64_t maximum, const std::string& help);
  Option number(const std::string& names, std::optional<uint64_t>& value, uint64_t minimum, uint64_t maximum,
                const std::string& help);
  // Decimal integers between commas (or colons, where a list has parts), none missing.
  Option numbers(const std::string& names, std::vector<uint64_t>& values, const std::string& help);

  // What the help says after the options: details, whose lines are broken here, and examples, one command each.
  Command explain(const std::string& details, const std::vector<std::string>& examples);
  // Runs the command and returns the exit code.
  Command action(std::function<int()> run);

  // What was declared, in that order.
  std::string name() const;
  std::string description() const;
  std::vector<Command> subcommands() const;
  std::vector<OptionName> option_names() const;

 private:
  friend class CommandLine;
  Command(CLI::App* app, int* exit_code) : app_(app), exit_code_(exit_code) {}

  CLI::App* app_;
  int* exit_code_;  // of the CommandLine
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // The program itself; its subcommands take its options too.
  Command root();

  // Parses, prints help and usage errors, and runs the action of the command that was named. Returns the exit code.
  int run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  int exit_code_ = 0;
};

}  // namespace crossdock::cli
