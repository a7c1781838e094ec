#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace untax::cli {
namespace {

constexpr double shown_after = 1.0;
constexpr double redrawn_after = 0.1;
constexpr int unknown_width = 100;
constexpr std::size_t example_indent = 4;

int descriptor(stream where) { return where == stream::out ? STDOUT_FILENO : STDERR_FILENO; }

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): untax never sets one
  return value == nullptr ? std::string_view{} : value;
}

int terminal_columns(stream where) {
  winsize size{};
  return ioctl(descriptor(where), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// The column at which continuation lines of `line` begin.
std::size_t hanging_indent(std::string_view line, int columns) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", begin);
  if (gap != std::string_view::npos) {
    const std::size_t text = line.find_first_not_of(' ', gap);
    if (text <= static_cast<std::size_t>(columns / 2)) return text;
  }
  return begin == 0 ? 0 : begin + example_indent;
}

std::string fitted_line(std::string_view line, int columns) {
  if (columns_of(line) <= static_cast<std::size_t>(columns)) return fmt::format("{}\n", line);
  // The first line begins with a label or the margin of an example; the other lines have blanks
  // there.
  const std::size_t indent = hanging_indent(line, columns);
  const std::string text = wrapped(line.substr(indent), columns, std::string(indent, ' '));
  return std::string(line.substr(0, indent)) + text.substr(indent);
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

bool is_terminal(stream where) {
  return isatty(descriptor(where)) == 1 && variable("TERM") != "dumb";
}

int width(stream where) {
  const int columns = terminal_columns(where);
  return columns > 0 ? std::clamp(columns, 80, 120) : unknown_width;
}

int prose_width(stream where) {
  const int columns = terminal_columns(where);
  return columns > 0 ? std::clamp(columns, 40, unknown_width) : unknown_width;
}

std::string fitted(std::string_view text, int columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += fitted_line(text.substr(0, end), columns);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool is_utf8() {
  std::string locale;
  // The first variable that is set decides, as in setlocale.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = variable(name);
  }
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

text_style style(stream where) {
  return {.utf8 = is_utf8(), .colour = is_terminal(where) && variable("NO_COLOR").empty()};
}

std::string coloured(const std::string& text, mood feeling, text_style how) {
  static constexpr std::array<const char*, 4> codes = {"\033[32m", "\033[33m", "\033[31m",
                                                       "\033[2m"};
  return how.colour ? codes.at(static_cast<std::size_t>(feeling)) + text + "\033[0m" : text;
}

std::string progress_line(const std::string& label, std::int64_t done, std::int64_t total,
                          double elapsed, int columns, text_style how) {
  const double share =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                : 1.0;
  std::string right = fmt::format("  {}/{}", done, total);
  if (done > 0 && done < total)
    right += fmt::format("  {} left", clock_text(elapsed * (1 - share) / share));
  const int room = columns - static_cast<int>(columns_of(label) + right.size()) - 2;
  if (room < 5) {
    // There is no place for a bar: the count matters more than the name.
    right.erase(0, 2);
    return static_cast<int>(right.size()) <= columns ? right : "";
  }
  const int cells = std::min(room, 40);
  const int full = static_cast<int>(std::lround(share * cells));
  std::string bar;
  for (int i = 0; i < cells; ++i)
    bar += i < full ? (how.utf8 ? "\u2588" : "#") : (how.utf8 ? "\u2591" : ".");
  return label + "  " + bar + right;
}

progress_bar::progress_bar(std::string label, std::int64_t total)
    : label_(std::move(label)), total_(total), enabled_(is_terminal(stream::err)) {}

progress_bar::~progress_bar() { erase(); }

void progress_bar::advance(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  done_ += steps;
  draw();
}

void progress_bar::relabel(std::string label) {
  const std::lock_guard lock(mutex_);
  label_ = std::move(label);
  draw();
}

void progress_bar::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void progress_bar::draw() {
  if (!enabled_) return;
  const auto now = clock::now();
  const double elapsed = seconds_between(begin_, now);
  if (elapsed < shown_after || (visible_ && seconds_between(drawn_, now) < redrawn_after)) return;
  // The last column stays free: writing into it makes some terminals begin a new line.
  const int columns = terminal_columns(stream::err);
  const std::string line = progress_line(label_, done_, total_, elapsed,
                                         (columns > 0 ? columns : 80) - 1, style(stream::err));
  std::fputs(fmt::format("\r{}\033[K", line).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = now;
  visible_ = true;
}

void progress_bar::erase() {
  if (!visible_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace untax::cli
