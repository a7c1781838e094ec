#pragma once

#include <string>

#include "engines/timing/machine.hpp"
#include "ops/timing/judgement.hpp"

namespace untax::cli {

/// A description as a table: each number, its unit, and where it is from.
[[nodiscard]] std::string text_of(const timing::machine& m, int width, bool utf8);

/// A judgement as tables, the worst first.
[[nodiscard]] std::string text_of(const judgement& verdict, const timing::machine& m, int width,
                                  bool utf8);
[[nodiscard]] std::string markdown_of(const judgement& verdict, const timing::machine& m);
[[nodiscard]] std::string json_of(const judgement& verdict, const timing::machine& m);

}  // namespace untax::cli
