#pragma once

#include <cstdint>

#include <untax/tile/shard.hpp>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/layout.hpp"

namespace untax {

/// TMA tiles of 32 KB, as wide as can be described.
inline constexpr std::int64_t tma_tile_rows = 64;
inline constexpr std::int64_t tma_tile_columns = 256;

/// The part of A that a rank has: of rank 0, whose shard is full.
struct shard_extent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  [[nodiscard]] static shard_extent of(const all_gather_gemm_problem& problem, int world) {
    const std::int64_t part = a_sharding(problem, world).full();
    return problem.gather == gather_axis::rows ? shard_extent{part, problem.k}
                                               : shard_extent{problem.m, part};
  }
  [[nodiscard]] std::int64_t bytes() const { return rows * columns * 2; }
};

/// Cuts A into the chunks in which it moves, where it is known who moves and what the GEMM is like:
/// sets all that a plan says of senders and chunks.
void cut_chunks(gather_plan& plan, const all_gather_gemm_problem& problem,
                const operator_options& options);

/// How long a gather takes if its GEMM takes `plan.gemm.cycles` alone, in cycles of 1755 MHz: with
/// what its clusters wait for and with what moves beside them. A rank sends `sent_bytes`, to all
/// peers together.
[[nodiscard]] double overlapped_cycles(const gather_plan& plan, double sent_bytes);

}  // namespace untax
