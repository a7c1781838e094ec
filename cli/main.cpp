#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/error.hpp>
#include <untax/core/version.hpp>

#include "names.hpp"
#include "verbs.hpp"

namespace untax::cli {
namespace {

constexpr int failure = 1;
constexpr int usage_error = 2;

constexpr const char* description =
    "untax takes the taxes out of distributed matrix programs: kernel launches, barriers, and\n"
    "intermediate results that go out to memory and come back. It fuses communication into\n"
    "multiplication and attention, and measures what each tax costs. Ranks are threads, processes\n"
    "or GPUs of this machine.";

constexpr const char* examples =
    "Begin with:\n"
    "  untax doctor\n"
    "  untax run all_gather_gemm --ranks 2 --pattern all --verify\n"
    "  untax taxes --model models/llama-3.2-1b.json --tensor-parallel 2 --tokens 64\n"
    "\n"
    "untax VERB --help explains a verb. Exit status: 0 right, 1 failed, 2 wrongly asked.";

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

/// The verb that was asked for, or the command itself.
const CLI::App& asked(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

/// The argument that nobody wants. A value that followed it is left over too.
std::string unexpected(const CLI::App& app) {
  const auto left = app.remaining(true);
  for (const std::string& argument : left) {
    if (argument.starts_with("-")) return argument;
  }
  return left.empty() ? "" : left.back();
}

/// What the parser has to say, in one line that also says what would be right.
std::string explain(const CLI::ParseError& wrong, const CLI::App& app) {
  const CLI::App& verb = asked(app);
  const std::string command = &verb == &app ? "untax" : "untax " + verb.get_name();
  std::string text = wrong.what();
  if (wrong.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    std::vector<std::string> options;
    for (const CLI::Option* option : verb.get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
    const std::string argument = unexpected(app);
    text = fmt::format("{} takes no {}{}", command, argument, did_you_mean(argument, options));
  }
  return fmt::format("{} ({} --help)", text, command);
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  int status = 0;
  CLI::App app(description, "untax");
  app.footer(examples);
  app.set_version_flag("--version", fmt::format("untax {}", version), "Print the version and exit");
  add_doctor(app, status);
  add_run(app, status, arguments);
  add_taxes(app, status);
  add_bench(app, status);
  add_check(app, status);
  app.get_formatter()->label("OPTIONS", "options");
  app.get_formatter()->label("SUBCOMMAND", "VERB ...");
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verb->group("Verbs");
  }

  if (arguments.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return usage_error;
  }
  if (!arguments.front().starts_with("-")) {
    (void)place_in("the verb", arguments.front(), verbs_of(app));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_text) {
    return app.exit(asked_for_text);
  } catch (const CLI::ParseError& wrong) {
    throw error(errc::invalid_argument, explain(wrong, app));
  }
  return status;
}

int report(const char* text, int status) {
  std::fflush(stdout);
  fmt::print(stderr, "untax: {}\n", text);
  return status;
}

int guarded(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const error& e) {
    const bool wrongly_asked = e.code() == errc::invalid_argument || e.code() == errc::unsupported;
    return report(e.what(), wrongly_asked ? usage_error : failure);
  } catch (const std::exception& e) {
    return report(e.what(), failure);
  }
}

}  // namespace
}  // namespace untax::cli

int main(int argc, char** argv) { return untax::cli::guarded(argc, argv); }
