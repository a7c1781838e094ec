#include "report_page.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "time_text.hpp"

namespace untax {
namespace {

/// The most pieces of a run that are drawn, the longest ones. This keeps a page below 2 MB.
constexpr std::size_t most_pieces = 2000;
// The next sizes are in pixels.
constexpr int lane_height = 10;
constexpr int rank_gap = 8;

/// The class of a part in the style sheet.
std::string key_of(trace_part part) {
  std::string key(name_of(part));
  std::ranges::replace(key, ' ', '_');
  return key;
}

/// Draws the timeline of one run.
class strip {
 public:
  strip(const traced_step& step, double seconds)
      : pieces_(step.timeline), seconds_(seconds), unit_(unit_for(seconds)) {
    for (const timeline_piece& p : pieces_) {
      ranks_ = std::max(ranks_, p.rank + 1);
      workers_ = std::max(workers_, p.worker + 1);
    }
    if (pieces_.size() > most_pieces) {
      const auto length = [](const timeline_piece& p) { return p.end - p.begin; };
      std::ranges::nth_element(pieces_, pieces_.begin() + most_pieces, std::greater<>(), length);
      left_out_ = pieces_.size() - most_pieces;
      pieces_.resize(most_pieces);
    }
  }

  [[nodiscard]] std::string html(const std::string& title) const {
    std::string out =
        fmt::format("<figure class=\"timeline\"><figcaption>{}</figcaption>\n", escaped(title));
    const int row = workers_ * lane_height + rank_gap;
    out += "<div class=\"strip\"><ol>";
    for (int rank = 0; rank < ranks_; ++rank)
      out += fmt::format("<li style=\"height:{}px\">rank {}</li>", row, rank);
    out +=
        fmt::format("</ol><div tabindex=\"0\"><svg role=\"img\" aria-label=\"{}\" height=\"{}\">\n",
                    escaped(title), ranks_ * row);
    for (const timeline_piece& p : pieces_) out += drawn(p);
    out += "</svg></div></div>\n";
    if (left_out_ > 0)
      out +=
          fmt::format("<p class=\"hint\">The {} shortest pieces are not drawn.</p>\n", left_out_);
    return out + "</figure>\n";
  }

 private:
  [[nodiscard]] double across(double seconds) const {
    return 100 * std::clamp(seconds / seconds_, 0.0, 1.0);
  }
  [[nodiscard]] int down(int rank, int worker) const {
    return rank * (workers_ * lane_height + rank_gap) + worker * lane_height;
  }

  [[nodiscard]] std::string drawn(const timeline_piece& p) const {
    const int top = down(p.rank, p.worker);
    const std::string from =
        p.from_rank < 0 ? std::string() : fmt::format(" from rank {}", p.from_rank);
    std::string out = fmt::format(
        "<g class=\"{}\"><rect x=\"{:.3f}%\" width=\"{:.3f}%\" y=\"{}\" "
        "height=\"{}\"><title>{}{}, {}</title></rect>",
        key_of(p.part), across(p.begin), across(p.end) - across(p.begin), top + 1, lane_height - 2,
        name_of(p.part), from, figure_with_unit(p.end - p.begin, unit_));
    if (p.from_rank >= 0) {
      const int start = down(p.from_rank, p.from_worker) + lane_height / 2;
      const int end = top + lane_height / 2;
      // A line from the sender, and a dot where the signal arrived.
      out += fmt::format(
          "<line x1=\"{0:.3f}%\" y1=\"{1}\" x2=\"{2:.3f}%\" y2=\"{3}\"/><circle cx=\"{2:.3f}%\" "
          "cy=\"{3}\" r=\"3\"/>",
          across(p.sent), start, across(p.end), end);
    }
    return out + "</g>\n";
  }

  std::vector<timeline_piece> pieces_;
  double seconds_;
  time_unit unit_;
  int ranks_ = 0;
  int workers_ = 0;
  std::size_t left_out_ = 0;
};

double length_of(const traced_step& step) {
  double seconds = 0;
  for (const timeline_piece& p : step.timeline) seconds = std::max(seconds, p.end);
  return seconds;
}

std::string controls() {
  std::string out = "<p class=\"hint\">";
  for (const trace_part part : {trace_part::compute, trace_part::movement, trace_part::launch,
                                trace_part::late_peer, trace_part::in_flight, trace_part::entry})
    out += fmt::format("<span class=\"swatch {}\"></span>{} ", key_of(part), name_of(part));
  out += "</p>\n";
  for (const int times : {1, 4, 16}) {
    out += fmt::format(
        "<input class=\"zoom\" type=\"radio\" name=\"zoom\" id=\"zoom{0}\"{1}/><label "
        "for=\"zoom{0}\">{0} \u00d7</label>\n",
        times, times == 1 ? " checked=\"checked\"" : "");
  }
  return out;
}

}  // namespace

std::string timeline_section(const tax_report& report) {
  double longest = 0;
  for (const tax_row& row : report.rows) {
    for (const traced_step& step : row.traced) longest = std::max(longest, length_of(step));
  }
  if (longest == 0) return "";
  std::string out =
      "<section><h2>One run of each</h2>\n<p class=\"hint\">The run whose time is the median, on "
      "one scale; a row is a rank, a line in it a worker. Point at a wait in flight to see the "
      "rank that signalled. Blank is idle.</p>\n" +
      controls();
  for (const tax_row& row : report.rows) {
    for (const traced_step& step : row.traced) {
      if (step.timeline.empty()) continue;
      const double seconds = length_of(step);
      out += strip(step, longest)
                 .html(fmt::format("{}, {}: {}, {}", row.op.name, step.id, row.step(step.id)->ran,
                                   figure_with_unit(seconds, unit_for(seconds))));
    }
  }
  return out + "</section>\n";
}

}  // namespace untax
