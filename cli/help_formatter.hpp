#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// Help that is no wider than the terminal.
class help_formatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
};

}  // namespace untax::cli
