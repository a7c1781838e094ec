#include <algorithm>

#include <fmt/format.h>

#include <untax/locality/emit.hpp>

namespace untax::locality {
namespace {

constexpr int most = 96;  // places along an edge of the picture

/// One hue for each domain; one domain alone is drawn in blues.
std::string colour(int domain, int domains, int wave, int waves) {
  const int hue = domains == 1 ? 215 : 360 * domain / domains;
  const int light = 35 + (waves > 1 ? 50 * wave / (waves - 1) : 15);
  return fmt::format("hsl({},65%,{}%)", hue, light);
}

}  // namespace

std::string to_svg(const block_order& order, const kernel& k, const device& d) {
  // The last axis with more than one place goes across, all others down.
  int across = 1;
  for (const axis& a : k.axes()) across = a.extent > 1 ? a.extent : across;
  const bool is_row = across == k.blocks();
  if (is_row) across = std::min(across, most);
  const int down = (k.blocks() + across - 1) / across;
  const int columns = std::min(across, most);
  const int rows = std::min(down, most);
  const int side = std::max(4, std::min(16, 768 / std::max(columns, rows)));
  const int slots = d.processors * k.resident();
  const int per_domain = (k.blocks() + d.domains - 1) / d.domains;
  const int waves = std::min(8, (per_domain + slots - 1) / slots);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<text x=\"4\" y=\"14\">{}: {}</text>\n<text x=\"4\" y=\"30\">Colour: domain of {}. The "
      "later "
      "a block starts, the lighter ({} waves, then again).{}</text>\n",
      std::max(560, columns * side + 8), rows * side + 44, d.name, order.name, d.domains, waves,
      rows < down || columns < across ? " The first part of the grid." : "");
  for (int y = 0; y < rows; ++y) {
    // Adjacent places of the same colour are drawn as one rectangle.
    std::string last;
    int from = 0;
    for (int x = 0; x <= columns; ++x) {
      std::string row;
      const int block = y * across + x;
      if (x < columns && block < k.blocks()) {
        const int position = order.position(block);
        const int round = d.domains * d.chunk;
        const int local = position / round * d.chunk + position % d.chunk;
        row = colour(position / d.chunk % d.domains, d.domains, local / slots % waves, waves);
      }
      if (row == last) continue;
      if (!last.empty()) {
        text += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                            4 + from * side, 40 + y * side, (x - from) * side, side, last);
      }
      last = row;
      from = x;
    }
  }
  return text + "</svg>\n";
}

}  // namespace untax::locality
