#pragma once

#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/sources/segments.hpp"
#include "ops/all_gather_gemm/maps.hpp"

namespace untax {

/// The program of a planned gather as lists: what each sender does, and what the last of the CTAs
/// that multiply does when all of them have read.
struct gather_lists {
  comm::transfer_lists senders;
  comm::transfer_lists last;
};
[[nodiscard]] gather_lists lower_gather(const gather_plan& plan,
                                        const all_gather_gemm_protocol& how);

/// Where these lists and the program part; empty if they are the same.
[[nodiscard]] std::string difference(const gather_lists& lists, const gather_plan& plan,
                                     const all_gather_gemm_protocol& how);

/// The plan of the same gather where a chunk is so many columns of a row, and so many senders
/// share them: where packets go, which each signal for themselves.
[[nodiscard]] gather_plan in_packets(const gather_plan& plan, int columns, int senders);
/// Threads, and warps, that send packets.
[[nodiscard]] int packet_threads_of(const gather_plan& plan);

/// What kernels of a gather go by in place of its lists: plain numbers, and where things lie.
struct gather_numbers {
  sending_grid sending;
  receiving_grid receiving;
  arrival_grid arrivals;
  gather_segments segments;
  packet_panel panel;
  gpu::moved_operands moved;
  gather_maps maps;

  /// As the kernels of a plan are given them, for operands at addresses at which nothing is.
  [[nodiscard]] static gather_numbers of(const all_gather_gemm_problem& problem,
                                         const gather_plan& plan,
                                         const all_gather_gemm_protocol& how);
  /// What lies at such an address; `none` if nothing that the rank reaches.
  [[nodiscard]] static place at(const void* data, const all_gather_gemm_problem& problem,
                                const all_gather_gemm_protocol& how);
};

}  // namespace untax
