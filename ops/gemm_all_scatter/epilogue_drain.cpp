#include "ops/gemm_all_scatter/device_plan.hpp"

#include <algorithm>

#include <untax/core/types.hpp>

namespace untax {
namespace {

// Measured on H200, in cycles of 1755 MHz.
constexpr double link_bytes_per_cycle = 188;  // out of a rank
// Of a block that moves TMA tiles beside a GEMM: to read a byte, and to store it to a peer.
constexpr double read_cycles_per_byte = 0.03;
constexpr double store_cycles_per_byte = 0.033;
constexpr double between_kernels = 3500;  // from one's last result to the next one's first k-block
constexpr double to_begin_a_copy = 7000;  // from a kernel's end

/// How often each cluster finishes tiles.
int rounds_of(const gpu::tile_schedule& order) {
  return std::max(ceil_div(order.tiles(), order.clusters), 1);
}

/// Cycles that it takes to send what becomes of so many tiles, at a rate in bytes per cycle.
double sending(const gpu::gemm_plan& plan, int world, int tiles,
               double rate = link_bytes_per_cycle) {
  const double tile = 2.0 * tile_rows(plan.config) * plan.config.block_n * plan.config.cluster;
  return tiles * tile * (world - 1) / rate;
}

/// Until the last results have left at this rate.
double last_left(const gpu::gemm_plan& plan, int world, double rate) {
  const gpu::tile_schedule& order = plan.schedule;
  const double round = plan.cycles / rounds_of(order);
  const int whole = order.whole_tiles();
  double free = 0;  // when what was finished so far has been sent
  double now = 0;
  for (int tile = 0; tile < whole; tile += order.clusters) {
    now += round;
    free = std::max(free, now) + sending(plan, world, std::min(order.clusters, whole - tile), rate);
  }
  // Those that clusters share are finished by all at the end.
  return std::max(free, plan.cycles) + sending(plan, world, order.stream_k_tiles, rate);
}

}  // namespace

double drain_cycles_of_epilogue(const gpu::gemm_plan& plan, int world) {
  return last_left(plan, world, link_bytes_per_cycle);
}

double drain_cycles_of_senders(const gpu::gemm_plan& plan, int moving, int world) {
  const int peers = std::max(world - 1, 1);
  const double block = peers / (read_cycles_per_byte + peers * store_cycles_per_byte);
  return last_left(plan, world, std::min(moving * block, link_bytes_per_cycle));
}

double drain_cycles_of_copies(const gpu::gemm_plan& plan, int row_splits, int world) {
  const double row_split = sending(plan, world, plan.schedule.tiles());
  double free = 0;
  double now = 0;
  for (int i = 0; i < row_splits; ++i) {
    now += plan.cycles + between_kernels;
    free = std::max(free, now + to_begin_a_copy) + row_split;
  }
  return free;
}

}  // namespace untax
