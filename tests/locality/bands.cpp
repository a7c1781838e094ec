// Bands of tiles that are chosen by arithmetic, against what the simulation says of them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <fmt/format.h>

#include <untax/locality/kernel.hpp>
#include <untax/locality/library.hpp>
#include <untax/locality/simulate.hpp>
#include <untax/order/band_width.hpp>
#include <untax/order/raster.hpp>

namespace {

using namespace untax;
using order::product_tiles;

constexpr int usual = 8;
constexpr double side = 60 * 0x1p19;  // bytes of one side of the cache of an H200

TEST(bands, are_the_usual_ones_where_all_tiles_run_at_once) {
  for (int x = 1; x < 20; ++x)
    EXPECT_EQ(order::band_of_least_traffic({x, 132 / x, 132, 128, 256, 4096, side}, usual), usual);
}

TEST(bands, read_all_once_where_the_cache_holds_all) {
  const product_tiles t{40, 30, 132, 128, 128, 256, 1e9};
  for (const int band : {1, 3, 8, 40})
    EXPECT_EQ(order::traffic_of_bands(t, band).read, 2.0 * 256 * 128 * (40 + 30));
}

/// A product whose results are written, too.
double simulated_bytes(const product_tiles& t, int band) {
  const std::string text = fmt::format(
      "title = product\naxis y = {}\naxis x = {}\nsteps = {}\nflops = {}\n"
      "operand A = {}, {}, 2\noperand B = {}, {}, 2\noperand C = {}, {}, 2\n"
      "read A = y * {}, {}, step * 256, 256\nread B = x * {}, {}, step * 256, 256\n"
      "write C = y * {}, {}, x * {}, {}\n",
      t.y_tiles, t.x_tiles, t.k / 256, 512 * t.x_rows * t.y_rows, t.y_tiles * t.y_rows, t.k,
      t.x_tiles * t.x_rows, t.k, t.y_tiles * t.y_rows, t.x_tiles * t.x_rows, t.y_rows, t.y_rows,
      t.x_rows, t.x_rows, t.y_rows, t.y_rows, t.x_rows, t.x_rows);
  const auto k = locality::kernel::read(text, "product", {});
  const order::banded bands{t.x_tiles, t.y_tiles, band};
  locality::schedule s;
  for (int i = 0; i < k.blocks(); ++i) {
    const order::cell at = bands.at(i);
    s.blocks.push_back(at.y * t.x_tiles + at.x);
  }
  return locality::simulate(k, locality::device_named("h200"), s).memory_bytes;
}

/// Another width than the usual one reads clearly less in the mean, and never much more.
TEST(bands, of_another_width_read_less) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed() + 1);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  double gained = 0;
  int others = 0;
  for (int trial = 0; trial < 400 && others < 40; ++trial) {
    const product_tiles t{2 + below(80), 2 + below(80),       132,
                          128,           64 * (1 + below(4)), 256 * std::int64_t{1 + below(16)},
                          side};
    const int band = order::band_of_least_traffic(t, usual);
    if (band == usual) continue;
    ++others;
    const double ratio = simulated_bytes(t, band) / simulated_bytes(t, usual);
    EXPECT_LE(ratio, 1.1) << fmt::format("{} x {} tiles of {} rows, k {}, bands of {}", t.x_tiles,
                                         t.y_tiles, t.y_rows, t.k, band);
    gained += std::log(ratio);
  }
  ASSERT_GT(others, 5);
  EXPECT_LT(std::exp(gained / others), 0.9);
}

}  // namespace
