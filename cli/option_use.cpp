#include "option_use.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <untax/core/error.hpp>

#include "names.hpp"

namespace untax::cli {

void refuse_foreign_options(const CLI::App& verb, const std::vector<option_use>& uses,
                            const std::string& what, const std::string& action) {
  for (const option_use& use : uses) {
    if (std::ranges::find(use.actions, action) != use.actions.end()) continue;
    for (const char* option : use.options) {
      if (verb.count(option) == 0) continue;
      throw error(errc::invalid_argument,
                  fmt::format("{} means nothing to {}{}; it is for {}", option, what, action,
                              alternatives(use.actions)));
    }
  }
}

void option_check::refuse(const std::initializer_list<const char*>& options,
                          const char* reason) const {
  for (const char* option : options) {
    if (verb_.count(option) == 0) continue;
    throw error(
        errc::invalid_argument,
        fmt::format("{} means nothing to {}, which {}; leave it out", option, name_, reason));
  }
}

}  // namespace untax::cli
