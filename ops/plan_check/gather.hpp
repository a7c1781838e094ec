#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>

#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/gemm/sources/segments.hpp"
#include "ops/all_gather_gemm/lowered.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/common/device_schedule.hpp"
#include "ops/plan_check/operand_space.hpp"

namespace untax::plan_check {

/// A planned all_gather_gemm of one rank with all that its kernels are given: its program as lists,
/// numbers in place of these, tensor maps. Where packets are sent, chunks stand for those of a
/// warp's turn.
class gather_model {
 public:
  gather_model(const all_gather_gemm_problem& asked, const gather_plan& made);

  /// Where lists and program part; what senders do otherwise than their lists say, by the numbers
  /// and maps that they are given; and what does not fit its memory.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// Senders walk their lists, CTAs read and wait as their numbers say, and the last CTA that has
  /// read speaks for all.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] int sets() const { return how.sets().sets; }
  [[nodiscard]] std::size_t transfers() const { return lists.entries(); }

  all_gather_gemm_problem problem;
  gather_plan plan;
  all_gather_gemm_protocol how;
  comm::transfer_lists lists;
  sent_shard shard;
  comm::packed_lists sent;  ///< what senders walk, where they do
  receiving_grid receiving;
  arrival_grid arrivals;
  gather_segments segments;
  gpu::moved_operands moved;
  gather_maps maps;

 private:
  [[nodiscard]] operand_space space() const;
  void send(const operand_space& memory, int sender, std::uint64_t epoch,
            const program::sink& emit) const;
  void add_memory_faults(std::vector<std::string>& faults) const;

  gather_plan planned_;  // where `plan` stands for packets
};

/// Plans as ranks with such GPUs do, looks at each, and proves the schedule of all.
[[nodiscard]] device_findings check_gather(const all_gather_gemm_problem& problem, int ranks,
                                           const operator_options& options, int multiprocessors);

}  // namespace untax::plan_check
