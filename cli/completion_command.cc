#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace crossdock::cli {
namespace {

// The scripts list commands and options as they were declared, so a new command is completed without a change here. The
// values after some options are named by hand in the script.

std::string texts_of(const Command& app) {
  std::string texts;
  for (const OptionName& name : app.option_names()) texts += name.text + " ";
  return texts;
}

// A command, or a command of a command: "store put".
struct Path {
  std::string text;
  Command command;
};

void add_paths(const Command& app, const std::string& before, std::vector<Path>& paths) {
  for (const Command& command : app.subcommands()) {
    paths.push_back({before + command.name(), command});
    add_paths(command, paths.back().text + " ", paths);
  }
}

std::vector<Path> paths_of(const Command& app) {
  std::vector<Path> paths;
  add_paths(app, "", paths);
  return paths;
}

std::string names_of_commands(const Command& app) {
  std::string names;
  for (const Command& command : app.subcommands()) names += command.name() + " ";
  return names;
}

std::string bash_script(const Command& app) {
  std::string known = "|";
  std::string cases;
  for (const Path& path : paths_of(app)) {
    known += path.text + "|";
    cases += fmt::format("    \"{}\") words=\"{}--verbose\" names=\"{}\" ;;\n", path.text, texts_of(path.command),
                         names_of_commands(path.command));
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

std::string zsh_script(const Command& app) {
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

std::string fish_script(const Command& app) {
  std::string script = "# fish completion for crossdock: put it in ~/.config/fish/completions\n";
  for (const Command& command : app.subcommands())
    script += fmt::format("complete -c crossdock -n __fish_use_subcommand -a {} -d {}\n", command.name(),
                          in_quotes(command.description()));
  for (const Path& path : paths_of(app)) {
    for (const Command& command : path.command.subcommands())
      script += fmt::format("complete -c crossdock -n '{}' -a {} -d {}\n", seen_in_fish(path.text), command.name(),
                            in_quotes(command.description()));
    for (const OptionName& word : path.command.option_names()) {
      const bool is_long = word.text.starts_with("--");
      script += fmt::format("complete -c crossdock -n '{}' {} {}{}\n", seen_in_fish(path.text), is_long ? "-l" : "-s",
                            word.text.substr(is_long ? 2 : 1), word.takes_value ? " -r" : "");
    }
  }
  script += "complete -c crossdock -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  return script;
}

}  // namespace

void add_completion_command(Command& app) {
  Command command = app.subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command.any_text("shell", *shell, "SHELL", "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.explain("", {"source <(crossdock completion bash)"});
  command.action([app, shell] {
    print(*shell == "bash" ? bash_script(app) : *shell == "zsh" ? zsh_script(app) : fish_script(app));
    return kDone;
  });
}

}  // namespace crossdock::cli
