#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "engines/sm90/gemm/plan.hpp"

// What each block of a GEMM reads and multiplies, as the roles of engines/sm90/gemm/block.cuh find
// it from its number.
namespace plans_test {

/// An address at which nothing is.
[[nodiscard]] inline void* operand_at(std::int64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
[[nodiscard]] inline std::int64_t address(const void* data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
}

struct row_span {
  int begin = 0;
  int count = 0;
};

/// Slices of a tile that a block multiplies.
struct read_tile {
  int block = 0;    ///< its number among those that multiply
  row_span a;       ///< rows of A that it multiplies
  row_span b;       ///< rows of B, the same
  row_span a_read;  ///< those that it reads, for itself or for all of its cluster
  row_span b_read;
  int tile = 0;
  int begin = 0;
  int end = 0;
  bool finishes = true;  ///< and stores: the sums of the tile are not left to another cluster
};

template <class Visit>
void each_read(const untax::sm90::gemm_plan& plan, const Visit& visit) {
  using namespace untax::sm90;
  const tile_config& c = plan.config;
  const tile_schedule& order = plan.schedule;
  // What all blocks of a cluster together read of y.
  const int y_read = plan.y_rows * c.cluster;
  const int y_there = y_read < c.columns ? y_read : c.columns;
  for (int block = 0; block < plan.blocks(); ++block) {
    const int cluster = block / (c.cluster * c.pieces);
    const int in_cluster = block % (c.cluster * c.pieces);
    const int place = in_cluster % c.cluster;
    const int piece = in_cluster / c.cluster;
    const auto look = [&](const tile_work& w) {
      EXPECT_LT(w.begin, w.end) << "a block has nothing to multiply, and stores it";
      const tile_schedule::cell at = order.at(w.tile);
      const row_span x{(at.x * c.cluster + place) * tile_rows(c), tile_rows(c)};
      const row_span y{at.y * c.columns, y_there};
      const row_span share{y.begin + place * plan.y_rows, plan.y_rows};
      visit(read_tile{block, c.swapped ? y : x, c.swapped ? x : y, c.swapped ? share : x,
                      c.swapped ? x : share, w.tile, w.begin, w.end,
                      c.pieces > 1 || w.end == order.slices});
    };
    if (c.pieces > 1) {
      for (tile_work w = order.first_of_piece(cluster, piece, c.pieces); w.valid();
           w = order.next_of_piece(w))
        look(w);
    } else {
      for (tile_work w = order.first(cluster); w.valid(); w = order.next(cluster, w)) look(w);
    }
  }
}

}  // namespace plans_test
