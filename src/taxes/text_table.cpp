#include <untax/taxes/text_table.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t narrowest = 4;

bool starts_character(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

// The longest prefix of `text` that takes at most `most` columns.
std::string_view prefix(std::string_view text, std::size_t most) noexcept {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_character(text[i]) && ++seen > most) return text.substr(0, i);
  }
  return text;
}

std::string fitted(std::string_view text, std::size_t width, text_table::align side) {
  std::string cell(text);
  if (columns_of(text) > width) {
    cell =
        width > 2 ? std::string(prefix(text, width - 2)) + ".." : std::string(prefix(text, width));
  }
  const std::string blanks(width - columns_of(cell), ' ');
  return side == text_table::align::left ? cell + blanks : blanks + cell;
}

// The lines that `text` takes in a column; an empty text takes one.
std::vector<std::string> broken(std::string_view text, std::size_t width) {
  const std::string lines = wrapped(text, static_cast<int>(width));
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    result.push_back(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

std::size_t with_gaps(const std::vector<std::size_t>& wide) {
  return wide.empty() ? 0 : std::accumulate(wide.begin(), wide.end(), gap * (wide.size() - 1));
}

}  // namespace

std::size_t columns_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string wrapped(std::string_view text, int width, std::string_view indent) {
  const auto available = static_cast<std::size_t>(std::max(width, 1));
  const std::size_t room = available > indent.size() ? available - indent.size() : 1;
  std::string out;
  std::string line;
  const auto flush = [&] {
    out.append(indent).append(line).append("\n");
    line.clear();
  };
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > room) flush();
    while (columns_of(word) > room) {
      const std::string_view piece = prefix(word, room);
      line = piece;
      word.remove_prefix(piece.size());
      flush();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  flush();
  return out;
}

text_table::text_table(std::vector<column> columns, std::size_t keys)
    : columns_(std::move(columns)), keys_(keys) {
  if (keys == 0)
    throw error(errc::invalid_argument, "a table has 0 columns of keys; it needs 1 or more");
}

void text_table::add(std::vector<std::string> cells) {
  if (cells.size() > columns_.size() || cells.empty()) {
    throw error(errc::invalid_argument, fmt::format("a table row has {} cells; should be 1 to {}",
                                                    cells.size(), columns_.size()));
  }
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void text_table::rule() { rows_.emplace_back(); }

std::vector<std::size_t> text_table::natural_widths() const {
  std::vector<std::size_t> wide;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    wide.push_back(columns_of(columns_[c].title));
    for (const auto& row : rows_) {
      if (!row.empty()) wide[c] = std::max(wide[c], columns_of(row[c]));
    }
  }
  return wide;
}

std::vector<std::size_t> text_table::longest_words() const {
  std::vector<std::size_t> wide(columns_.size(), narrowest);
  const auto look = [&](std::size_t c, std::string_view text) {
    for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
      end = std::min(text.find(' '), text.size());
      wide[c] = std::max(wide[c], columns_of(text.substr(0, end)));
    }
  };
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    look(c, columns_[c].title);
    for (const auto& row : rows_) {
      if (!row.empty()) look(c, row[c]);
    }
  }
  return wide;
}

std::vector<std::size_t> text_table::widths_within(std::size_t limit) const {
  std::vector<std::size_t> wide = natural_widths();
  const auto shrink = [&](align side, const std::vector<std::size_t>& least) {
    while (with_gaps(wide) > limit) {
      auto widest = wide.end();
      for (std::size_t c = 0; c < wide.size(); ++c) {
        if (columns_[c].side != side || wide[c] <= least[c]) continue;
        const auto column = wide.begin() + static_cast<std::ptrdiff_t>(c);
        if (widest == wide.end() || *column > *widest) widest = column;
      }
      if (widest == wide.end()) return;
      --*widest;
    }
  };
  // Texts shrink first: lines break between words, then within words. Numbers shrink last.
  const std::vector<std::size_t> any(wide.size(), narrowest);
  shrink(align::left, longest_words());
  shrink(align::left, any);
  shrink(align::right, any);
  return wide;
}

int text_table::natural_width() const { return static_cast<int>(with_gaps(natural_widths())); }

std::vector<std::vector<std::size_t>> text_table::parts_within(std::size_t limit) const {
  const std::vector<std::size_t> wide = natural_widths();
  std::vector<std::size_t> keys(std::min(keys_, columns_.size()));
  std::iota(keys.begin(), keys.end(), std::size_t{0});
  std::size_t least = 0;
  for (const std::size_t key : keys) least += wide[key];
  std::vector<std::vector<std::size_t>> parts = {keys};
  std::size_t taken = least;
  for (std::size_t c = keys.size(); c < columns_.size(); ++c) {
    const bool is_full = taken + wide[c] + gap * parts.back().size() > limit;
    if (is_full && parts.back().size() > keys.size()) {
      parts.push_back(keys);
      taken = least;
    }
    parts.back().push_back(c);
    taken += wide[c];
  }
  return parts;
}

text_table text_table::part_of(const std::vector<std::size_t>& chosen) const {
  std::vector<column> columns;
  for (const std::size_t c : chosen) columns.push_back(columns_[c]);
  text_table part(std::move(columns), keys_);
  for (const auto& row : rows_) {
    std::vector<std::string> cells;
    if (!row.empty()) {
      for (const std::size_t c : chosen) cells.push_back(row[c]);
    }
    part.rows_.push_back(std::move(cells));
  }
  return part;
}

std::string text_table::render(int width, bool utf8) const {
  if (columns_.empty()) return "";
  const auto limit = static_cast<std::size_t>(std::max(width, 1));
  if (natural_width() <= width) return render_whole(limit, utf8);
  // As few parts as possible, of about equal widths.
  auto parts = parts_within(limit);
  for (std::size_t less = limit - 1; less > 0; --less) {
    auto narrower = parts_within(less);
    if (narrower.size() > parts.size()) break;
    parts = std::move(narrower);
  }
  std::string out;
  for (const auto& chosen : parts) {
    if (!out.empty()) out += "\n";
    out += part_of(chosen).render_whole(limit, utf8);
  }
  return out;
}

std::string text_table::render_whole(std::size_t limit, bool utf8) const {
  const std::vector<std::size_t> wide = widths_within(limit);
  std::string line_of_rule;
  for (std::size_t i = 0; i < std::min(with_gaps(wide), limit); ++i)
    line_of_rule += utf8 ? "─" : "-";

  std::vector<std::string> titles;
  for (const column& c : columns_) titles.push_back(c.title);
  std::string out = lines_of(titles, wide, limit) + line_of_rule + "\n";
  for (const auto& row : rows_) {
    out += row.empty() ? line_of_rule + "\n" : lines_of(row, wide, limit);
  }
  return out;
}

std::string text_table::lines_of(const std::vector<std::string>& row,
                                 const std::vector<std::size_t>& wide, std::size_t limit) const {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    cells.push_back(columns_[c].side == align::left ? broken(row[c], wide[c])
                                                    : std::vector<std::string>{row[c]});
    height = std::max(height, cells[c].size());
  }
  std::string out;
  for (std::size_t i = 0; i < height; ++i) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line.append(gap, ' ');
      line += fitted(i < cells[c].size() ? cells[c][i] : "", wide[c], columns_[c].side);
    }
    line = prefix(line, limit);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace untax
