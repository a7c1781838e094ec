#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.hpp"
#include "names.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

/// A command or subcommand as shells see it.
struct completed_command {
  std::string path;  ///< "bench gemm"; empty: the command itself
  CLI::App* app = nullptr;
  std::vector<CLI::Option*>
      options;  ///< with options of the parent command that this command takes
};

/// All commands of the tree below `app`.
void collect(CLI::App& app, const std::string& path, const std::vector<CLI::Option*>& from_above,
             std::vector<completed_command>& commands) {
  std::vector<CLI::Option*> options = app.get_options({});
  const std::vector<CLI::Option*> own = options;
  if (app.get_fallthrough()) options.insert(options.end(), from_above.begin(), from_above.end());
  commands.push_back({path, &app, options});
  for (CLI::App* below : app.get_subcommands([](CLI::App*) { return true; }))
    collect(*below, path.empty() ? below->get_name() : path + " " + below->get_name(), own,
            commands);
}

/// "--size" and "-m", without positionals.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// Subcommands, options and the words of positionals.
std::vector<std::string> candidates_of(const completed_command& command) {
  std::vector<std::string> words = names_of_subcommands(*command.app);
  for (CLI::Option* option : command.options) {
    const std::vector<std::string> more =
        option->get_positional() ? words_of(*option) : flags_of(*option);
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

/// A function of bash, which zsh runs, too.
std::string bash_script(const std::vector<completed_command>& commands) {
  std::string paths;
  std::string candidates;
  std::string values;
  for (const completed_command& command : commands) {
    if (!command.path.empty())
      paths += fmt::format("{}\"{}\"", paths.empty() ? "" : "|", command.path);
    candidates += fmt::format("    \"{}\") words=\"{}\" ;;\n", command.path,
                              fmt::join(candidates_of(command), " "));
    for (CLI::Option* option : command.options) {
      if (option->get_positional() || !takes_value(*option)) continue;
      for (const std::string& flag : flags_of(*option))
        values += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", command.path, flag,
                              fmt::join(words_of(*option), " "));
    }
  }
  return fmt::format(
      R"(_untax() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path="" next words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{path:+$path }}${{COMP_WORDS[i]}}"
    case "$next" in
      {}) path=$next ;;
    esac
  done
  case "$path" in
{}  esac
  # Behind an option its values; where they are no set, files.
  case "$path ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _untax untax
)",
      paths, candidates, values);
}

std::string zsh_script(const std::vector<completed_command>& commands) {
  return "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n" + bash_script(commands);
}

/// `text` in the quotes of fish.
std::string quoted(std::string text) {
  text.resize(std::min(text.size(), text.find('\n')));
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "'";
}

std::string fish_script(const std::vector<completed_command>& commands) {
  std::string paths;
  std::string lines;
  for (const completed_command& command : commands) {
    if (!command.path.empty()) paths += fmt::format(" '{}'", command.path);
    const std::string begin = fmt::format("complete -c untax -n '__untax_at {}'", command.path);
    for (const CLI::App* below : command.app->get_subcommands([](const CLI::App*) { return true; }))
      lines += fmt::format("{} -f -a {} -d {}\n", begin, below->get_name(),
                           quoted(below->get_description()));
    for (CLI::Option* option : command.options) {
      const std::vector<std::string> words = words_of(*option);
      std::string names;
      for (const std::string& name : option->get_snames()) names += " -s " + name;
      for (const std::string& name : option->get_lnames()) names += " -l " + name;
      if (!words.empty()) names += fmt::format(" -x -a '{}'", fmt::join(words, " "));
      if (words.empty() && takes_value(*option)) names += " -r";
      if (option->get_positional() && words.empty()) continue;
      lines += fmt::format("{}{} -d {}\n", begin, names, quoted(option->get_description()));
    }
  }
  return fmt::format(
      R"(function __untax_at
    set -l path
    for word in (commandline -opc)[2..-1]
        set -l next (string join -- ' ' $path $word)
        if contains -- $next{}
            set path $path $word
        end
    end
    test "$path" = "$argv"
end
{})",
      paths, lines);
}

}  // namespace

void add_completion(CLI::App& app) {
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  CLI::App* verb = app.add_subcommand("completion", "Print a script that completes commands");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(words(shells));
  verb->footer(
      "  source <(untax completion bash)        # in ~/.bashrc\n"
      "  source <(untax completion zsh)         # in ~/.zshrc\n"
      "  untax completion fish | source         # in ~/.config/fish/config.fish");
  verb->callback([&app, shell, shells] {
    std::vector<completed_command> commands;
    collect(app, "", {}, commands);
    const std::size_t place = place_in("the shell", *shell, shells);
    print(place == 0   ? bash_script(commands)
          : place == 1 ? zsh_script(commands)
                       : fish_script(commands));
  });
}

}  // namespace untax::cli
