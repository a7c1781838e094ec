#pragma once

#include <algorithm>
#include <cstdint>

namespace untax::order {

/// Tiles of a product of matrices, of elements of two bytes, that a GPU goes through in bands
/// (`banded`), some at a time. A tile reads rows of one operand that all tiles with its x read, and
/// rows of the other one that all with its y read.
struct product_tiles {
  int x_tiles = 0;
  int y_tiles = 0;
  int running = 0;  ///< tiles at a time
  int x_rows = 0;   ///< of the operand along x, that a tile reads
  int y_rows = 0;   ///< of that along y
  std::int64_t k = 0;
  double cache_bytes = 0;  ///< of a cache that sees all that the tiles read and write
};

/// What bands of one width come to.
struct band_traffic {
  double at_once = 0;  ///< bytes that those tiles read and leave that run at the same time
  double read = 0;     ///< from memory, by all tiles
};

/// About what comes from memory with bands of a width. Tiles that run at once go through their
/// steps together, so each of their rows and columns comes once. What they leave behind is there
/// for the next ones if the cache holds all of theirs, and for the next band if it holds all of a
/// band's: the least recently used goes first.
[[nodiscard]] constexpr band_traffic traffic_of_bands(const product_tiles& t, int band) {
  const auto xs = static_cast<double>(t.x_tiles);
  const auto ys = static_cast<double>(t.y_tiles);
  const double x_bytes = 2.0 * t.x_rows * static_cast<double>(t.k);
  const double y_bytes = 2.0 * t.y_rows * static_cast<double>(t.k);
  const double out_bytes = 2.0 * t.x_rows * t.y_rows;
  const double running = std::min(static_cast<double>(t.running), xs * ys);
  const double width = std::min(static_cast<double>(band), xs);
  // Those that run begin and end somewhere in a column of a band, or in a band.
  const double columns = std::min(ys, (running - 1) / width + 1);
  const double bands = columns < ys ? 1 : (running - 1) / (width * ys) + 1;
  const double rows = std::min(xs, width * bands);
  const double read = rows * x_bytes + columns * y_bytes;
  const double at_once = read + running * out_bytes;
  if (at_once > t.cache_bytes) return {at_once, xs * ys / running * read};
  const double of_band = width * x_bytes + ys * (y_bytes + width * out_bytes);
  const double passes = columns == ys || of_band <= t.cache_bytes ? 1 : xs / width;
  return {at_once, xs * x_bytes + ys * y_bytes * passes};
}

/// The width with the fewest bytes, of those where the cache holds what runs at once: the others
/// depend on how well tiles keep step. `usual` where no other one has clearly fewer, also with a
/// quarter less of the cache: what is all but full does not keep what it is counted on to keep.
[[nodiscard]] constexpr int band_of_least_traffic(const product_tiles& t, int usual) {
  constexpr int widths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  constexpr double clearly = 0.75;
  product_tiles in_less = t;
  in_less.cache_bytes *= 0.75;
  int best = usual;
  double least = clearly * traffic_of_bands(t, usual).read;
  for (const int width : widths) {
    const band_traffic one = traffic_of_bands(in_less, width);
    if (width > t.x_tiles || one.at_once > in_less.cache_bytes || one.read >= least) continue;
    least = one.read;
    best = width;
  }
  return best;
}

}  // namespace untax::order
