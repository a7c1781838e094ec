#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/gemm_reduce_common/row_plan.hpp"
#include "ops/plan_check/gemm_lanes.hpp"

namespace untax {

/// A sum of one rank that is planned as a scatter of rows: see `plan_check::prove`.
class row_sums_model {
 public:
  /// For a run of `what.m` rows.
  row_sums_model(const device_sum& what, const row_sums_plan& planned);

  /// Parts of tiles that do not get once to each owner of their rows, within its slab.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The steps of its kernels. The model has to outlive it.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] static int sets() { return gemm_all_scatter_protocol::sets().sets; }

  device_sum sum;
  row_sums_plan plan;
  std::vector<gpu::matrix_at> slabs;  ///< by hop, as given to TMA
  /// Whether what peers send has always landed when a CTA multiplies its own parts, as where all
  /// ranks are equally quick. Else half of its parts are in time.
  bool in_time = false;

 private:
  [[nodiscard]] std::int64_t depth() const;
  [[nodiscard]] extent tile() const { return plan_check::tile_extent(plan.gemm.config); }
  [[nodiscard]] plan_check::gemm_lanes gemm() const;
  void plan_works();
  [[nodiscard]] std::vector<int> add_zeros(schedule::lane_program& all,
                                           const plan_check::gemm_lanes& gemm) const;

  /// A part of a tile, which one TMA store writes.
  struct part {
    range rows;
    range cols;
  };
  [[nodiscard]] std::vector<part> parts_of(const range& rows, const range& cols) const;
  [[nodiscard]] bool is_sum(const plan_check::cta_work& work, const part& p,
                            std::uint64_t epoch) const;
  void send(const part& p, std::int64_t product_row, std::uint64_t epoch,
            const program::sink& emit) const;
  void acquire_parts(std::uint64_t epoch, const program::sink& emit) const;
  /// (partial of rank 0 + partial of rank 1) + ..., into C, for own rows. This rank's partial is in
  /// the product from `product_row` on, or else in its slab.
  void add(const part& p, std::optional<std::int64_t> product_row, const program::sink& emit) const;
  void add(int me, const program::sink& emit) const;
  void add_rest(int cta, std::uint64_t epoch, const program::sink& emit) const;

  gemm_all_scatter_protocol how_;
  plan_check::operand_space memory_;
  /// The tiles that a CTA finishes, and the number of its last work of which peers get a part.
  struct cta_works {
    struct tile {
      int number = 0;
      range rows;
      range cols;
    };
    std::vector<tile> tiles;
    int count = 0;
    int last_sent = -1;
  };
  std::vector<cta_works> works_;
};

}  // namespace untax
