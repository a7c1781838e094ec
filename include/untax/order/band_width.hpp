#pragma once

#include <algorithm>
#include <cstdint>

namespace untax::order {

/// The tiles of a product of matrices with elements of two bytes, which a GPU visits in bands
/// (`banded`), some at a time. All tiles with the same x read the same rows of one operand, and all
/// with the same y the same rows of the other one.
struct product_tiles {
  int x_tiles = 0;
  int y_tiles = 0;
  int running = 0;         ///< tiles that run at the same time
  int x_rows = 0;          ///< rows of the operand along x that a tile reads
  int y_rows = 0;          ///< rows of the operand along y that a tile reads
  std::int64_t k = 0;      ///< elements of a row
  double cache_bytes = 0;  ///< size of a cache that serves all reads and writes of the tiles
};

/// The memory traffic of bands of one width, in bytes.
struct band_traffic {
  double at_once = 0;  ///< bytes that the tiles that run at the same time read and write
  double read = 0;     ///< bytes that all tiles together read from memory
};

/// An estimate of the memory traffic with bands of width `band`. Tiles that run at the same time do
/// their steps together, so each of their rows and columns is read once. The next tiles find a row
/// or column in the cache if the cache holds everything that the running tiles touch; the next band
/// does if the cache holds everything of a band, since the least recently used data is evicted
/// first.
[[nodiscard]] constexpr band_traffic traffic_of_bands(const product_tiles& t, int band) {
  const auto xs = static_cast<double>(t.x_tiles);
  const auto ys = static_cast<double>(t.y_tiles);
  const double x_bytes = 2.0 * t.x_rows * static_cast<double>(t.k);
  const double y_bytes = 2.0 * t.y_rows * static_cast<double>(t.k);
  const double out_bytes = 2.0 * t.x_rows * t.y_rows;
  const double running = std::min(static_cast<double>(t.running), xs * ys);
  const double width = std::min(static_cast<double>(band), xs);
  // The running tiles begin and end somewhere in a column of a band, or in a band.
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

/// The width of a band with the least traffic, among those for which the cache holds all data of
/// the tiles that run at the same time: the traffic of other widths depends on how well tiles keep
/// step. It is `usual` unless another width has clearly less traffic, even with three quarters of
/// the cache: a cache that is almost full evicts data before it is reused.
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
