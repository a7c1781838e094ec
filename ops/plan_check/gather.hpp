#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <untax/ops/options.hpp>

#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/gemm/sources/segments.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/plan_check/check.hpp"
#include "ops/plan_check/operand_space.hpp"
#include "ops/plan_check/rank_lanes.hpp"

namespace untax::plan_check {

/// A planned all_gather_gemm of one rank with all that its kernels are given: lists of transfers,
/// numbers, tensor maps. Where packets are sent, chunks stand for those of a warp's turn.
class gather_model {
 public:
  gather_model(const all_gather_gemm_problem& asked, const gather_plan& made);

  [[nodiscard]] comm::sender_program says() const { return comm::senders_of(how); }
  [[nodiscard]] comm::sender_program does() const;
  /// What senders do otherwise than their program says; and what does not fit its memory.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// Senders, and CTAs, go by what they are given, and the last CTA that has read speaks for all.
  [[nodiscard]] schedule::lane_program lanes() const;
  [[nodiscard]] schedule::operand_extents operands() const;
  [[nodiscard]] int sets() const { return how.sets().sets; }

  all_gather_gemm_problem problem;
  gather_plan plan;
  all_gather_gemm_protocol how;
  comm::transfer_lists lists;  ///< what senders walk, where they do
  sent_shard shard;
  receiving_grid receiving;
  arrival_grid arrivals;
  gather_segments segments;
  gpu::moved_operands moved;
  gather_maps maps;
  sender_change change;

 private:
  [[nodiscard]] operand_space space() const;
  void walk_list(const operand_space& memory, int sender, std::uint64_t epoch,
                 const program::sink& emit) const;
  void add_memory_faults(std::vector<std::string>& faults) const;

  gather_plan planned_;  // where `plan` stands for packets
};

/// What CTAs of a gather read and wait for, by the numbers and tensor maps that their kernel is
/// given.
class gather_reads {
 public:
  gather_reads(const gather_model& model, operand_space memory)
      : m_(model), memory_(std::move(memory)) {}

  /// Calls `visit` for what a CTA reads of a tile, part by part.
  void each(const gpu::cta_read& of, std::uint64_t epoch,
            const std::function<void(const factors&)>& visit);

 private:
  /// What begins with a k-block, for all columns of C, and the k-block behind it.
  using part = std::pair<factors, int>;
  [[nodiscard]] part part_of(const gpu::cta_read& of, int k_block, int set) const;
  [[nodiscard]] std::vector<factors::ready> waits_of(const gpu::cta_read& of, std::int64_t depth,
                                                     int k_block, int end, int set) const;
  [[nodiscard]] int producer_of(int counter, int set) const;

  const gather_model& m_;
  operand_space memory_;
  /// Most tiles read what others do, and multiply it with other columns.
  std::map<std::tuple<int, int, int, int, int>, part> known_;
};

/// The plan of the same gather where a chunk is so many columns of a row, and so many senders
/// share them: where packets go, which each signal for themselves.
[[nodiscard]] gather_plan in_packets(const gather_plan& plan, int columns);
/// What is wrong with a gather whose senders send packets: threads that send none of their own,
/// packets that are left out, sent twice, share a place or are not where they are read. Empty if
/// nothing is.
[[nodiscard]] std::string fault_of_packets(const all_gather_gemm_problem& problem,
                                           const gather_plan& plan);

/// Plans as ranks with such GPUs do, looks at each, and proves the schedule of all.
[[nodiscard]] device_findings check_gather(const all_gather_gemm_problem& problem, int ranks,
                                           const operator_options& options, int multiprocessors);

}  // namespace untax::plan_check
