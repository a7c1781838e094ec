#include "engines/timing/gemm_team.hpp"

#include <algorithm>

namespace untax::timing {
namespace {

/// The longest share of any cluster, in k-blocks.
int most_k_blocks(const gpu::tile_schedule& order) {
  int most = 1;
  for (int cluster = 0; cluster < order.clusters; ++cluster) {
    int k_blocks = 0;
    for (auto w = order.first(cluster); w.valid(); w = order.next(cluster, w))
      k_blocks += w.end - w.begin;
    most = std::max(most, k_blocks);
  }
  return most;
}

}  // namespace

double seconds_of_k_block(const gemm_team& team) {
  return team.seconds / most_k_blocks(team.order);
}

void add_gemm(workload& work, int kernel, const gemm_team& team) {
  const double k_block = seconds_of_k_block(team);
  const int portion = team.portion > 0 ? team.portion : team.order.k_blocks;
  for (int cluster = 0; cluster < team.order.clusters; ++cluster) {
    work.add_worker(kernel);
    if (team.before) team.before(cluster);
    for (auto w = team.order.first(cluster); w.valid(); w = team.order.next(cluster, w)) {
      for (int begin = w.begin; begin < w.end; begin += portion) {
        const int end = std::min(begin + portion, w.end);
        if (team.needs) team.needs(cluster, w.tile, begin, end);
        work.act({.busy = k_block * (end - begin), .way = signal_way::at_once});
      }
      // Of the clusters that share a tile, the one that has its end finishes it.
      if (w.end == team.order.k_blocks && team.finished) team.finished(cluster, w.tile);
    }
    if (team.after) team.after(cluster);
  }
}

}  // namespace untax::timing
