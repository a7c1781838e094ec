#pragma once

#include <string>

#include "engines/gpu/comm/lower.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// The program of a planned scatter as lists. What is not there has no senders.
struct scatter_lists {
  comm::transfer_lists senders;  ///< with tile flags or whole shards: who moves; of DMA, by stream
  comm::transfer_lists open;     ///< who opens C, where senders do not
  comm::transfer_lists close;    ///< who closes, where senders do not
};
[[nodiscard]] scatter_lists lower_scatter(const scatter_plan& plan,
                                          const gemm_all_scatter_protocol& how);

/// Where these lists and the program part; empty if they are the same.
[[nodiscard]] std::string difference(const scatter_lists& lists, const scatter_plan& plan,
                                     const gemm_all_scatter_protocol& how);

/// Whose steps the lists of senders are.
[[nodiscard]] comm::lowered_workers sender_workers(const scatter_plan& plan,
                                                   const gemm_all_scatter_protocol& how);

}  // namespace untax
