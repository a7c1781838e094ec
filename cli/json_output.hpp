#pragma once

#include <string>
#include <vector>

#include "bench/suites/attention.hpp"
#include "bench/suites/collectives.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/host.hpp"
#include "bench/suites/norm.hpp"
#include "bench/suites/operators.hpp"
#include "bench/suites/overlap.hpp"
#include "bench/suites/rma.hpp"
#include "bench/suites/shared.hpp"
#include "bench/suites/tune.hpp"
#include "check_gpu.hpp"
#include "check_report.hpp"
#include "run_request.hpp"

// The documents that the verbs write with --json. Times are in seconds; a relative error that is
// NaN is null. Every document names the machine, version and commit of its origin.

namespace untax::cli {

[[nodiscard]] std::string to_json(const run_report& report);
[[nodiscard]] std::string to_json(const check_report& report);
[[nodiscard]] std::string to_json(const gpu_check_report& report);
[[nodiscard]] std::string to_json(const std::vector<bench::comparison>& comparisons, int repeats);
[[nodiscard]] std::string to_json(const std::vector<bench::operator_figures>& suites, int ranks,
                                  int repeats);
[[nodiscard]] std::string to_json(const bench::rma_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::collective_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::gemm_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::overlap_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::norm_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::shared_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::attention_report& report, int repeats);
[[nodiscard]] std::string to_json(const bench::tune_check& check, int repeats);

}  // namespace untax::cli
