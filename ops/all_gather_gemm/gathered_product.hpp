#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "ops/common/device_operator.hpp"

namespace untax {

// bulk_synchronous of rows in a world of GPUs: untax's all_gather brings all of A to every rank,
// and a product of one GPU multiplies it. The tiles of the other patterns follow the shards of
// ranks and read weights once; those of a product may have any rows, and cuBLASLt may compute them.

/// Whether bulk_synchronous gathers first: A is sharded by rows, and no option asks for a number of
/// workers or senders, which the kernels of the other patterns have.
[[nodiscard]] bool may_gather_first(const all_gather_gemm_problem& problem,
                                    const operator_options& options) noexcept;

/// The `usual_patterns` for such a problem: every pattern of own kernels, bulk_synchronous first,
/// for the numbers of rows and bytes at which it may be the quickest; else none.
[[nodiscard]] std::vector<pattern> usual_gathers(const all_gather_gemm_problem& problem,
                                                 const operator_options& options, int world);

/// All rows of A at each rank, where peers write them. It serves any number of rows up to that of
/// its problem.
class row_gather;

/// Allocates the rows, and plans their all_gather: with `varying_rows` for any number of rows, else
/// for that of the problem. Construction and destruction are collective. Throws `out_of_memory`.
[[nodiscard]] std::shared_ptr<row_gather> gather_rows(world& w,
                                                      const all_gather_gemm_problem& problem,
                                                      bool varying_rows);

/// The operator in bulk_synchronous, for at most as many rows as `gather` serves; null in a world
/// of one rank. Throws the errors of `product`.
[[nodiscard]] std::unique_ptr<device_operator> product_of_gathered(
    world& w, const all_gather_gemm_problem& problem, const operator_options& options,
    std::shared_ptr<row_gather> gather);

}  // namespace untax
