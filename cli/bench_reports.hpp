#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/suites/attention.hpp"
#include "bench/suites/collectives.hpp"
#include "bench/suites/flash_attention.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/host.hpp"
#include "bench/suites/locality.hpp"
#include "bench/suites/norm.hpp"
#include "bench/suites/overlap.hpp"
#include "bench/suites/rma.hpp"
#include "bench/suites/shared.hpp"
#include "bench/suites/sides.hpp"
#include "bench/suites/tune.hpp"
#include "output.hpp"
#include "terminal.hpp"

// The suites of `untax bench`: their options, their tables, and the functions that measure.

namespace untax::cli {

struct bench_options;

/// The options of the suite flash-decode, as written on the command line.
struct attention_bench_request {
  std::vector<std::string> heads;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> keys;
  std::int64_t page_size = 0;
  bool narrow = false;
};

/// The names of the sizes of heads that the suite flash-decode knows.
[[nodiscard]] std::vector<std::string> known_heads();

/// The table of the suite flash-decode.
[[nodiscard]] std::string text_of(const bench::attention_report& report, int columns,
                                  text_style how);

/// Measures flash_decode, prints a table, writes JSON. Returns the exit code: 1 if a bar is missed.
[[nodiscard]] int run_attention(const bench_options& options);

/// The tables of the collectives suite, one for each collective.
[[nodiscard]] std::string text_of(const bench::collective_report& report, int columns,
                                  text_style how);

/// Whether all bars of collectives are met: absolute ones for small sizes, and the ratios to NCCL.
[[nodiscard]] bool all_met(const bench::collective_report& report);

/// The variants that `--sweep` measures in turn on vectors of at most `bytes` bytes.
[[nodiscard]] std::vector<bench::collective_variant> swept_variants(std::int64_t bytes);

/// The names of the collectives that can be measured.
[[nodiscard]] std::vector<std::string> known_collectives();

/// Measures collectives. Returns the exit code: 1 if a bar is missed.
[[nodiscard]] int run_collectives(const bench_options& options);

/// The table of `untax bench flash-attention`.
[[nodiscard]] std::string text_of(const bench::flash_report& report, int columns, text_style how);

/// Measures flash_attention and prints it. Returns the exit status.
[[nodiscard]] int run_flash_attention(const bench_options& options);

/// The options that only `untax bench gemm` has.
struct gemm_bench_request {
  std::int64_t least_rows = 1;
  std::int64_t most_rows = 16384;
  bool every_plan = false;
  bool rasters = false;
  bool invariant = false;
};

/// The tables of the gemm suite, one for few rows and one for many.
[[nodiscard]] std::string text_of(const bench::gemm_report& report, int columns, text_style how);

/// Measures the gemm suite and prints it. Returns the exit status.
[[nodiscard]] int run_gemm_bench(const bench_options& options);

/// The table of the host suite: two rows for each comparison, untax and its reference.
[[nodiscard]] std::string text_of(const std::vector<bench::comparison>& comparisons, int columns,
                                  text_style how);

/// Measures the host backend beside the bare operations. Returns the exit code: 1 if a bar is
/// missed.
[[nodiscard]] int run_host(const bench_options& options);

/// Measures every operator and pattern with ranks as threads. Returns the exit code.
[[nodiscard]] int run_operators(const bench_options& options);

/// The table of `untax bench locality`.
[[nodiscard]] std::string text_of(const bench::replay_report& report, int columns, text_style how);
/// The table of `untax bench locality --sides`.
[[nodiscard]] std::string text_of(const bench::side_report& report, int columns, text_style how);

/// Replays orders of `untax locality` and prints them. Returns the exit status.
[[nodiscard]] int run_locality_bench(const bench_options& options);

/// The options of the suite all-reduce-norm, as written on the command line.
struct norm_bench_request {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> hidden;
};

/// The table of the suite all-reduce-norm, with the bars below.
[[nodiscard]] std::string text_of(const bench::norm_report& report, int columns, text_style how);

/// Measures all_reduce_norm, prints a table, writes JSON. Returns the exit code: 1 if a result is
/// wrong or a bar is missed.
[[nodiscard]] int run_norm(const bench_options& options);

/// The options of the suites of GEMM operators, as written on the command line.
struct overlap_request {
  std::string shapes = "prefill";
  std::vector<std::int64_t> m;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string gather = "rows";
  std::optional<std::string> partials;  ///< empty: as the problem
  std::vector<std::string> patterns;
};

/// The element type of partial results in the request, if there is one. Throws `invalid_argument`.
[[nodiscard]] std::optional<dtype> partials_of(const overlap_request& request);

/// The tables of the suites of GEMM operators, with the bars below.
[[nodiscard]] std::string text_of(const bench::overlap_report& report, int columns, text_style how);

/// Measures `operator_name`, prints a table, writes JSON. Returns the exit code: 1 if a result is
/// wrong or a bar is missed.
[[nodiscard]] int run_overlap(const std::string& operator_name, const bench_options& options);

/// The tables of the rma suite.
[[nodiscard]] std::string text_of(const bench::rma_report& report, int columns, text_style how);

/// The figures whose bar no method meets.
[[nodiscard]] std::vector<std::string> missed_bars(const bench::rma_report& report);

/// Measures the verbs of kernels. Returns the exit code: 1 if a bar is missed.
[[nodiscard]] int run_rma(const bench_options& options);

/// The tables of the suite shared, one for each operator and number of ranks.
[[nodiscard]] std::string text_of(const bench::shared_report& report, int columns, text_style how);

/// Measures operators between ranks that share a GPU, prints a table, writes JSON. Returns the exit
/// code: 1 if a result is wrong.
[[nodiscard]] int run_shared(const bench_options& asked);

/// The options of the suite tune, as written on the command line.
struct tune_request {
  bool quick = false;
  bool check = false;
  int held_out = 20;
};

/// The tables of the suite tune, one for each operator and axis that it gathers.
[[nodiscard]] std::string text_of(const tuning_table& measured, int columns, text_style how);
[[nodiscard]] std::string text_of(const bench::tune_check& check, int columns, text_style how);

/// Measures a table for each number of ranks, or for all GPUs if none was given, and writes it.
/// With --check, it measures held-out problems and reports the quality of the choices. Returns the
/// exit code: 1 if a result is wrong, or if too few choices are good.
[[nodiscard]] int run_tune(const bench_options& asked);

}  // namespace untax::cli
