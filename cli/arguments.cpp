#include "arguments.hpp"

#include <charconv>

#include <fmt/format.h>

namespace untax::cli {

CLI::Validator between(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = failure == std::errc() && end == text.data() + text.size();
    if (whole && value >= least && value <= most) return {};
    return fmt::format("\"{}\" cannot be; it has to be a whole number between {} and {}", text,
                       least, most);
  };
  return CLI::Validator(check, "");
}

}  // namespace untax::cli
