#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/common/device_schedule.hpp"
#include "ops/common/operator_entry.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// The findings about the plans of an operator for GPUs with a given number of multiprocessors.
using gpu_plan_check = std::function<device_findings(const gemm_problem&, int ranks,
                                                     const operator_options&, int multiprocessors)>;

/// The request of `untax check OPERATOR --gpu`.
struct gpu_check_request {
  operator_entry entry;
  gpu_plan_check check;  ///< empty: the operator has no kernels of its own
  gemm_problem problem;
  int ranks = 1;
  std::string gpu;                      ///< name of the GPU
  std::optional<std::string> how;       ///< one pattern; if absent, all patterns with kernels
  std::optional<std::string> gather;    ///< one axis
  std::optional<std::string> move;      ///< one direction
  std::optional<std::string> partials;  ///< one type of partial results, for sums over ranks
};

/// One variant of the operator, and the findings about its plans.
struct gpu_check_row {
  std::string way;  ///< "fused_specialized, gather k, pull"
  device_findings found;
};
struct gpu_check_report {
  gpu_check_request request;
  int multiprocessors = 0;
  std::vector<gpu_check_row> rows;

  [[nodiscard]] bool right() const;
};

/// Names of the GPUs that can be planned for.
[[nodiscard]] const std::vector<std::string>& gpu_names();

/// Called before each plan with its name, the number of finished plans, and the number of all
/// plans.
using gpu_check_progress = std::function<void(const std::string&, std::size_t, std::size_t)>;

/// Plans, validates and proves, on this machine, without a GPU. Throws `invalid_argument` for a
/// problem that GPUs do not support, and for one that is too large to validate in about a minute.
[[nodiscard]] gpu_check_report check_gpu_plans(const gpu_check_request& request,
                                               const gpu_check_progress& progress = {});

[[nodiscard]] std::string table_of(const gpu_check_report& report, int columns, text_style how);

}  // namespace untax::cli
