#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/select/evaluation.hpp>

namespace untax::select {
namespace {

constexpr double width = 760;
constexpr double height = 420;
constexpr double left = 60;
constexpr double top = 40;
constexpr double plot_width = 480;
constexpr double plot_height = 320;
constexpr double most_ratio = 100;  // the end of the scale

double x_of(std::size_t i, std::size_t count) {
  return left + plot_width * static_cast<double>(i) /
                    static_cast<double>(std::max<std::size_t>(count - 1, 1));
}
double y_of(double ratio) {
  return top + plot_height * (1 - std::log(std::min(ratio, most_ratio)) / std::log(most_ratio));
}

}  // namespace

std::string text_of(const judgement& j) {
  std::string text = fmt::format("{:<22} {:>6} {:>6} {:>7} {:>8} {:>7} {:>7} {:>6}\n", "way",
                                 "runs", "right", "/ best", "p99", "worst", "total", "failed");
  for (const evaluation& e : j.ways) {
    text += fmt::format("{:<22} {:>6} {:>5.1f}% {:>7.4f} {:>8.2f} {:>7.1f} {:>7.3f} {:>6}\n", e.way,
                        e.iterations, 100 * e.accuracy, e.mean_ratio, e.p99_ratio, e.worst_ratio,
                        e.seconds / e.oracle_seconds, e.failures);
  }
  return text +
         "runs: of a candidate for one conversion. / best, p99, worst: cost of a record over that "
         "of "
         "its best candidate: geometric mean, 99 of 100, most. total: all costs over all best "
         "costs. "
         "A failure counts as a multiple of the slowest.\n";
}

std::string json_of(const judgement& j, const std::vector<speedup>& over) {
  nlohmann::json list = nlohmann::json::array();
  for (const evaluation& e : j.ways) {
    list.push_back({{"way", e.way},
                    {"iterations", e.iterations},
                    {"records", e.ratios.size()},
                    {"accuracy", e.accuracy},
                    {"mean_ratio", e.mean_ratio},
                    {"p99_ratio", e.p99_ratio},
                    {"worst_ratio", e.worst_ratio},
                    {"worst", e.worst},
                    {"seconds", e.seconds},
                    {"oracle_seconds", e.oracle_seconds},
                    {"failures", e.failures}});
  }
  for (const speedup& s : over) {
    list.push_back({{"way", "selector over " + s.group},
                    {"iterations", s.iterations},
                    {"records", s.records},
                    {"mean_speedup", s.mean},
                    {"least_speedup", s.least},
                    {"least", s.lowest}});
  }
  return list.dump(1) + "\n";
}

std::string svg_of(const judgement& j, const std::string& title) {
  constexpr std::array colours = {"#1b6", "#06c", "#d33", "#999", "#b80",
                                  "#808", "#088", "#a52", "#555", "#e6a"};
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n"
      "<style>text{{font:11px sans-serif;fill:#222}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  std::string escaped;
  for (const char c : title) escaped += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  svg += fmt::format(
      "<text x=\"{}\" y=\"20\" font-weight=\"bold\">{}: cost over the best "
      "candidate's, inputs sorted</text>\n",
      left, escaped);
  for (const double ratio : {1.0, 1.1, 1.5, 2.0, 5.0, 10.0, 100.0}) {
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/><text "
        "x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        left, left + plot_width, y_of(ratio), left - 6, y_of(ratio) + 4, ratio);
  }
  std::size_t line = 0;
  for (const evaluation& e : j.ways) {
    if (e.iterations != j.ways.front().iterations) continue;
    std::vector<double> sorted = e.ratios;
    std::ranges::sort(sorted);
    const char* colour = colours[line % colours.size()];
    svg +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"", colour);
    const std::size_t step = std::max<std::size_t>(sorted.size() / 400, 1);
    for (std::size_t i = 0; i < sorted.size(); i += step)
      svg += fmt::format("{:.1f},{:.1f} ", x_of(i, sorted.size()), y_of(sorted[i]));
    svg += fmt::format("{:.1f},{:.1f}\"/>\n", x_of(sorted.size() - 1, sorted.size()),
                       y_of(sorted.back()));
    svg += fmt::format("<text x=\"{}\" y=\"{}\" style=\"fill:{}\">{} ({:.3f})</text>\n",
                       left + plot_width + 12, top + 12 + 16 * static_cast<double>(line), colour,
                       e.way, e.mean_ratio);
    ++line;
  }
  return svg + fmt::format(
                   "<text x=\"{}\" y=\"{}\">inputs, from the one that was chosen best; "
                   "geometric means in brackets</text>\n</svg>\n",
                   left, top + plot_height + 30);
}

}  // namespace untax::select
