#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/core/version.hpp>
#include <untax/world/placement.hpp>

#include "arguments.hpp"
#include "help_formatter.hpp"
#include "names.hpp"
#include "output.hpp"
#include "src/trace/trace_file.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

constexpr int failure = 1;
constexpr int usage_error = 2;

constexpr const char* description =
    "untax takes the taxes out of distributed matrix programs: kernel launches, barriers, and "
    "intermediate results that go out to memory and come back. It fuses communication into "
    "multiplication and attention, and measures what each tax costs. Ranks are threads, processes "
    "or GPUs of this machine.";

constexpr const char* examples =
    "Begin with:\n"
    "  untax doctor\n"
    "  untax run all_gather_gemm --ranks 2 --pattern all --verify\n"
    "  untax taxes --model llama-3.2-1b --tensor-parallel 2 --tokens 64\n"
    "\n"
    "untax help VERB explains a verb.\n"
    "\n"
    "Exit status:\n"
    "  0    all is well\n"
    "  1    a result was wrong, a bar was missed, or the work failed: memory, a wait, a file\n"
    "  2    the request is impossible, or on this machine; one line on stderr gives the reason";

/// The subcommands of the command line, the command itself first.
std::vector<const CLI::App*> asked(const CLI::App& app) {
  std::vector<const CLI::App*> parsed = {&app};
  while (!parsed.back()->get_subcommands().empty())
    parsed.push_back(parsed.back()->get_subcommands().front());
  return parsed;
}

/// The unexpected argument: the first option that is left over, else the last argument.
std::string unexpected(const CLI::App& app) {
  const auto left = app.remaining(true);
  for (const std::string& argument : left) {
    if (argument.starts_with("-")) return argument;
  }
  return left.empty() || left.back().empty() ? "\"\"" : left.back();
}

/// The name of an option, without the value of "--size=4".
std::string name_in(const std::string& argument) { return argument.substr(0, argument.find('=')); }

/// The subcommands of `verb` that have this option.
std::vector<std::string> takers_of(const std::string& option, const CLI::App& verb) {
  std::vector<std::string> takers;
  for (const CLI::App* own : verb.get_subcommands([](const CLI::App*) { return true; })) {
    if (own->get_option_no_throw(option) != nullptr) takers.push_back(own->get_name());
  }
  return takers;
}

/// The message of the parser in one line, with a hint about the right argument.
std::string explain(const CLI::ParseError& wrong, const CLI::App& app) {
  const std::vector<const CLI::App*> parsed = asked(app);
  std::string command = "untax";
  for (std::size_t i = 1; i < parsed.size(); ++i) command += " " + parsed[i]->get_name();
  std::string text = wrong.what();
  if (wrong.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::string argument = unexpected(app);
    const std::vector<std::string> further = names_of_subcommands(*parsed.back());
    if (!further.empty() && parsed.size() > 1 && !argument.starts_with("-"))
      (void)place_in("the operator", argument, further);
    std::vector<std::string> options;
    for (const CLI::App* verb : parsed) {
      for (const CLI::Option* option : verb->get_options()) {
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
      }
    }
    const CLI::App& own = *parsed.back();
    const std::vector<std::string> takers =
        parsed.size() < 3 ? std::vector<std::string>{}
                          : takers_of(name_in(argument), *parsed[parsed.size() - 2]);
    if (takers.empty()) {
      text = fmt::format("{} takes no {}{}", command, argument, did_you_mean(argument, options));
    } else if (own.get_parent()->get_name() == "bench") {
      text = fmt::format("{} means nothing to the suite {}; it is for {}", name_in(argument),
                         own.get_name(), alternatives(takers));
    } else {
      text = fmt::format("{} takes no {}; it is for {}", command, argument, alternatives(takers));
    }
  }
  return fmt::format("{} ({} --help)", text, command);
}

