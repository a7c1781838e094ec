#pragma once

#include <string>

namespace untax::cli {

/// The footer of `untax run --help`: operators, patterns, examples.
[[nodiscard]] std::string run_footer();

}  // namespace untax::cli
