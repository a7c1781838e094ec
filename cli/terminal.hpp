#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include <untax/taxes/report.hpp>
#include <untax/taxes/text_table.hpp>

namespace untax::cli {

/// The table type that every verb prints.
using table = untax::text_table;

enum class stream { out, err };

/// Whether `where` is a terminal that understands cursor movement (TERM=dumb does not).
[[nodiscard]] bool is_terminal(stream where);

/// The width of output in columns: that of the terminal between 80 and 120, or 100 if the output
/// goes elsewhere.
[[nodiscard]] int width(stream where);

/// The width in columns of text that can be broken anywhere, such as help: that of the terminal
/// between 40 and 100, or 100.
[[nodiscard]] int prose_width(stream where);

/// Breaks lines of `text` that are wider than `columns` at blanks. Continuation lines begin below
/// the text that follows two blanks, if there is such text; continuations of examples are indented
/// a little.
[[nodiscard]] std::string fitted(std::string_view text, int columns);

/// Whether the locale (LC_ALL, LC_CTYPE, LANG) is UTF-8.
[[nodiscard]] bool is_utf8();

/// UTF-8 when the locale has it; colour when `where` is a terminal and NO_COLOR is not set.
[[nodiscard]] text_style style(stream where);

enum class mood { good, warning, bad, quiet };

/// `text` in the colour of `feeling`, or as it is when `how` has no colour.
[[nodiscard]] std::string coloured(const std::string& text, mood feeling, text_style how);

/// "label  [#####.....]  12/40  0:42 left" in at most `columns` columns; `elapsed` are seconds
/// since the start.
[[nodiscard]] std::string progress_line(const std::string& label, std::int64_t done,
                                        std::int64_t total, double elapsed, int columns,
                                        text_style how);

/// Shows on stderr how much of a long piece of work is done, if stderr is a terminal and the work
/// has lasted for a second. Leaves a clean line behind. Any threads may use it.
class progress_bar {
 public:
  /// `total` is the number of steps, `label` the name of the present work.
  progress_bar(std::string label, std::int64_t total);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  /// Counts `steps` more steps as done.
  void advance(std::int64_t steps = 1);
  /// Sets the name of the present work to `label`.
  void relabel(std::string label);
  /// Takes the bar off the screen, so that other text can be printed; the next `advance` shows it
  /// again.
  void clear();

 private:
  using clock = std::chrono::steady_clock;

  void draw();
  void erase();

  std::mutex mutex_;
  std::string label_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool enabled_;
  bool visible_ = false;
  clock::time_point begin_ = clock::now();
  clock::time_point drawn_{};
};

}  // namespace untax::cli
