#pragma once

#include <untax/ops/options.hpp>

#include "ops/all_gather_gemm/device_reads.hpp"
#include "ops/common/device_schedule.hpp"

namespace untax {

/// What the kernels of a planned gather do at one rank, lane by lane: senders walk these lists,
/// CTAs read and wait as these numbers say, and the last CTA that has read speaks for all. All of
/// it has to outlive the result.
[[nodiscard]] schedule::lane_program lanes_of(const all_gather_gemm_problem& problem,
                                              const gather_plan& plan,
                                              const all_gather_gemm_protocol& how,
                                              const gather_lists& lists,
                                              const gather_reader& reader);

/// A planned gather of one rank with all that is made of it. Where packets are sent, chunks stand
/// for those of a warp.
struct gather_model {
  gather_model(const all_gather_gemm_problem& asked, const gather_plan& planned);

  all_gather_gemm_problem problem;
  gather_plan plan;
  all_gather_gemm_protocol how;
  gather_lists lists;
  gather_numbers numbers;
};
/// Proves the schedule of all ranks, and adds what it finds.
void prove(const std::vector<gather_model>& ranks, device_findings& found);

/// Plans as ranks with such GPUs do; validates what each would do against its lists, and proves the
/// schedule of all of them.
[[nodiscard]] device_findings check_on_gpus(const all_gather_gemm_problem& problem, int ranks,
                                            const operator_options& options, int multiprocessors);

}  // namespace untax
