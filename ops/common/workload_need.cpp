#include <algorithm>
#include <thread>

#include "ops/common/workload.hpp"

namespace untax {
namespace {

double area(const range& rows, const range& cols) {
  return static_cast<double>(rows.size) * static_cast<double>(cols.size);
}
double area(const extent& size) {
  return static_cast<double>(size.rows) * static_cast<double>(size.cols);
}

int workers_of(const operator_options& options, int world) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return options.workers > 0 ? options.workers : std::max(cores / world, 1);
}

/// A plan of about the same tiles as the operator makes.
protocol_plan about(const operator_entry& entry, const gemm_problem& problem,
                    const operator_options& options, int world, int rank) {
  const auto chosen = [](std::int64_t asked, std::int64_t usual, std::int64_t most) {
    return std::clamp<std::int64_t>(asked > 0 ? asked : usual, 1, std::max<std::int64_t>(most, 1));
  };
  protocol_plan plan;
  plan.world = world;
  plan.rank = rank;
  plan.how = options.how == pattern::automatic ? pattern::fused_specialized : options.how;
  plan.move = options.move;
  plan.workers = workers_of(options, world);
  plan.senders = std::max(options.senders, 1);
  if (entry.phases)
    plan.phases =
        options.phases > 0 ? options.phases : entry.phases(problem, world, memory_kind::host);
  plan.tile_m = chosen(options.tile_m, 512, problem.m);
  plan.tile_n = chosen(options.tile_n, 2048, problem.n);
  plan.panel_k = options.panel_k > 0 ? options.panel_k : 2048;
  return plan;
}

}  // namespace

memory_need operands_need(const operator_entry& entry, const gemm_problem& problem, int world,
                          int rank) {
  const gemm_share share = entry.share(problem, world, rank);
  const auto size = static_cast<double>(size_of(problem.type));
  const double result = size * area(share.c_rows, share.c_cols);
  memory_need need;
  need.weights = size * area(share.b_rows, share.b_cols);
  need.activations = size * area(share.a_rows, share.a_cols) + result;
  if (entry.result_in_heap) need.heap_of_rank = result;
  return need;
}

memory_need operator_need(const operator_entry& entry, const gemm_problem& problem,
                          const operator_options& options, int world, int rank) {
  memory_need need;
  if (operands_need(entry, problem, world, rank).total() > beyond_any_machine) return need;
  const protocol_plan plan = about(entry, problem, options, world, rank);
  const program steps = entry.protocol(problem, plan);
  const dtype moved = entry.sums_to ? partials_type(problem) : problem.type;
  need.heaps = (area(steps.inbox()) + area(steps.outbox())) * static_cast<double>(size_of(moved));
  need.heap_of_rank = need.heaps;
  if (problem.type != dtype::f32) {
    // A worker keeps a tile in fp32, and widened operands for it: of the weights as much as a cache
    // holds.
    const extent tile = steps.tile_extent();
    const double widened = static_cast<double>(tile.rows) * static_cast<double>(problem.k);
    const double weights = static_cast<double>(problem.n) * static_cast<double>(problem.k);
    need.work_space = plan.workers * (sizeof(float) * (area(tile) + widened) +
                                      std::min(0x1p24, sizeof(float) * weights));
  }
  return need;
}

}  // namespace untax