/// `untax help`, `untax help VERB`: print the same as --help.
void add_help(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("help", "Explain the command, or one of its verbs");
  const auto name = std::make_shared<std::string>();
  const CLI::Option* given = verb->add_option("VERB", *name, "the verb to explain")
                                 ->check(words(names_of_subcommands(app)));
  verb->callback([&app, given, name] {
    if (given->count() == 0) {
      print(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    } else {
      const std::vector<std::string> verbs = names_of_subcommands(app);
      print(app.get_subcommand(verbs[place_in("the verb", *name, verbs)])->help(app.get_name()));
    }
  });
}

void add_version(CLI::App& app) {
  app.add_subcommand("version", "Print the version")->callback([] { show("untax {}\n", version); });
}

/// Whether a launcher has started several processes of this verb, which starts its ranks itself.
/// Rank 0 throws the reason; the other ranks only return true.
bool started_in_vain(const std::string& verb) {
  const std::vector<std::string> alone = {"taxes", "bench", "check"};
  if (std::find(alone.begin(), alone.end(), verb) == alone.end()) return false;
  const placement place = placement_from(environment());
  if (place.world_size == 1) return false;
  if (place.rank > 0) return true;
  throw error(errc::invalid_argument,
              fmt::format("untax {} starts its ranks itself, and {} has started it {} times; start "
                          "it once, without {}",
                          verb, place.launcher, place.world_size, place.launcher));
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && started_in_vain(arguments.front())) return usage_error;
  int status = 0;
  CLI::App app(description, "untax");
  app.formatter(std::make_shared<help_formatter>());
  app.require_subcommand(0, 1);
  app.footer(examples);
  app.set_version_flag("--version", fmt::format("untax {}", version), "Print the version and exit");
  add_doctor(app, status);
  add_run(app, status, arguments);
  add_taxes(app, status);
  add_bench(app, status);
  add_check(app, status);
  add_generate(app, status);
  add_select(app);
  add_machine(app);
  add_locality(app, status);
  add_completion(app);
  add_help(app);
  add_version(app);
  app.get_formatter()->label("OPTIONS", "options");
  app.get_formatter()->label("SUBCOMMAND", "VERB ...");
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verb->group("Verbs");
  }

  if (!arguments.empty() && !arguments.front().starts_with("-")) {
    (void)place_in("the verb", arguments.front(), names_of_subcommands(app));
  }
  std::vector<std::string> parsed = suite_first(app, arguments);
  std::ranges::reverse(parsed);  // in the order that the parser takes
  try {
    app.parse(parsed);
    if (app.get_subcommands().empty()) {
      throw error(errc::invalid_argument,
                  fmt::format("a verb is missing; it has to be {} (untax --help)",
                              alternatives(names_of_subcommands(app))));
    }
  } catch (const CLI::CallForHelp&) {
    print(app.help());
  } catch (const CLI::CallForVersion& asked_for_version) {
    show("{}\n", asked_for_version.what());
  } catch (const CLI::ParseError& wrong) {
    throw error(errc::invalid_argument, explain(wrong, app));
  }
  return status;
}

int report(std::string text, int status) {
  // A usage error is one line, whatever the arguments contain.
  if (status == usage_error) std::ranges::replace(text, '\n', ' ');
  complain(text);
  return status;
}

/// This is the only function that decides the exit status.
int guarded(int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    end_trace();  // for UNTAX_TRACE; at the exit of the process, errors cannot be reported any more
    finish_output();
    return status;
  } catch (const error& e) {
    const bool wrongly_asked = e.code() == errc::invalid_argument || e.code() == errc::unsupported;
    return report(e.what(), wrongly_asked ? usage_error : failure);
  } catch (const std::bad_alloc&) {
    return report("there is not enough memory for this; take a smaller shape or fewer ranks",
                  failure);
  } catch (const std::exception& e) {
    return report(e.what(), failure);
  }
}

}  // namespace
}  // namespace untax::cli

int main(int argc, char** argv) {
  untax::cli::prepare_output();
  return untax::cli::guarded(argc, argv);
}
