#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"

namespace crossdock::cli {
namespace {

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  for (const CLI::App* inner : app.get_subcommands({}))  // option groups are nameless subcommands
    if (inner->get_name().empty())
      for (const std::string& word : words_of(*inner)) words.push_back(word);
  return words;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_name().empty()) commands.push_back(command);
  return commands;
}

std::string bash_script(const CLI::App& app) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    names += command->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(words_of(*command), " "));
  }
  return fmt::format(R"(# bash completion for crossdock: source this file, or put it in /etc/bash_completion.d
_crossdock() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=""
  case ${{COMP_WORDS[1]}} in
{}    *) words="{}{}" ;;
  esac
  if [[ $COMP_CWORD -eq 1 ]]; then words="{}{}"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ $COMP_CWORD -gt 1 && $current != -* ]]; then COMPREPLY=($(compgen -f -- "$current")); fi
}}
complete -o filenames -F _crossdock crossdock
)",
                     cases, names, fmt::join(words_of(app), " "), names, fmt::join(words_of(app), " "));
}

std::string zsh_script(const CLI::App& app) {
  return "#compdef crossdock\n# zsh completion for crossdock: source this file after compinit\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(app);
}

// For single quotes in fish.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string script = "# fish completion for crossdock: put it in ~/.config/fish/completions\n";
  for (const CLI::App* command : commands_of(app)) {
    script += fmt::format("complete -c crossdock -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                          in_quotes(command->get_description()));
    for (const std::string& word : words_of(*command)) {
      const bool is_long = word.starts_with("--");
      script += fmt::format("complete -c crossdock -n '__fish_seen_subcommand_from {}' {} {}\n", command->get_name(),
                            is_long ? "-l" : "-s", word.substr(is_long ? 2 : 1));
    }
  }
  return script;
}

}  // namespace

void add_completion_command(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  command->footer(R"(Example:
  source <(crossdock completion bash))");
  command->callback([&app, shell, &outcome] {
    print(*shell == "bash" ? bash_script(app) : *shell == "zsh" ? zsh_script(app) : fish_script(app));
    outcome.exit_code = kDone;
  });
}

}  // namespace crossdock::cli
