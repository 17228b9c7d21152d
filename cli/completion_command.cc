#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"

namespace crossdock::cli {
namespace {

struct Word {
  std::string text;  // "--output", "-o"
  bool takes_value;
};

std::vector<Word> words_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames()) words.push_back({"--" + name, takes_value});
    for (const std::string& name : option->get_snames()) words.push_back({"-" + name, takes_value});
  }
  return words;
}

std::string texts_of(const CLI::App& app) {
  std::string texts;
  for (const Word& word : words_of(app)) texts += word.text + " ";
  return texts;
}

// A command, or a command of a command: "store put".
struct Path {
  std::string text;
  const CLI::App* command;
};

void add_paths(const CLI::App& app, const std::string& before, std::vector<Path>& paths) {
  for (const CLI::App* command : app.get_subcommands({})) {
    paths.push_back({before + command->get_name(), command});
    add_paths(*command, paths.back().text + " ", paths);
  }
}

std::vector<Path> paths_of(const CLI::App& app) {
  std::vector<Path> paths;
  add_paths(app, "", paths);
  return paths;
}

std::string names_of_commands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) names += command->get_name() + " ";
  return names;
}

std::string bash_script(const CLI::App& app) {
  std::string known = "|";
  std::string cases;
  for (const Path& path : paths_of(app)) {
    known += path.text + "|";
    cases += fmt::format("    \"{}\") words=\"{}--verbose\" names=\"{}\" ;;\n", path.text, texts_of(*path.command),
                         names_of_commands(*path.command));
  }
  return fmt::format(R"(# bash completion for crossdock: source this file, or put it in /etc/bash_completion.d
_crossdock() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command="" words="" names="" i next
  local known="{}"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{command:+$command }}${{COMP_WORDS[i]}}"
    if [[ $known == *"|$next|"* ]]; then command=$next; fi
  done
  case $command in
    "") words="{}{}" ;;
{}  esac
  case $current:$previous in
    -*) ;;
    *:--engine) words="vllm sglang" ;;
    *:--axis-order) words="nhd hnd" ;;
    *:completion) words="bash zsh fish" ;;
    *:--from|*:--to) if [[ $command == convert ]]; then words="mooncake"; else words=""; fi ;;
    *) if [[ -n $command ]]; then words=$names; fi ;;
  esac
  # Nothing to offer: the shell completes file names.
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _crossdock crossdock
)",
                     known, names_of_commands(app), texts_of(app), cases);
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

// That all words of the path have been typed.
std::string seen_in_fish(const std::string& path) {
  std::string condition;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(' ', begin), path.size());
    condition +=
        fmt::format("{}__fish_seen_subcommand_from {}", begin == 0 ? "" : "; and ", path.substr(begin, end - begin));
    begin = end + 1;
  }
  return condition;
}

std::string fish_script(const CLI::App& app) {
  std::string script = "# fish completion for crossdock: put it in ~/.config/fish/completions\n";
  for (const CLI::App* command : app.get_subcommands({}))
    script += fmt::format("complete -c crossdock -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                          in_quotes(command->get_description()));
  for (const Path& path : paths_of(app)) {
    for (const CLI::App* command : path.command->get_subcommands({}))
      script += fmt::format("complete -c crossdock -n '{}' -a {} -d {}\n", seen_in_fish(path.text), command->get_name(),
                            in_quotes(command->get_description()));
    for (const Word& word : words_of(*path.command)) {
      const bool is_long = word.text.starts_with("--");
      script += fmt::format("complete -c crossdock -n '{}' {} {}{}\n", seen_in_fish(path.text), is_long ? "-l" : "-s",
                            word.text.substr(is_long ? 2 : 1), word.takes_value ? " -r" : "");
    }
  }
  script += "complete -c crossdock -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  return script;
}

}  // namespace

void add_completion_command(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("SHELL");
  command->footer(R"(Example:
  source <(crossdock completion bash))");
  command->callback([&app, shell, &outcome] {
    print(*shell == "bash" ? bash_script(app) : *shell == "zsh" ? zsh_script(app) : fish_script(app));
    outcome.exit_code = kDone;
  });
}

}  // namespace crossdock::cli
