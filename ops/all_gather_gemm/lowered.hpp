#pragma once

#include <string>

#include "engines/gpu/comm/lower.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"

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

/// Whose steps the lists of senders are.
[[nodiscard]] comm::lowered_workers sender_workers(const gather_plan& plan,
                                                   const all_gather_gemm_protocol& how);

/// The plan of the same gather where a chunk is so many columns of a row, and so many senders
/// share them: where packets go, which each signal for themselves.
[[nodiscard]] gather_plan in_packets(const gather_plan& plan, int columns, int senders);
/// Threads that send packets.
[[nodiscard]] int packet_threads_of(const gather_plan& plan);

}  // namespace untax
