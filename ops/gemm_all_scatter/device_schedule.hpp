#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>

#include "engines/gpu/copy/moved_operands.hpp"
#include "ops/gemm_all_scatter/maps.hpp"
#include "ops/plan_check/check.hpp"
#include "ops/plan_check/gemm_lanes.hpp"

namespace untax::plan_check {

/// A planned gemm_all_scatter of one rank, with the arguments of its kernels: see `gather_model`.
class scatter_model {
 public:
  scatter_model(const gemm_all_scatter_problem& asked, const scatter_plan& planned);

  /// The program of senders, without parts beyond the rows of the run.
  [[nodiscard]] comm::sender_program says() const;
  [[nodiscard]] comm::sender_program does() const;
  [[nodiscard]] std::vector<std::string> faults() const;
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] static int sets() { return 1; }

  gemm_all_scatter_problem problem;
  scatter_plan plan;
  gemm_all_scatter_protocol how;
  comm::transfer_lists lists;   ///< the lists of senders of flagged tiles
  gpu::tma_tile_size tma_tile;  ///< in which flagged tiles are sent
  scatter_maps maps;
  gpu::moved_operands moved;  ///< for DMA engines
  sender_change change;

 private:
  void send_tiles(int sender, std::uint64_t epoch, const program::sink& emit) const;
  [[nodiscard]] std::vector<int> add_gemm(schedule::lane_program& lanes, int split,
                                          const std::vector<int>& behind) const;
  void add_copies(schedule::lane_program& lanes) const;

  range own_;  // columns of C
  operand_space memory_;
};

/// Makes the plans of all ranks for GPUs of `multiprocessors`, checks each, and proves their
/// schedule.
[[nodiscard]] device_findings check_scatter(const gemm_all_scatter_problem& problem, int ranks,
                                            const operator_options& options, int multiprocessors);

}  // namespace untax::plan_check
