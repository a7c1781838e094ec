#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/gemm/plan.hpp"
#include "engines/host/engine.hpp"

namespace untax {

/// The properties of a rank's GEMM that determine its split into tiles.
struct local_gemm {
  std::int64_t rows = 0;   ///< of a block of rows that is sent as a whole: a shard, or all of C
  std::int64_t cols = 0;   ///< that one rank computes
  std::int64_t depth = 0;  ///< of one multiplication
  dtype type = dtype::f32;
};

struct made_plan {
  protocol_plan plan;
  std::string explanation;
};

/// Fills in the options that are left open: pattern, workers, tile. Throws `invalid_argument` for
/// options that are not possible.
[[nodiscard]] made_plan make_plan(const world& w, std::string_view operator_name,
                                  const local_gemm& gemm, const operator_options& options);

/// As `make_plan`, in a world of GPUs, where planners of kernels decide the rest: a zero means that
/// they choose.
[[nodiscard]] protocol_plan plan_for_device(const world& w, const operator_options& options);

/// The plans that `plans_of(options, num_sms)` makes for a GPU of `num_sms` multiprocessors. Throws
/// `unsupported` if no kernel can multiply; the text has the number of workers, or of
/// multiprocessors, with which one could.
template <class PlansOf>
[[nodiscard]] auto plans_or_refusal(std::string_view operator_name, int rank, std::int64_t rows,
                                    const operator_options& options, int num_sms,
                                    const PlansOf& plans_of) {
  auto plans = plans_of(options, num_sms);
  if (!plans.empty()) return plans;
  gpu::refuse_plan(operator_name, rank, rows, options.workers, num_sms, [&](int workers, int sms) {
    operator_options other = options;
    other.workers = workers;
    return !plans_of(other, sms).empty();
  });
}

/// The configuration of the kernel, among `kernels`, that has the tiles of a plan of the GEMM
/// alone. The numbers of stages and of sub-tiles of results may differ; the rest is the same.
/// Nothing if no kernel has such tiles.
[[nodiscard]] std::optional<gpu::tile_config> compiled_for(
    std::span<const gpu::tile_config> kernels, const gpu::tile_config& planned);

/// The plans of a GEMM on a number of blocks for which `kernels` has a kernel, the quickest first.
/// Plans that read weights again for several tiles of A are left out.
[[nodiscard]] std::vector<gpu::gemm_plan> compiled_plans(std::span<const gpu::tile_config> kernels,
                                                         const gpu::gemm_shape& shape, int blocks);
/// As `compiled_plans`, for an operator that has swap_ab for many rows, too, in wide tiles of more
/// than 128, several of which read the same weights. Only the model of the GEMM alone has such
/// plans, so that model is used for many rows. `shares`: register shares of the kernels; warpgroups
/// need registers for the ranges of k that they add.
[[nodiscard]] std::vector<gpu::gemm_plan> plans_with_wide_tiles(
    std::span<const gpu::tile_config> kernels, const gpu::gemm_shape& shape,
    const gpu::gpu_model& gpu, const gpu::register_shares& shares);

/// The most blocks that only send, beside two that multiply: even, as clusters start together.
[[nodiscard]] constexpr int most_beside(int num_sms) { return (num_sms - 2) / 2 * 2; }
/// The number of blocks that multiply, of `free` blocks.
[[nodiscard]] constexpr int multiplying(const operator_options& options, int free) {
  return options.workers > 0 && options.workers < free ? options.workers : free;
}

/// Throws `invalid_argument` unless 1 <= value < 2^31.
void require_size(std::string_view operator_name, int rank, std::string_view what,
                  std::int64_t value);

/// As `require_size`, for all sizes of a GEMM.
void require_sizes(std::string_view operator_name, int rank, std::int64_t m, std::int64_t n,
                   std::int64_t k);

/// Throws `invalid_argument` unless 0 <= phases <= 2, for an operator that has one phase or two.
void require_phases(std::string_view operator_name, int rank, int phases);

/// The text that ranks compare: a problem, and the options that change bits of the result.
[[nodiscard]] std::string asked_for(const std::string& problem, const operator_options& options);

/// The options of the host's engine.
[[nodiscard]] host::engine_options host_options(std::string_view operator_name, dtype type,
                                                dtype partials, const operator_options& options);

/// For bulk_library on GPUs, whose libraries choose kernels by the whole shape: throws
/// `unsupported` if rows are to have the same bits in every batch.
void refuse_invariant(std::string_view operator_name, int rank, const operator_options& options);

/// Compares the request and its plan with those of the other ranks; collective.
void agree_on_plan(world& w, std::string_view operator_name, const std::string& asked,
                   const protocol_plan& plan);

}  // namespace untax
