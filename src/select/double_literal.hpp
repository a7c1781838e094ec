#pragma once

#include <string>

#include <fmt/format.h>

namespace untax::select {

/// The shortest C++ literal of `value`. It has a point or an exponent, so that it is not an
/// integer.
[[nodiscard]] inline std::string double_literal(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace untax::select
