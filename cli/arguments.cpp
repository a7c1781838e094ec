#include "arguments.hpp"

#include <charconv>
#include <limits>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "files.hpp"
#include "names.hpp"

namespace untax::cli {
namespace {

/// Parses all of `text` as one number. False if it is not one.
template <class Number>
bool reads(const std::string& text, Number& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size();
}

constexpr const char* words_name = "words:";

}  // namespace

CLI::Validator between(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::int64_t value = 0;
    if (reads(text, value) && value >= least && value <= most) return {};
    return fmt::format("\"{}\" is not allowed; it has to be a whole number between {} and {}", text,
                       least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_negative() {
  const auto check = [](const std::string& text) -> std::string {
    double value = 0;
    if (reads(text, value) && value >= 0 && value <= std::numeric_limits<float>::max()) return {};
    return fmt::format("\"{}\" is not allowed; it has to be a finite number of 0 or more", text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator writable_file() {
  return CLI::Validator([](const std::string& path) { return why_not_writable(path); }, "");
}

CLI::Validator words(const std::vector<std::string>& accepted) {
  std::string name = words_name;
  for (const std::string& word : accepted) name += " " + word;
  // The name of the validator contains the words. An inactive validator is neither called nor shown
  // by help.
  return CLI::Validator([](const std::string&) { return std::string(); }, "")
      .name(name)
      .active(false);
}

std::vector<std::string> words_of(CLI::Option& option) {
  std::vector<std::string> accepted;
  try {
    for (int i = 0;; ++i) {
      std::istringstream name(option.get_validator(i)->get_name());
      std::string word;
      if (!(name >> word) || word != words_name) continue;
      while (name >> word) accepted.push_back(word);
    }
  } catch (const CLI::OptionNotFound&) {  // after the last argument
  }
  return accepted;
}

CLI::Validator shipped_file(const char* folder) {
  return CLI::Validator(
      [folder = std::string(folder)](std::string& text) { return resolve_shipped(folder, text); },
      "NAME|FILE");
}

void add_trace_option(CLI::App& verb, std::string& path) {
  verb.add_option("--trace", path, "write the actions and waits of every worker, for Perfetto")
      ->check(writable_file());
}

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

void expect_subcommand(CLI::App& verb, std::string what) {
  verb.require_subcommand(0, 1);
  verb.callback([&verb, what = std::move(what)] {
    if (!verb.get_subcommands().empty()) return;
    throw error(errc::invalid_argument,
                fmt::format("{} is missing; it can be {} (untax {} --help)", what,
                            alternatives(names_of_subcommands(verb)), verb.get_name()));
  });
}

}  // namespace untax::cli
