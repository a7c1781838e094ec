#pragma once

#include <string>

namespace untax::cli {

/// What `untax run --help` says after its options: operators, patterns, examples.
[[nodiscard]] std::string run_footer();

}  // namespace untax::cli
