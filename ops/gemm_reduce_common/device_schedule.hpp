#pragma once

#include <optional>
#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "ops/plan_check/gemm_lanes.hpp"

namespace untax {

/// The matrices of a rank.
[[nodiscard]] inline schedule::operand_extents operands_of(const device_sum& sum, int world,
                                                           int rank) {
  const std::int64_t depth = sharding{sum.k, world, shard_granularity}.of(rank).size;
  const range rows = sharding{sum.m, sum.target == reduce_target::owner ? world : 1}.of(
      sum.target == reduce_target::owner ? rank : 0);
  return {{sum.m, depth}, {sum.n, depth}, {rows.size, sum.n}};
}

/// The fragments of a warp of a tile that belong to one owner. They are sent, and added, at once.
struct sum_strip {
  gpu::sum_fragment first;
  range rows;
  range cols;
};

/// A planned sum of one rank: see `plan_check::prove`.
class sums_model {
 public:
  /// The model of a run of `what.m` rows.
  sums_model(const device_sum& what, const sums_plan& planned) : sum(what), plan(planned) {
    plan.set_rows(what.m);
  }

  /// Translation validation: all differences between the fragments that blocks of the rank send,
  /// those that owners take, and the elements of C. Empty if there are none.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The steps of its kernels. The model has to outlive it.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const {
    return operands_of(sum, how().world(), how().rank());
  }
  [[nodiscard]] static int sets() { return gpu::sum_fragments::sets().sets; }
  [[nodiscard]] gemm_reduce_protocol exchange() const { return plan.exchange(sum); }
  [[nodiscard]] const gpu::sum_fragments& how() const { return plan.how; }

  device_sum sum;
  sums_plan plan;
  /// Whether a rank waits until an owner has taken the words that it sent before. Only a rank that
  /// adds nothing needs that, because it receives nothing from owners.
  bool reserves = true;

 private:
  [[nodiscard]] std::int64_t slab_rows() const;
  [[nodiscard]] int strips() const;
  [[nodiscard]] place in_inbox(int source, int owner, const sum_strip& s,
                               std::uint64_t epoch) const;
  [[nodiscard]] room slot(int source, int owner, const sum_strip& s, std::uint64_t epoch) const;
  [[nodiscard]] plan_check::gemm_lanes gemm() const;
  void send(const range& rows, const range& cols, std::uint64_t epoch,
            const program::sink& emit) const;
  void send_zeros(int me, int count, std::uint64_t epoch, const program::sink& emit) const;
  void add_strip(const sum_strip& s, std::uint64_t epoch, const program::sink& emit) const;
  void add_share(int me, int adders, std::uint64_t epoch, const program::sink& emit) const;
  void add_own(int block, std::uint64_t epoch, const program::sink& emit) const;
  void finish(std::uint64_t epoch, const program::sink& emit) const;
};

/// A sum of one rank that is planned as a scatter of rows: see `plan_check::prove`.
class row_sums_model {
 public:
  /// The model of a run of `what.m` rows.
  row_sums_model(const device_sum& what, const row_sums_plan& planned);

  /// Parts of tiles that do not get exactly once to each owner of their rows, within its slab.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The steps of its kernels. The model has to outlive it.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const {
    return operands_of(sum, plan.world, plan.rank);
  }
  [[nodiscard]] int sets() const { return how_.sets().sets; }
  [[nodiscard]] const gemm_reduce_protocol& exchange() const { return how_; }

  device_sum sum;
  row_sums_plan plan;
  std::vector<gpu::matrix_at> slabs;  ///< by hop, as the tensor maps describe them
  /// Whether parts of peers have always landed when a CTA multiplies its own parts, as between
  /// ranks of equal speed. Otherwise half of the parts have landed.
  bool in_time = false;

 private:
  [[nodiscard]] extent tile() const { return plan_check::tile_extent(plan.gemm.config); }
  [[nodiscard]] plan_check::gemm_lanes gemm() const;
  void plan_works();

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

  gemm_reduce_protocol how_;
  plan_check::operand_space memory_;
  /// The tiles that a CTA finishes, and the number of its last work with a part for peers.
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

/// Makes the plans of all ranks for GPUs of `multiprocessors`, validates the fragments that each
/// sends and takes, and proves their schedule.
[[nodiscard]] device_findings check_on_gpus(const device_sum& sum, int ranks,
                                            const operator_options& options, int multiprocessors);

}  // namespace untax
