#pragma once

#include <string>
#include <vector>

#include "engines/gpu/comm/sent_tiles.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "ops/common/device_schedule.hpp"
#include "ops/gemm_all_scatter/maps.hpp"

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

/// What kernels of a scatter go by in place of its lists.
struct scatter_numbers {
  sent_tiles sent;  ///< of senders of flagged tiles
  scatter_maps maps;
  std::vector<sent_row_split> copies;  ///< of DMA engines: by row split, and in it by hop from 1 on

  /// As the kernels of a plan are given them, for operands at addresses at which nothing is.
  [[nodiscard]] static scatter_numbers of(const gemm_all_scatter_problem& problem,
                                          const scatter_plan& plan,
                                          const gemm_all_scatter_protocol& how);
};

/// Translation validation: all that differs between what kernels do by these numbers and maps, and
/// what the lists and the program say. Nothing if they are the same.
[[nodiscard]] std::vector<std::string> faults_of(const gemm_all_scatter_problem& problem,
                                                 const scatter_plan& plan,
                                                 const gemm_all_scatter_protocol& how,
                                                 const scatter_lists& lists,
                                                 const scatter_numbers& numbers);
[[nodiscard]] std::vector<std::string> faults_of(const gemm_all_scatter_problem& problem,
                                                 const scatter_plan& plan);
/// Throws `internal` if there is any.
void require_faultless(const gemm_all_scatter_problem& problem, const scatter_plan& plan);

/// A planned scatter of one rank with all that is made of it.
struct scatter_model {
  scatter_model(const gemm_all_scatter_problem& asked, const scatter_plan& planned);

  gemm_all_scatter_problem problem;
  scatter_plan plan;
  gemm_all_scatter_protocol how;
  scatter_lists lists;
  scatter_numbers numbers;
};
/// Proves the schedule of all ranks, and adds what it finds.
void prove(const std::vector<scatter_model>& ranks, device_findings& found);

/// Plans as ranks with such GPUs do; validates what each would do against its lists, and proves the
/// schedule of all of them.
[[nodiscard]] device_findings check_on_gpus(const gemm_all_scatter_problem& problem, int ranks,
                                            const operator_options& options, int multiprocessors);

}  // namespace untax
