#include <cmath>
#include <string>

#include <fmt/format.h>

#include <untax/taxes/report.hpp>
#include <untax/taxes/text_table.hpp>

#include "time_text.hpp"
#include "waterfall.hpp"

namespace untax {
namespace {

// Sizes in the picture, in pixels.
constexpr int picture_width = 1000;
constexpr int margin = 32;
constexpr int bars_left = 250;
constexpr int bars_width = 500;
constexpr int values_right = 880;
constexpr int line_height = 22;
constexpr int row_height = 44;
/// Characters of the small text that surely fit in a line.
constexpr int columns = 118;

/// The colours of the HTML page, on white, since plots go into documents.
constexpr std::string_view plot_style = R"css(
  text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 15px; fill: #23282d; }
  .title { font-size: 24px; font-weight: bold; }
  .small { font-size: 13px; fill: #5c656e; }
  .right { text-anchor: end; }
  .link { stroke: #c9c5bb; stroke-width: 1.5; }
  .less { fill-opacity: 0.18; stroke-dasharray: 3 2; }
  .total { fill: #414a53; stroke: #414a53; }
  .launch { fill: #d68a1f; stroke: #d68a1f; }
  .engine { fill: #98a1aa; stroke: #98a1aa; }
  .bulk_synchronous { fill: #c4513a; stroke: #c4513a; }
  .locality { fill: #8660a6; stroke: #8660a6; }
  .joint { fill: #a55a70; stroke: #a55a70; }
  .stand_in { fill: #98a1aa; stroke: #98a1aa; }
  .remainder { fill: #7fa3b8; stroke: #7fa3b8; }
  .bound { fill: #2c6c8c; stroke: #2c6c8c; }
)css";

/// Collects elements from the top to the bottom.
class picture {
 public:
  void text(std::string_view text, std::string_view kind) {
    at_ += line_height;
    out_ += text_at(margin, at_, kind, text);
  }
  /// Lines of at most `columns` characters.
  void paragraph(std::string_view whole) {
    const std::string lines = wrapped(whole, columns);
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = lines.find('\n', begin);
      text(std::string_view(lines).substr(begin, end - begin), "small");
      begin = end + 1;
    }
  }
  void space(int pixels) { at_ += pixels; }

  void bar(const waterfall_bar& bar, double total, const time_unit& unit, bool first, bool last) {
    const auto place = [](double share) { return bars_left + share * bars_width; };
    const auto link = [&](double share, int from, int to) {
      out_ += fmt::format(
          "<line class=\"link\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1}\" y2=\"{2}\"/>\n",
          place(share), from, to);
    };
    const int middle = at_ + row_height / 2;
    if (!first) link(bar.from, at_, middle);
    if (!last) link(bar.to, middle, at_ + row_height);
    if (!bar.separable) {
      out_ += text_at(margin, middle + 5, "", capitalised(bar.title));
      out_ += text_at(values_right, middle + 5, "small right", not_separable);
      at_ += row_height;
      return;
    }
    out_ += fmt::format(
        "<rect class=\"{}{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" rx=\"2\"/>\n",
        bar.key, bar.seconds < 0 ? " less" : "", place(bar.low()), at_ + 8,
        bar.width() * bars_width, row_height - 16);
    const int base = middle + 5;
    out_ += text_at(margin, base, "", capitalised(bar.title));
    std::string value = figure_with_unit(bar.seconds, unit);
    if (bar.uncertain > 0 && std::isfinite(bar.uncertain))
      value += " \u00b1" + figure(bar.uncertain, unit);
    out_ += text_at(values_right, base, "right", value);
    out_ += text_at(picture_width - margin, base, "small right", percent(bar.seconds / total));
    at_ += row_height;
  }

  /// The whole picture, with a title and a description for screen readers.
  [[nodiscard]] std::string finish(std::string_view title, std::string_view description) const {
    const int height = at_ + margin;
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n"
        "<style>{4}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{5}</svg>\n",
        picture_width, height, escaped(title), escaped(description), plot_style, out_);
  }

 private:
  static std::string text_at(int x, int y, std::string_view kind, std::string_view text) {
    return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", kind, x, y,
                       escaped(text));
  }

  std::string out_;
  int at_ = margin / 2;
};

std::string subject(const tax_report& report) {
  std::string out =
      fmt::format("{}{}, tensor parallel {}, {} tokens, {}, ",
                  report.one_operator ? "one operator" : "an average layer", coverage(report),
                  report.tensor_parallel, report.tokens, name_of(report.type));
  if (!report.predicted.empty()) return out + "predicted";
  return out + fmt::format("measured on {}", report.gpus.empty() ? report.cpu : report.gpus);
}

}  // namespace

std::string render_plot(const tax_report& report) {
  check(report);
  const tax_breakdown layer = layer_total(report);
  const time_unit unit = unit_for(layer.total());
  const std::string title = "The taxes of " + report.model;
  picture drawn;
  drawn.space(8);
  drawn.text(title, "title");
  drawn.space(4);
  drawn.paragraph(capitalised(subject(report)));
  if (!report.predicted.empty()) drawn.paragraph("Times are " + report.predicted);
  for (const std::string& warning : report.warnings) drawn.paragraph("Warning: " + warning);
  drawn.space(12);
  const auto bars = waterfall_bars(report, nullptr, &tax_part::title);
  for (const waterfall_bar& bar : bars)
    drawn.bar(bar, layer.total(), unit, &bar == &bars.front(), &bar == &bars.back());
  drawn.space(4);
  drawn.paragraph(
      fmt::format("untax {}, commit {}, {}", report.version, report.commit, report.date));
  return drawn.finish(title, finding(report));
}

}  // namespace untax
