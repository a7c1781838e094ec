#pragma once

#include <cstdint>

#include "engines/sm90/gemm/plan.hpp"

namespace untax::sm90 {

struct row_span {
  int begin = 0;
  int count = 0;
};

/// k-blocks of a tile that a CTA multiplies.
struct cta_read {
  int cta = 0;  ///< its number among those that multiply
  int cluster = 0;
  int place = 0;    ///< in the cluster, along x
  int piece = 0;    ///< in the cluster, along k
  row_span a;       ///< rows of A that it multiplies
  row_span b;       ///< rows of B, the same
  row_span a_read;  ///< those that it reads, for itself or for all of its cluster
  row_span b_read;
  int tile = 0;
  int begin = 0;
  int end = 0;
  bool finishes = true;  ///< and stores: the sums of the tile are not left to another cluster
};

/// Calls `visit(cta_read)` for all that the CTA number `cta` multiplies, in order: what its roles
/// find from its number (engines/sm90/gemm/block.cuh).
template <class Visit>
void each_read(const gemm_plan& plan, int cta, const Visit& visit) {
  const tile_config& c = plan.config;
  const tile_schedule& order = plan.schedule;
  // What all CTAs of a cluster together read of y.
  const int y_read = plan.y_rows * c.cluster;
  const int y_there = y_read < c.columns ? y_read : c.columns;
  const int cluster = cta / cluster_blocks(c);
  const int place = cta % cluster_blocks(c) % c.cluster;
  const int piece = cta % cluster_blocks(c) / c.cluster;
  const auto look = [&](const tile_work& w) {
    const tile_schedule::cell at = order.at(w.tile);
    const row_span x{(at.x * c.cluster + place) * tile_rows(c), tile_rows(c)};
    const row_span y{at.y * c.columns, y_there};
    const row_span share{y.begin + place * plan.y_rows, plan.y_rows};
    visit(cta_read{cta, cluster, place, piece, c.swapped ? y : x, c.swapped ? x : y,
                   c.swapped ? share : x, c.swapped ? x : share, w.tile, w.begin, w.end,
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
/// The same for all CTAs.
template <class Visit>
void each_read(const gemm_plan& plan, const Visit& visit) {
  for (int cta = 0; cta < plan.blocks(); ++cta) each_read(plan, cta, visit);
}

}  // namespace untax::sm90
