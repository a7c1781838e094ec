#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <untax/core/process_owned.hpp>
#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "ops/choice/make_chosen.hpp"
#include "ops/common/device_runner.hpp"
#include "ops/common/operator_entry.hpp"

namespace untax {

/// The first half of making a GEMM operator in a world of GPUs: refuses problems that no kernel
/// multiplies, compares the options and the problem, given as `text`, with those of the other
/// ranks, and makes the rank's GPU the current device. Collective. Throws the errors of
/// `require_device_problem`, and `disagreement`.
[[nodiscard]] protocol_plan plan_on_device(world& w, const operator_entry& entry,
                                           const gemm_problem& problem, const std::string& text,
                                           const operator_options& options);

/// A GEMM operator in a world of GPUs, as its class keeps it.
struct made_on_device {
  process_owned<device_runner> runner;
  pattern how = pattern::bulk_library;  ///< never `automatic`
  std::string explanation;
};
/// The functions that make an operator: in bulk_library, for all numbers of rows; or for `rows`
/// rows in a pattern of own kernels. `usual`: see `usual_patterns`; it may be empty.
struct operator_makers {
  std::function<std::unique_ptr<device_operator>()> by_library;
  std::function<std::unique_ptr<device_operator>(std::int64_t rows, const operator_options&)>
      by_kernels;
  usual_patterns usual = {};
};
/// The second half: makes the operator in the pattern that was asked for, or in the one that
/// `automatic` stands for. Returns when all ranks have theirs, so that none runs while another one
/// allocates or loads kernels. Collective. Timings write C to `result` or, if that is null, to
/// memory of their own. With `varying_rows` there is an operator for each end of a table, and one
/// for all of them in bulk_library. Throws the errors of `make`, and `unsupported` for options that
/// bulk_library does not have.
[[nodiscard]] made_on_device make_on_device(world& w, const operator_entry& entry,
                                            const gemm_problem& problem,
                                            const operator_options& options,
                                            const operator_makers& make, void* result);

}  // namespace untax
