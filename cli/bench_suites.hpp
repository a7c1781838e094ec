#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// The suites of `untax bench`.
[[nodiscard]] const std::vector<std::string>& bench_suites();

/// What its help says after the options.
[[nodiscard]] const char* bench_footer();

/// Refuses options that `suite` does not have, so that nobody believes they did something.
void refuse_foreign_options(const CLI::App& verb, const std::string& suite);

}  // namespace untax::cli
