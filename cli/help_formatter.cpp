#include "help_formatter.hpp"

#include "terminal.hpp"

namespace untax::cli {
namespace {

constexpr std::size_t names_end = 28;

/// A name, with its meaning beside it, or below it if the name is long.
std::string entry(const std::string& name, const std::string& meaning) {
  const std::string label = "  " + name;
  const std::string text = wrapped(meaning, prose_width(stream::out), std::string(names_end, ' '));
  if (label.size() + 2 > names_end) return label + "\n" + text;
  return label + text.substr(label.size());
}

}  // namespace

std::string help_formatter::make_description(const CLI::App* app) const {
  return fitted(app->get_description(), prose_width(stream::out));
}

std::string help_formatter::make_footer(const CLI::App* app) const {
  return fitted(app->get_footer(), prose_width(stream::out));
}

std::string help_formatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string help_formatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  std::string text = " " + option->get_type_name();
  if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
  if (option->get_required()) text += " REQUIRED";
  return text;
}

std::string help_formatter::make_subcommand(const CLI::App* verb) const {
  const std::string text = verb->get_description();
  return entry(verb->get_name(), text.substr(0, text.find('\n')));
}

}  // namespace untax::cli
