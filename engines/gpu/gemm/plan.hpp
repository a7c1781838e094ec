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

/// Whose measured times the model goes by: memory, caches and clocks under load differ.
enum class gemm_costs { h200, h100 };

/// Those of a GPU with so many bytes of L2: an H200 has 60 MiB, an H100 50.
[[nodiscard]] constexpr gemm_costs costs_of(std::size_t l2_bytes) {
  constexpr std::size_t between_both = std::size_t{55} << 20;
  return l2_bytes >= between_both ? gemm_costs::h200 : gemm_costs::h100;
}

/// A GPU as the model knows it: multiprocessors, and costs.
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
  /// What is added first of an element depends on n and k alone: on `ranges_of` them.
  bool invariant = false;
};

/// How a shape is computed: one of the kernels that there are, and who does what in it.
struct gemm_plan {
  tile_config config;
  tile_schedule schedule;
  int multicast_rows = 0;  ///< of the N operand, that each block reads and multicasts
  double cycles = 0;       ///< what the model expects

  /// That multiply.
  [[nodiscard]] int blocks() const { return schedule.clusters * cluster_blocks(config); }
  /// "128 rows of A by 256 of B, clusters of 2, 4 stages; 14 x 1 tiles, 14 of them shared by 66
  /// clusters".
  [[nodiscard]] std::string text() const;
};

/// Ranges into which k is cut where bits may depend on n and k alone; none of them is empty. As
/// many as the warpgroups of a cluster, if all of an H200 have a place that share a tile of 64 rows
/// of the weights; but no more than add k-blocks longer than their sums take to add.
[[nodiscard]] int ranges_of(std::int64_t n, std::int64_t k);

/// Rows of the TMA tiles in which TMA reads A and B, and the bytes that L2 then reads from
/// memory at once.
[[nodiscard]] constexpr int a_tma_tile_rows(const gemm_plan& p) {
  return p.config.swap_ab ? p.multicast_rows : tile_rows(p.config);
}
[[nodiscard]] constexpr int b_tma_tile_rows(const gemm_plan& p) {
  return p.config.swap_ab ? tile_rows(p.config) : p.multicast_rows;
}
/// Weights that are read once come in the order in which memory holds them; more at once would be
/// in the way.
[[nodiscard]] constexpr int read_together(const gemm_plan& p) {
  return p.config.swap_ab && p.schedule.n_tiles == 1 ? 128 : 256;
}
/// Whether the same weights are read for several tiles of A. A gather does without: it knows of A
/// by tiles of rows.
[[nodiscard]] constexpr bool rereads_weights(const gemm_plan& p) {
  return p.config.swap_ab && p.schedule.n_tiles > 1;
}

/// Bytes that come to each block for a stage, as its barrier counts them: its rows of the M
/// operand, and those of the N operand that all blocks of the cluster multicast to each other.
[[nodiscard]] constexpr int stage_bytes(const gemm_plan& p) {
  return (tile_rows(p.config) + p.multicast_rows * p.config.cluster) *
         k_blocks_per_stage(p.config) * block_k * 2;
}
/// How many rows of the N operand each block reads where so many are left. Rows that do not exist
/// would come as zeros, and slowly; so where one tile has all of them, what is below is left as it
/// was: it ends up in no element of C.
[[nodiscard]] int multicast_rows_of(const tile_config& c, std::int64_t rows);

/// Where an operand of so many rows ends, if that is within a tile: the row where that tile begins,
/// and how many each block reads of it. Of the M operand a tile here is that of a block, and none
/// of the rows behind that are read.
struct operand_end {
  int begin = 0;
  int rows = 0;
};
[[nodiscard]] operand_end m_end_of(const gemm_plan& p, std::int64_t rows);
[[nodiscard]] operand_end n_end_of(const gemm_plan& p, std::int64_t rows);

/// Bytes of sums that all blocks together may leave behind.
[[nodiscard]] inline std::size_t partials_bytes(const gemm_plan& p) {
  if (p.schedule.stream_k_tiles == 0) return 0;
  return static_cast<std::size_t>(p.blocks()) * static_cast<std::size_t>(partial_bytes(p.config));
}

/// The ways to compute a shape on a GPU of `num_sms` multiprocessors, the quickest by
/// `cycles_of_operators` first. Throws `invalid_argument` for a shape that cannot be computed.
[[nodiscard]] std::vector<gemm_plan> gemm_plans(const gemm_shape& shape, int num_sms);

/// Cycles of 1755 MHz that a plan takes on a GPU, without its launch.
/// Plain arithmetic: the same for all ranks. A stage takes a block as long as the longest of
///   * its multiplications; where multiprocessors idle, the clock of the others rises,
///   * its share of reading from L2,
///   * its share of reading the operands from memory.
/// Turns of whole tiles follow each other. Tiles that clusters share take the way of their sums
/// through L2 and reading some operands again; those of the blocks of a cluster, the way from one's
/// shared memory to another's.
[[nodiscard]] double plan_cycles(const gemm_shape& shape, const gemm_plan& plan,
                                 const gpu_model& gpu);

/// The same by the numbers that operators go by; `evenly`: all tiles are cut into so many splits.
[[nodiscard]] double cycles_of_operators(const gemm_shape& shape, const gemm_plan& plan,
                                         int num_sms, bool evenly);

/// Those of `gemm_plans` for a GEMM with nothing beside it, by these cycles, the quickest first,
/// without tiles that are much wider than A has rows, in raster groups that read little. Gathers go
/// by `gemm_plans`: the tables of `automatic` were measured with the plans that these choose.
[[nodiscard]] std::vector<gemm_plan> plans_by_model(const gemm_shape& shape, const gpu_model& gpu);

/// Of an operator for which there is no plan: throws `unsupported`. Kernels for many rows come in
/// clusters of two blocks, and blocks that move are pairs, so what is too few is what somebody
/// asked for (option workers, 0 if nobody did), or else the multiprocessors. `possible(workers,
/// SMs)` says whether there would be a plan with so many.
[[noreturn]] void refuse_plan(std::string_view operator_name, int rank, std::int64_t rows,
                              int workers, int num_sms,
                              const std::function<bool(int, int)>& possible);

}  // namespace untax::gpu
