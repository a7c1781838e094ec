#pragma once

#include <functional>
#include <string>
#include <vector>

#include <untax/ops/options.hpp>

#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/sources/segments.hpp"
#include "engines/gpu/copy/moved_operands.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/plan_check/check.hpp"
#include "ops/plan_check/gemm_lanes.hpp"

namespace untax::plan_check {

/// A planned all_gather_gemm of one rank with all arguments of its kernels: transfer lists,
/// numbers, tensor maps. If packets are sent, a chunk stands for the packets that a warp sends in a
/// turn.
class gather_model {
 public:
  gather_model(const all_gather_gemm_problem& asked, const gather_plan& planned);

  [[nodiscard]] comm::sender_program says() const { return comm::senders_of(how); }
  [[nodiscard]] comm::sender_program does() const;
  /// The differences between senders and their program, and accesses outside of the senders'
  /// memory.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// The lanes of senders and CTAs, by the lists and numbers that their kernels get. The last CTA
  /// to have read signals for all.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] int sets() const { return how.sets().sets; }

  all_gather_gemm_problem problem;
  gather_plan plan;
  all_gather_gemm_protocol how;
  comm::transfer_lists lists;  ///< the transfer lists of senders, if there are any
  sent_shard shard;
  receiving_grid receiving;
  arrival_grid arrivals;
  gather_segments segments;
  gpu::moved_operands moved;
  gather_maps maps;
  sender_change change;

 private:
  /// A sender that is a warp of a CTA of the GEMM.
  struct sending_warp {
    int cta = 0;
    int warp = 0;
    int sender = 0;
  };
  [[nodiscard]] std::vector<sending_warp> senders_beside() const;
  /// The plan of the same gather with chunks in place of packets: a chunk is the part of a row that
  /// a warp sends in a turn.
  [[nodiscard]] static gather_plan in_packets(const gather_plan& plan);
  [[nodiscard]] std::string fault_of_packets() const;
  [[nodiscard]] std::vector<std::string> sender_faults() const;
  [[nodiscard]] std::vector<std::string> memory_faults() const;
  void walk_list(int sender, std::uint64_t epoch, const program::sink& emit) const;
  void read(const gpu::cta_read& tile_read, std::uint64_t epoch,
            const std::function<void(const factors&)>& visit) const;
  [[nodiscard]] std::vector<factors::wait> waits_of(const gpu::cta_read& tile_read, int k_block,
                                                    int end, int set) const;

  gather_plan planned_;  // the plan as made; if it has packets, `plan` has chunks in their place
  operand_space memory_;
};

/// Makes the plans of all ranks for GPUs of `multiprocessors`, checks each, and proves their
/// schedule.
[[nodiscard]] device_findings check_gather(const all_gather_gemm_problem& problem, int ranks,
                                           const operator_options& options, int multiprocessors);

/// As `check_gather`, for a bulk_synchronous that gathers first (`may_gather_first`): proves the
/// all_gather of all ranks. The product behind it waits for nothing.
[[nodiscard]] device_findings check_row_gather(const all_gather_gemm_problem& problem, int ranks);

}  // namespace untax::plan_check
