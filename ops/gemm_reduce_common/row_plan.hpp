#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/symmetric/symmetric.hpp>

#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/run_schedule.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"

namespace untax {

/// A plan of a sum on a GPU as a scatter of rows. Blocks that multiply store parts of tiles, 16-bit
/// partial results, into slabs in the memory of the owners of their rows. When the parts of all
/// ranks have landed, the owner's blocks add them: each adds the own rows of its tiles. If own rows
/// are not whole tiles that are multiplied last, another kernel adds afterwards.
///
/// Ranks meet as in a gemm_all_scatter whose blocks store to peers. `meetings` is its protocol: its
/// first output signals that parts have landed, its second that sums have.
struct row_sums_plan {
  gpu::gemm_plan gemm;     ///< for the rows of the next runs
  gpu::row_capacity rows;  ///< how many rows runs may have
  gpu::owned_rows owned;
  gpu::row_rotation rotation;  ///< own rows are multiplied last
  int rank = 0;
  int world = 1;
  bool everywhere = false;   ///< every rank adds all rows
  bool passes_on = false;    ///< owners store sums in the results of all ranks
  bool adds_behind = false;  ///< another kernel adds, of `adding` blocks
  int adding = 1;
  std::int64_t slab_rows = 0;  ///< for runs with any number of rows

  static constexpr int parts_landed = 0;
  static constexpr int sums_landed = 1;

  /// As in `sums_plan`.
  void set_rows(std::int64_t of_run);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::vector<std::string> agreed() const;

  [[nodiscard]] gemm_all_scatter_protocol meetings() const;
  /// The slab for this rank's parts at the owner `hop` hops away: rows from that owner's
  /// `owned.slab_begin` on. No rows if it owns none.
  [[nodiscard]] gpu::matrix_at slab_at(const symmetric<std::byte>& inbox, int hop,
                                       std::int64_t n) const;
  [[nodiscard]] std::int64_t slab_bytes(std::int64_t n) const { return slab_rows * n * 2; }
};

/// As `sums_plans`, for the pattern fused_warp_specialized. Throws `unsupported` for fp32 partials,
/// too: the epilogue stores elements of 16 bits.
[[nodiscard]] std::vector<row_sums_plan> row_sums_plans(const device_sum& sum, int world, int rank,
                                                        const operator_options& options,
                                                        const gpu::gpu_model& gpu);

}  // namespace untax
