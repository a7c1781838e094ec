#include "time_text.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace untax {

namespace {

std::string rounded(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.front() == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

}  // namespace

time_unit unit_for(double seconds) {
  static constexpr std::array<time_unit, 3> units = {
      {{1.0, "s", "s", 0}, {1e3, "ms", "ms", 0}, {1e6, "us", "\u00b5s", 0}}};
  time_unit unit = units.back();
  for (const time_unit& candidate : units) {
    if (std::abs(seconds) * candidate.per_second >= 1) {
      unit = candidate;
      break;
    }
  }
  const double shown = std::abs(seconds) * unit.per_second;
  unit.decimals = shown >= 1000 ? 0 : shown >= 100 ? 1 : shown >= 10 ? 2 : 3;
  return unit;
}

std::string in_unit(double seconds, const time_unit& unit) {
  return rounded(seconds * unit.per_second, unit.decimals);
}

std::string with_unit(double seconds, const time_unit& unit) {
  return in_unit(seconds, unit) + " " + unit.name;
}

std::string in_percent(double share) { return rounded(100 * share, 1); }

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
