#pragma once

#include <string>

#include <fmt/format.h>

namespace untax::select {

/// The shortest text of C++ that is the same number: with a point or an exponent, so that it is no
/// integer.
[[nodiscard]] inline std::string double_literal(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace untax::select
