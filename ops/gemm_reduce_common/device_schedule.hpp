#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>

#include "ops/common/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "ops/plan_check/gemm_lanes.hpp"

namespace untax {

/// The fragments of a warp of a tile that belong to one owner. They are sent, and added, at once.
struct sum_strip {
  gpu::sum_fragment first;
  range rows;
  range cols;
};

/// A planned sum of one rank: see `plan_check::prove`.
class sums_model {
 public:
  /// For a run of `what.m` rows.
  sums_model(const device_sum& what, const sums_plan& planned) : sum(what), plan(planned) {
    plan.set_rows(what.m);
  }

  /// Translation validation: all differences between the fragments that blocks of the rank send,
  /// those that owners take, and the elements of C. Empty if there are none.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The steps of its kernels. The model has to outlive it.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] static int sets() { return gpu::sum_fragments::sets().sets; }

  device_sum sum;
  sums_plan plan;
  /// Whether a rank waits until an owner has taken what it sent before. Only a rank that adds
  /// nothing needs that, because it receives nothing from owners.
  bool reserves = true;

 private:
  [[nodiscard]] const gpu::sum_fragments& how() const { return plan.how; }
  [[nodiscard]] std::int64_t depth() const;
  [[nodiscard]] std::int64_t slab_rows() const;
  [[nodiscard]] int strips() const;
  [[nodiscard]] place in_inbox(int source, int owner, const sum_strip& s,
                               std::uint64_t epoch) const;
  [[nodiscard]] room slot(int source, int owner, const sum_strip& s, std::uint64_t epoch) const;
  [[nodiscard]] plan_check::gemm_lanes gemm() const;
  void send(const range& rows, const range& cols, std::uint64_t epoch,
            const program::sink& emit) const;
  void send_zeros(int me, int all, std::uint64_t epoch, const program::sink& emit) const;
  void add_strip(const sum_strip& s, std::uint64_t epoch, const program::sink& emit) const;
  void add_share(int me, int adders, std::uint64_t epoch, const program::sink& emit) const;
  void add_own(int block, std::uint64_t epoch, const program::sink& emit) const;
  void finish(std::uint64_t epoch, const program::sink& emit) const;
};

/// Makes the plans of all ranks with such GPUs, validates what each sends and takes, and proves
/// their schedule.
[[nodiscard]] device_findings check_on_gpus(const device_sum& sum, int ranks,
                                            const operator_options& options, int multiprocessors);

}  // namespace untax
