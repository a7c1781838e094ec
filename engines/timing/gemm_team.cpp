#include "engines/timing/gemm_team.hpp"

#include <algorithm>

namespace untax::timing {
double seconds_of_k_block(const gemm_team& team) {
  return team.seconds / team.order.most_k_blocks();
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
      // Of the clusters that share a tile, the one with its last k-block finishes it.
      if (w.end == team.order.k_blocks && team.finished) team.finished(cluster, w.tile);
    }
    if (team.after) team.after(cluster);
  }
}

}  // namespace untax::timing
