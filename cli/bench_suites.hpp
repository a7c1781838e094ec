#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// The suites of `untax bench`.
[[nodiscard]] const std::vector<std::string>& bench_suites();

/// The footer of the help of `untax bench`.
[[nodiscard]] const char* bench_footer();

/// Refuses options that `suite` does not have, so that none is ignored silently.
void refuse_foreign_options(const CLI::App& verb, const std::string& suite);

}  // namespace untax::cli
