#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/error.hpp>

namespace untax::cli {

/// Refuses options that the operator does not have, so that none is ignored silently.
class option_check {
 public:
  option_check(const CLI::App& verb, std::string name) : verb_(verb), name_(std::move(name)) {}

  void refuse(const std::initializer_list<const char*>& options, const char* reason) const {
    for (const char* option : options) {
      if (verb_.count(option) == 0) continue;
      throw error(
          errc::invalid_argument,
          fmt::format("{} means nothing to {}, which {}; leave it out", option, name_, reason));
    }
  }

 private:
  const CLI::App& verb_;
  std::string name_;
};

}  // namespace untax::cli
