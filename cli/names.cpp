#include "names.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::cli {
namespace {

/// Names of up to this many characters are recognised with one edit, not with more.
constexpr std::size_t longest_short_name = 4;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The fewest insertions, deletions and replacements that turn `a` into `b` (Levenshtein).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view text, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& name : known) {
    if (same_but_for_case(text, name)) return name;
  }
  for (const std::string& name : known) {
    // The beginning of a name counts as near, however much is missing.
    const bool begins = text.size() >= 3 && name.starts_with(text);
    const std::size_t edits = begins ? 1 : edits_between(text, name);
    if (edits > 1 && name.size() <= longest_short_name) continue;
    if (edits < least && edits < name.size()) {
      least = edits;
      best = name;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  const std::string name = nearest(text, known);
  return name.empty() ? "" : fmt::format("; did you mean {}?", name);
}

std::string alternatives(const std::vector<std::string>& known) {
  std::string text;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) text += i + 1 == known.size() ? " or " : ", ";
    text += known[i];
  }
  return text;
}

std::size_t place_in(std::string_view what, std::string_view text,
                     const std::vector<std::string>& known) {
  const auto match = std::find(known.begin(), known.end(), text);
  if (match != known.end()) return static_cast<std::size_t>(match - known.begin());
  throw error(errc::invalid_argument,
              fmt::format("{} \"{}\" is not known; it has to be {}{}", what, text,
                          alternatives(known), did_you_mean(text, known)));
}

}  // namespace untax::cli
