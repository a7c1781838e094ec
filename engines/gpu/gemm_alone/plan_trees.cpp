#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engines/gpu/gemm_alone/plans.hpp"

namespace untax::gpu {
namespace {

/// The nodes of all trees, one tree after the other, each in pre-order: a split is followed by the
/// nodes of its lower side, then by those of its upper side.
struct tree_node {
  int feature;    ///< the feature that a split tests; -1: a leaf
  double number;  ///< split: the greatest value of the lower side, the next node; leaf: its summand
  int to;         ///< nodes to skip to the upper side; from a leaf, to the root of the next tree
};
constexpr tree_node nodes[] = {
#include "engines/gpu/gemm_alone/plan_trees.inc"
};

/// The features of a plan; the fastest plan of the same problem takes `least` cycles.
using features = std::array<double, 15>;
features features_of(const gemm_plan& p, double least, gemm_costs costs) {
  const tile_config& c = p.config;
  const tile_schedule& s = p.schedule;
  const bool evenly = s.even_splits() > 0;
  const int way = c.cluster_split_k > 1 ? 1 : s.stream_k_tiles == 0 ? 0 : evenly ? 2 : 3;
  const double turns = 1.0 * s.tiles() / s.clusters;
  return {p.cycles / least,
          p.cycles,
          1.0 * c.block_n,
          1.0 * c.cluster,
          c.swap_ab ? 1.0 : 0.0,
          1.0 * c.cluster_split_k,
          1.0 * way,
          1.0 * s.tiles(),
          turns,
          std::ceil(turns) / turns,
          1.0 * s.m_tiles,
          1.0 * s.n_tiles,
          costs == gemm_costs::h100 ? 1.0 : 0.0,
          1.0 * s.stream_k_tiles / s.tiles(),
          1.0 * s.stages()};
}

/// The logarithm of the factor by which the model is wrong: the sum over all trees.
double sum_of_trees(const features& f) {
  double sum = 0;
  for (const tree_node* at = nodes; at != std::end(nodes);) {
    if (at->feature < 0) sum += at->number;
    const bool lower = at->feature >= 0 && f[static_cast<std::size_t>(at->feature)] <= at->number;
    at += lower ? 1 : at->to;
  }
  return sum;
}

}  // namespace

void correct_by_trees(std::vector<gemm_plan>& plans, const gemm_shape& shape,
                      const gpu_model& gpu) {
  constexpr std::int64_t few_rows = 16;
  constexpr int measured_sms = 132;
  // Plans that the model expects to be so much slower were not timed.
  constexpr double farthest = 1.45;
  if (plans.empty() || shape.invariant || shape.m <= few_rows || gpu.num_sms != measured_sms)
    return;
  const double least = std::ranges::min(plans, {}, &gemm_plan::cycles).cycles;
  for (gemm_plan& p : plans)
    if (p.cycles <= farthest * least)
      p.cycles *= std::exp(sum_of_trees(features_of(p, least, gpu.costs)));
}

std::vector<gemm_plan> plans_alone(const gemm_shape& shape, const gpu_model& gpu) {
  std::vector<gemm_plan> plans = plans_by_model(shape, gpu);
  correct_by_trees(plans, shape, gpu);
  std::ranges::stable_sort(plans, {}, &gemm_plan::cycles);
  return plans;
}

}  // namespace untax::gpu
