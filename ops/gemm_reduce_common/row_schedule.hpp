#pragma once

#include <string>
#include <vector>

#include "ops/gemm_reduce_common/row_plan.hpp"
#include "ops/plan_check/gemm_lanes.hpp"

namespace untax {

/// A sum of one rank that is planned as rows: see `plan_check::prove`.
class row_sums_model {
 public:
  /// Of a run of `what.m` rows.
  row_sums_model(const device_sum& what, const row_sums_plan& planned);

  /// What of the parts of tiles does not end up once at each owner of their rows, within its slab.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// What its kernels do. Outlives neither the model nor its plan.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] static int sets() { return gemm_all_scatter_protocol::sets().sets; }

  device_sum sum;
  row_sums_plan plan;
  std::vector<gpu::matrix_at> slabs;  ///< by hop, as TMA is given them

 private:
  [[nodiscard]] std::int64_t depth() const;
  [[nodiscard]] extent tile() const { return plan_check::tile_extent(plan.gemm.config); }
  [[nodiscard]] plan_check::gemm_lanes gemm() const;
  void store(const range& rows, const range& cols, std::uint64_t epoch,
             const program::sink& emit) const;
  void send_zeros(std::uint64_t epoch, const program::sink& emit) const;
  void add(int me, const program::sink& emit) const;

  gemm_all_scatter_protocol how_;
  plan_check::operand_space memory_;
};

}  // namespace untax
