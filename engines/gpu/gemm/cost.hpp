#pragma once

#include <vector>

#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// Cycles of 1755 MHz that a plan takes on a GPU of `num_sms` multiprocessors, without its launch.
/// Plain arithmetic: the same for all ranks. A stage takes a block as long as the longest of
///   * its multiplications; where multiprocessors idle, the clock of the others rises,
///   * its share of reading from L2,
///   * its share of reading the operands from memory.
/// Turns of whole tiles follow each other. Tiles that clusters share take the way of their sums
/// through L2 and reading some operands again; those of the blocks of a cluster, the way from one's
/// shared memory to another's.
[[nodiscard]] double plan_cycles(const gemm_shape& shape, const gemm_plan& plan, int num_sms);

/// Those of `gemm_plans` for a GEMM with nothing beside it, by these cycles, the quickest first,
/// and without tiles that are much wider than A has rows. Operators go by the cycles of
/// `gemm_plans`: the tables of `automatic` were measured with the plans that these choose.
[[nodiscard]] std::vector<gemm_plan> plans_alone(const gemm_shape& shape, int num_sms);

}  // namespace untax::gpu
