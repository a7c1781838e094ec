#include <fmt/format.h>

#include <untax/select/emit.hpp>

#include "src/select/named_trees.hpp"

namespace untax::select {
namespace {

constexpr int row_height = 22;
constexpr int column_width = 150;
constexpr int margin = 16;

std::string condition(const named_tree& t, const decision_tree::node& n, bool low) {
  return fmt::format("{} {} {:.6g}", t.features[static_cast<std::size_t>(n.feature)],
                     low ? "<=" : ">", n.threshold);
}

std::string leaf(const named_tree& t, const decision_tree::node& n) {
  return fmt::format("{} ({} records)", t.choices[static_cast<std::size_t>(n.choice)], n.records);
}

void write_node(const named_tree& t, int at, int depth, std::string& text) {
  const decision_tree::node& n = t.tree->nodes()[static_cast<std::size_t>(at)];
  const std::string space(static_cast<std::size_t>(2 * depth + 2), ' ');
  if (n.feature < 0) {
    text += fmt::format("{}{}\n", space, leaf(t, n));
    return;
  }
  text += fmt::format("{}{}:\n", space, condition(t, n, true));
  write_node(t, n.low, depth + 1, text);
  text += fmt::format("{}{}:\n", space, condition(t, n, false));
  write_node(t, n.high, depth + 1, text);
}

/// Draws a tree from left to right, with one leaf on each line.
class drawer {
 public:
  drawer(const named_tree& t, int top) : t_(t), next_(top) {}

  /// Draws a node and all nodes below it. Returns the y coordinate of the node.
  double draw(int at, int depth) {
    const decision_tree::node& n = t_.tree->nodes()[static_cast<std::size_t>(at)];
    const int x = margin + depth * column_width;
    if (n.feature < 0) {
      const int y = next_;
      next_ += row_height;
      svg += fmt::format("<text x=\"{}\" y=\"{}\" class=\"leaf\">{}</text>\n", x + 4, y + 4,
                         leaf(t_, n));
      return y;
    }
    const double low = draw(n.low, depth + 1);
    const double high = draw(n.high, depth + 1);
    const double y = (low + high) / 2;
    const int turn = x + column_width - 8;
    svg += fmt::format(
        "<path d=\"M{0} {1:.1f}H{2}M{2} {3:.1f}V{4:.1f}M{2} {3:.1f}H{5}M{2} {4:.1f}H{5}\"/>\n", x,
        y, turn, low, high, x + column_width);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}?</text>\n", x + 4, y - 4,
                       escaped(condition(t_, n, true)));
    return y;
  }
  [[nodiscard]] int end() const { return next_; }

  std::string svg;

 private:
  static std::string escaped(std::string text) {
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 4)
      text.replace(at, 1, "&lt;");
    return text;
  }

  const named_tree& t_;
  int next_;
};

}  // namespace

std::string to_text(const selector& s) {
  std::string text;
  for (const named_tree& t : trees_of(s)) {
    text += t.question + "\n";
    write_node(t, 0, 0, text);
  }
  for (const candidate& c : s.what().candidates) {
    if (c.guard.empty()) continue;
    const std::string known =
        c.known_guard.empty() ? "" : fmt::format(" (without gathering: {})", c.known_guard);
    text += fmt::format("{} only where {}{}, else {}\n", c.name, c.guard, known,
                        s.what().candidates[static_cast<std::size_t>(s.fallback())].name);
  }
  return text;
}

std::string to_svg(const selector& s) {
  std::string body;
  int y = 2 * margin;
  int depth = 0;
  for (const named_tree& t : trees_of(s)) {
    body += fmt::format("<text x=\"{}\" y=\"{}\" class=\"title\">{} (upper branch: yes)</text>\n",
                        margin, y, t.question);
    drawer d(t, y + 2 * row_height);
    d.draw(0, 0);
    body += d.svg;
    y = d.end() + 2 * row_height;
    depth = std::max(depth, t.tree->depth());
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n"
             "<style>text{{font:11px "
             "sans-serif;fill:#222}}.title{{font-weight:bold;font-size:13px}}"
             ".leaf{{fill:#0a5}}path{{stroke:#999;fill:none}}</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             2 * margin + (depth + 1) * column_width, y) +
         body + "</svg>\n";
}

}  // namespace untax::select
