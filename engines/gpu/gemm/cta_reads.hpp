#pragma once

#include <cstdint>

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

struct row_span {
  int begin = 0;
  int count = 0;
};

/// k-blocks of a tile that a CTA multiplies.
struct cta_read {
  int cluster = 0;
  int split = 0;    ///< in the cluster, along k
  row_span a;       ///< rows of A that it multiplies
  row_span b;       ///< rows of B, the same
  row_span a_read;  ///< those that it reads, for itself or for all of its cluster
  int tile = 0;
  int begin = 0;
  int end = 0;
  bool finishes = true;  ///< and stores: the sums of the tile are not left to another cluster
};

/// Calls `visit(cta_read)` for all that the CTA number `cta` multiplies, in order: what its roles
/// find from its number (engines/gpu/gemm/block.cuh).
template <class Visit>
void each_read(const gemm_plan& plan, int cta, const Visit& visit) {
  const tile_config& c = plan.config;
  const tile_scheduler order(plan.schedule);
  // What all CTAs of a cluster together read of the N operand.
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
/// The same for all CTAs.
template <class Visit>
void each_read(const gemm_plan& plan, const Visit& visit) {
  for (int cta = 0; cta < plan.blocks(); ++cta) each_read(plan, cta, visit);
}

}  // namespace untax::gpu
