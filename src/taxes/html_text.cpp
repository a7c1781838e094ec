#include "html_text.hpp"

#include <fmt/format.h>

namespace untax {
namespace {

std::string typeset(const std::string& figure) {
  return figure.starts_with('-') ? "\u2212" + figure.substr(1) : figure;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string figure(double seconds, const time_unit& unit) {
  return typeset(in_unit(seconds, unit));
}

std::string figure_with_unit(double seconds, const time_unit& unit) {
  return fmt::format("{}\u202f{}", figure(seconds, unit), unit.symbol);
}

std::string percent(double share) { return typeset(in_percent(share)) + "\u202f%"; }

std::string capitalised(std::string_view text) {
  std::string out(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z')
    out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

}  // namespace untax
