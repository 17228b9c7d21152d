#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "base/number_text.h"
#include "cli/help_text.h"
#include "cli/output.h"

namespace crossdock::cli {
namespace {

// Exceptions of CLI11 stay in this file. Its callbacks write values while it parses, and the action of the command runs
// last; an action that throws passes through it unchanged.

// How many single letters have to be inserted, removed or replaced.
// Levenshtein's, with one row of the table.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::string message = "unknown command '" + word + "'";
  for (const CLI::App* command : app.get_subcommands({}))
    if (edit_distance(word, command->get_name()) <= 2) return message + "; did you mean '" + command->get_name() + "'?";
  return message + "; 'crossdock --help' lists the commands";
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  // No command was recognised: name the word that should have been one, instead of the first option behind it.
  if (app.get_subcommands().empty()) {
    int first = 1;
    for (const std::string_view flag : {"-v", "--verbose"})
      if (first < argc && argv[first] == flag) ++first;
    if (first < argc && argv[first][0] != '-') return unknown_command(app, argv[first]);
  }
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::string help = "crossdock";
  for (const CLI::App* command : app.get_subcommands()) help += " " + command->get_name();
  return message + " ('" + help + " --help' shows how it is used)";
}

// Breaks the lines of descriptions.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), description_columns());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             wrapped(command->get_description(), description_columns()), get_column_width());
    return out.str();
  }

 private:
  size_t description_columns() const { return kHelpColumns - get_column_width(); }
};

// CLI11 takes -1 for 2^64 - 1 and 010 for 8; so numbers are read here.
uint64_t bounded(const std::string& names, const std::string& text, uint64_t minimum, uint64_t maximum) {
  const std::optional<uint64_t> number = decimal(text);
  if (!number || *number < minimum || *number > maximum)
    throw CLI::ValidationError(names, fmt::format("'{}' is not an integer from {} to {}", text, minimum, maximum));
  return *number;
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values).description(""));
  return *this;
}

Command Command::subcommand(const std::string& name, const std::string& description) {
  return Command(app_->add_subcommand(name, description), exit_code_);
}

Command Command::requires_subcommand() {
  app_->require_subcommand(1);
  return *this;
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

Option Command::counted_flag(const std::string& names, std::function<void(size_t)> set, const std::string& help) {
  const std::function<void(int64_t)> count = [set = std::move(set)](int64_t times) { set(static_cast<size_t>(times)); };
  return Option(app_->add_flag(names, count, help));
}

Option Command::text(const std::string& names, std::string& value, const std::string& type, const std::string& help) {
  const auto not_empty = [](const std::string& text) { return text.empty() ? "must not be empty" : std::string(); };
  const std::string text = value.empty() ? help : fmt::format("{} (default {})", help, value);
  return Option(app_->add_option(names, value, text)->type_name(type)->check(CLI::Validator(not_empty, "")));
}

Option Command::any_text(const std::string& names, std::string& value, const std::string& type,
                         const std::string& help) {
  return Option(app_->add_option(names, value, help)->type_name(type));
}

Option Command::any_text(const std::string& names, std::optional<std::string>& value, const std::string& type,
                         const std::string& help) {
  return Option(app_->add_option(names, value, help)->type_name(type));
}

Option Command::texts(const std::string& names, std::vector<std::string>& values, const std::string& type,
                      const std::string& help) {
  return Option(app_->add_option(names, values, help)->type_name(type));
}

Option Command::parsed(const std::string& names, std::function<Status(const std::string&)> set, const std::string& type,
                       const std::string& help) {
  const auto checked = [names, set = std::move(set)](const std::string& text) {
    if (const Status status = set(text); !status.ok()) throw CLI::ValidationError(names, status.message());
  };
  return Option(app_->add_option_function<std::string>(names, checked, help)->type_name(type));
}

Option Command::number(const std::string& names, uint64_t& value, uint64_t minimum, uint64_t maximum,
                       const std::string& help) {
  const auto set = [&value, names, minimum, maximum](const std::string& text) {
    value = bounded(names, text, minimum, maximum);
  };
  const std::string text = value == 0 ? help : fmt::format("{} (default {})", help, value);
  return Option(app_->add_option_function<std::string>(names, set, text)->type_name("N"));
}

Option Command::number(const std::string& names, std::optional<uint64_t>& value, uint64_t minimum, uint64_t maximum,
                       const std::string& help) {
  const auto set = [&value, names, minimum, maximum](const std::string& text) {
    value = bounded(names, text, minimum, maximum);
  };
  return Option(app_->add_option_function<std::string>(names, set, help)->type_name("N"));
}

Option Command::numbers(const std::string& names, std::vector<uint64_t>& values, const std::string& help) {
  const auto set = [&values, names](const std::string& text) {
    values.clear();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find_first_of(",:", begin), text.size());
      const std::optional<uint64_t> number = decimal(std::string_view(text).substr(begin, end - begin));
      if (!number) throw CLI::ValidationError(names, fmt::format("'{}' is not a list of integers like 2,2,1,1", text));
      values.push_back(*number);
      begin = end + 1;
    }
  };
  return Option(app_->add_option_function<std::string>(names, set, help)->type_name("N,N,..."));
}

Command Command::explain(const std::string& details, const std::vector<std::string>& examples) {
  const std::string text = details.empty() ? "" : wrapped(details, kHelpColumns) + "\n\n";
  app_->footer(text + examples_text(examples));
  return *this;
}

Command Command::action(std::function<int()> run) {
  app_->callback([run = std::move(run), exit_code = exit_code_] { *exit_code = run(); });
  return *this;
}

std::string Command::name() const { return app_->get_name(); }

std::string Command::description() const { return app_->get_description(); }

std::vector<Command> Command::subcommands() const {
  std::vector<Command> commands;
  for (CLI::App* command : app_->get_subcommands({})) commands.push_back(Command(command, exit_code_));
  return commands;
}

std::vector<OptionName> Command::option_names() const {
  std::vector<OptionName> names;
  for (const CLI::Option* option : app_->get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames()) names.push_back({"--" + name, takes_value});
    for (const std::string& name : option->get_snames()) names.push_back({"-" + name, takes_value});
  }
  return names;
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->set_version_flag("--version", name + " " + version);
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return Command(app_.get(), &exit_code_); }

namespace {

// The error for a word in the place of a command that is none, with '--help' behind it: the parser would answer that
// without looking at the word. Empty when there is none.
std::string unknown_command_with_help(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::none_of(words.begin(), words.end(),
                   [](const std::string& word) { return word == "--help" || word == "-h"; }))
    return {};
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto commands = at->get_subcommands({});
    if (word.empty() || word.front() == '-' || commands.empty()) continue;
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* command) { return command->get_name() == word; });
    if (found == commands.end()) return unknown_command(*at, word);
    at = *found;
  }
  return {};
}

}  // namespace

int CommandLine::run(int argc, const char* const* argv) {
  // So that the program's own options are taken behind a command too.
  for (CLI::App* command : app_->get_subcommands({})) command->fallthrough();
  if (const std::string unknown = unknown_command_with_help(*app_, argc, argv); !unknown.empty())
    return fail(kBadInput, unknown);
  try {
    app_->parse(argc, argv);
    if (!app_->get_subcommands().empty()) return exit_code_;
    std::fputs(app_->help().c_str(), stderr);
    return kBadInput;
  } catch (const CLI::Success& help) {  // or the version
    app_->exit(help);
    return kDone;
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, usage_error(*app_, error, argc, argv));
  }
}

}  // namespace crossdock::cli
