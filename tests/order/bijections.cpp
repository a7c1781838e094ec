// Every order is a bijection: for all small sizes, and for random ones up to 2^20 that nothing
// divides.
#include <random>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/order/attention.hpp>
#include <untax/order/curves.hpp>
#include <untax/order/raster.hpp>
#include <untax/order/rectangles.hpp>
#include <untax/order/remap.hpp>
#include <untax/order/steps.hpp>

#include "tests/order/support.hpp"

namespace untax::order::test {
namespace {

void expect_ways(int x, int y, int parameter) {
  SCOPED_TRACE(fmt::format("{} x {} tiles, {}", x, y, parameter));
  const int size = x * y;
  expect_bijection(through{banded{x, y, parameter, 1}}, size);
  expect_bijection(through{snake{x, y, parameter}}, size);
  expect_bijection(through{transposed{banded{y, x, parameter, 1}}}, size);
  if (x % parameter == 0) expect_bijection(through{banded{x, y, 3, parameter}}, size);
  const int across = parameter < x ? parameter : x;
  const int down = parameter + 1 < y ? parameter + 1 : y;
  expect_bijection(through{rectangles{x, y, across, down, 2}}, size);
  expect_bijection(through{rectangles{x, y, 1, down, x}}, size);
}

void expect_curves(int x, int y) {
  SCOPED_TRACE(fmt::format("{} x {} tiles", x, y));
  expect_bijection(through{morton{x, y}}, x * y);
  expect_bijection(through{hilbert{x, y}}, x * y);
  expect_bijection(through{transposed{hilbert{y, x}}}, x * y);
  expect_bijection(through{diagonals{x, y}}, x * y);
}

TEST(orders, of_lines_are_bijections) {
  for (int size = 1; size <= 70; ++size) {
    expect_bijection(as_numbered{size}, size);
    expect_bijection(last_first{size}, size);
    for (int domains = 1; domains <= 10; ++domains) {
      SCOPED_TRACE(fmt::format("{} blocks, {} domains", size, domains));
      expect_bijection(full_remap(size, domains), size);
      for (const int chunk : {1, 2, 3, 7, 64, 1 << 30})
        expect_bijection(chunked_remap{size, domains, chunk}, size);
    }
    for (int turn = 0; turn < 5; ++turn) {
      for (const direction way : {direction::forward, direction::backward, direction::sawtooth,
                                  direction::staggered, direction::joined})
        expect_bijection(step_order{size, way, turn, turn + 3}, size);
    }
  }
}

TEST(orders, through_grids_are_bijections) {
  for (int x = 1; x <= 13; ++x) {
    for (int y = 1; y <= 13; ++y) {
      expect_curves(x, y);
      for (int parameter = 1; parameter <= 6; ++parameter) expect_ways(x, y, parameter);
    }
  }
}

TEST(orders, of_axes_are_bijections) {
  const int permutations[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 5; ++b) {
      for (int c = 1; c <= 6; ++c) {
        for (const auto& p : permutations)
          expect_bijection(axis_order<3>{{a, b, c}, {p[0], p[1], p[2]}}, a * b * c);
        expect_bijection(along_axis{a, c, full_remap(b, 3)}, a * b * c);
        expect_bijection(repeated{a, through{hilbert{b, c}}}, a * b * c);
      }
    }
  }
}

TEST(orders, of_attention_are_bijections) {
  for (const int domains : {1, 2, 3, 8}) {
    for (int kv = 1; kv <= 12; ++kv) {
      for (const auto& [batches, group, blocks] :
           {std::tuple{1, 1, 5}, std::tuple{2, 1, 16}, std::tuple{3, 4, 7}, std::tuple{8, 2, 1}}) {
        const attention_grid g{batches, kv, group, blocks};
        SCOPED_TRACE(fmt::format("batches {}, heads of keys {}, group {}, blocks {}, domains {}",
                                 batches, kv, group, blocks, domains));
        expect_bijection(naive_block_first(g), g.size());
        expect_bijection(swizzled_block_first(g, domains), g.size());
        expect_bijection(naive_head_first(g), g.size());
        expect_bijection(swizzled_head_first(g, domains), g.size());
        expect_bijection(naive_group_first(g), g.size());
        expect_bijection(swizzled_group_first(g, domains), g.size());
        expect_bijection(longest_first(swizzled_group_first(g, domains), g), g.size());
        for (const int section : {1, 3, g.heads(), 1 << 20}) {
          expect_bijection(head_sections{g, section}, g.size());
          expect_bijection(longest_first(head_sections{g, section}, g), g.size());
          for (const int last : {1, 5, 1 << 20})
            expect_bijection(head_sections{g, section, last}, g.size());
        }
      }
    }
  }
}

TEST(orders, of_random_sizes_are_bijections) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const auto below = [&](int end) { return 1 + static_cast<int>(random() % std::uint64_t(end)); };
  for (int i = 0; i < 60; ++i) {
    const int size = below(1 << (6 + i % 15));  // up to 2^20
    const chunked_remap remap{size, below(16), below(size)};
    SCOPED_TRACE(fmt::format("{} blocks, {} domains, chunk {}", size, remap.domains, remap.chunk));
    const int x = below(1 << 10);
    const int y = below(1 << 10);
    const int parameter = below(40);
    expect_inverse(remap, random, 2000);
    if (i % 6 == 0) {
      expect_bijection(remap, size);
      expect_ways(x, y, parameter);
      expect_curves(x, y);
    }
    expect_inverse(composed{full_remap(x * y, 8), through{hilbert{x, y}}}, random, 500);
    expect_inverse(head_sections{{1, x, 1, y}, below(2 * x), below(2 * x)}, random, 500);
    expect_inverse(composed{full_remap(x * y, 8), through{rectangles{x, y, 1, 1, parameter}}},
                   random, 500);
  }
}

}  // namespace
}  // namespace untax::order::test
