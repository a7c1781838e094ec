#pragma once

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

struct row_span {
  int begin = 0;
  int count = 0;
};

/// K-blocks of a tile that a CTA multiplies.
struct cta_read {
  int cluster = 0;
  int split = 0;    ///< index in the cluster along k
  row_span a;       ///< rows of A that it multiplies
  row_span b;       ///< rows of B that it multiplies
  row_span a_read;  ///< rows of A that it loads, for itself or for its whole cluster
  int tile = 0;
  int begin = 0;
  int end = 0;
  bool finishes = true;  ///< whether it finishes and stores the tile, instead of another cluster
};

/// Calls `visit(cta_read)` for all work of CTA number `cta`, in order: the same work that its roles
/// compute from its number (engines/gpu/gemm/block.cuh).
template <class Visit>
void each_read(const gemm_plan& plan, int cta, const Visit& visit) {
  const tile_config& c = plan.config;
  const tile_scheduler order(plan.schedule);
  // Rows of the N operand that all CTAs of a cluster load together.
  const int n_read = plan.multicast_rows * c.cluster;
  const int n_there = n_read < c.block_n ? n_read : c.block_n;
  const int cluster = cta / cluster_blocks(c);
  const int place = cta % cluster_blocks(c) % c.cluster;
  const int split = cta % cluster_blocks(c) / c.cluster;
  const auto look = [&](const work_tile& w) {
    const tile_scheduler::coord at = order.at(w.tile);
    const row_span m{(at.m * c.cluster + place) * tile_rows(c), tile_rows(c)};
    const row_span n{at.n * c.block_n, n_there};
    const row_span share{n.begin + place * plan.multicast_rows, plan.multicast_rows};
    visit(cta_read{cluster, split, c.swap_ab ? n : m, c.swap_ab ? m : n, c.swap_ab ? share : m,
                   w.tile, w.begin, w.end, c.cluster_split_k > 1 || w.end == order.k_blocks});
  };
  if (c.cluster_split_k > 1) {
    for (work_tile w = order.first_of_split(cluster, split, c.cluster_split_k); w.valid();
         w = order.next_of_split(w))
      look(w);
  } else {
    for (work_tile w = order.first(cluster); w.valid(); w = order.next(cluster, w)) look(w);
  }
}
/// Calls `visit(cta_read)` for all work of all CTAs.
template <class Visit>
void each_read(const gemm_plan& plan, const Visit& visit) {
  for (int cta = 0; cta < plan.blocks(); ++cta) each_read(plan, cta, visit);
}

}  // namespace untax::gpu
