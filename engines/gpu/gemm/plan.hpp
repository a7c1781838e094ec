#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/schedule.hpp"

namespace untax::gpu {

/// The GPU whose measured times the cost model uses: memory, caches and clocks under load differ.
enum class gemm_costs { h200, h100 };

/// The costs for a GPU with so many bytes of L2: an H200 has 60 MiB, an H100 50.
[[nodiscard]] constexpr gemm_costs costs_of(std::size_t l2_bytes) {
  constexpr std::size_t between_both = std::size_t{55} << 20;
  return l2_bytes >= between_both ? gemm_costs::h200 : gemm_costs::h100;
}

/// A GPU as the cost model describes it: its multiprocessors, and its costs.
struct gpu_model {
  int num_sms = 0;
  gemm_costs costs = gemm_costs::h200;
};

/// C[m, n] = A[m, k] * B[n, k]^T, rows without gaps, fp32 sums.
struct gemm_shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;
  /// If true, the order of an element's additions depends on n and k alone: on their `ranges_of`.
  bool invariant = false;
};

/// How a shape is computed: the kernel, and what each of its blocks does.
struct gemm_plan {
  tile_config config;
  tile_schedule schedule;
  int multicast_rows = 0;  ///< rows of the N operand that each block loads and multicasts
  double cycles = 0;       ///< as the model estimates them

  /// The number of blocks that multiply.
  [[nodiscard]] int blocks() const { return schedule.clusters * cluster_blocks(config); }
  /// For example "128 rows of A by 256 of B, clusters of 2, 4 stages; 14 x 1 tiles, 14 of them
  /// shared by 66 clusters".
  [[nodiscard]] std::string text() const;
};

/// The number of ranges into which k is cut if bits may depend on n and k alone; none is empty. It
/// is the number of warpgroups of the largest cluster for which an H200 can run one cluster per 64
/// rows of the weights at once; or less, if adding the sums would take longer than the k-blocks.
[[nodiscard]] int ranges_of(std::int64_t n, std::int64_t k);

/// Rows of the TMA tiles in which A and B are loaded, and the bytes that L2 then reads from memory
/// at once.
[[nodiscard]] constexpr int a_tma_tile_rows(const gemm_plan& p) {
  return p.config.swap_ab ? p.multicast_rows : tile_rows(p.config);
}
[[nodiscard]] constexpr int b_tma_tile_rows(const gemm_plan& p) {
  return p.config.swap_ab ? tile_rows(p.config) : p.multicast_rows;
}
/// Weights that are read once are read in the order in which they lie in memory. Larger reads of L2
/// would only be in the way.
[[nodiscard]] constexpr int read_together(const gemm_plan& p) {
  return p.config.swap_ab && p.schedule.n_tiles == 1 ? 128 : 256;
}
/// Whether the same weights are read for several tiles of A. A gather uses no such plan: it tracks
/// arrivals of A by tiles of rows.
[[nodiscard]] constexpr bool rereads_weights(const gemm_plan& p) {
  return p.config.swap_ab && p.schedule.n_tiles > 1;
}

/// Bytes that TMA loads into each block per stage, which its barrier expects: the block's rows of
/// the M operand, and the rows of the N operand that all blocks of the cluster multicast.
[[nodiscard]] constexpr int stage_bytes(const gemm_plan& p) {
  return (tile_rows(p.config) + p.multicast_rows * p.config.cluster) *
         k_blocks_per_stage(p.config) * block_k * 2;
}
/// Rows of the N operand that each block loads if `rows` rows are left. TMA would fill rows that do
/// not exist with zeros, slowly. So if one tile has all rows, the memory below them keeps its old
/// contents, which affect no element of C.
[[nodiscard]] int multicast_rows_of(const tile_config& c, std::int64_t rows);

/// Where an operand of so many rows ends, if that is within a tile: the first row of that tile, and
/// the rows of it that each block loads. For the M operand this is the tile of a block, and no rows
/// behind that tile are loaded.
struct operand_end {
  int begin = 0;
  int rows = 0;
};
[[nodiscard]] operand_end m_end_of(const gemm_plan& p, std::int64_t rows);
[[nodiscard]] operand_end n_end_of(const gemm_plan& p, std::int64_t rows);

/// Bytes of partial sums that all blocks together may store.
[[nodiscard]] inline std::size_t partials_bytes(const gemm_plan& p) {
  if (p.schedule.stream_k_tiles == 0) return 0;
  return static_cast<std::size_t>(p.blocks()) * static_cast<std::size_t>(partial_bytes(p.config));
}

/// The plans of a shape for a GPU of `num_sms` multiprocessors, the fastest by
/// `cycles_of_operators` first. Throws `invalid_argument` for a shape that cannot be computed.
[[nodiscard]] std::vector<gemm_plan> gemm_plans(const gemm_shape& shape, int num_sms);

/// Estimates the cycles, at 1755 MHz, of a plan on a GPU, without its launch. Plain arithmetic: the
/// same for all ranks. A stage takes a block as long as the longest of
///   * its multiplications; if multiprocessors idle, the clock of the others rises,
///   * its share of reading from L2,
///   * its share of reading the operands from memory.
/// Waves of whole tiles follow each other. Tiles that clusters share also take the time to pass
/// sums through L2, and to read some operands again; tiles that the blocks of a cluster share, the
/// time to pass sums from one shared memory to another.
[[nodiscard]] double plan_cycles(const gemm_shape& shape, const gemm_plan& plan,
                                 const gpu_model& gpu);

/// As `plan_cycles`, with the parameters of operators. `evenly`: all tiles have as many splits.
[[nodiscard]] double cycles_of_operators(const gemm_shape& shape, const gemm_plan& plan,
                                         int num_sms, bool evenly);

/// The plans of `gemm_plans` for a GEMM with nothing beside it, the fastest by `plan_cycles` first,
/// without tiles much wider than A has rows, in raster groups that read little. Gathers use
/// `gemm_plans`: the tables of `automatic` were measured with the plans that it ranks first.
[[nodiscard]] std::vector<gemm_plan> plans_by_model(const gemm_shape& shape, const gpu_model& gpu);

/// Throws `unsupported` for an operator without a plan. Kernels for many rows use clusters of two
/// blocks, and communication CTAs are pairs, so an operator has no plan if it has too few workers
/// (option workers, 0 if not set) or too few multiprocessors. `possible(workers, SMs)`: whether
/// there would be a plan with so many.
[[noreturn]] void refuse_plan(std::string_view operator_name, int rank, std::int64_t rows,
                              int workers, int num_sms,
                              const std::function<bool(int, int)>& possible);

}  // namespace untax::gpu
