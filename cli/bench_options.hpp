#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench_reports.hpp"
#include "spmv.hpp"

namespace CLI {
class App;
}

namespace untax::cli {

/// The options of `untax bench`, as written on the command line. Each suite reads those that it
/// has.
struct bench_options {
  int repeats = 20;
  std::string json;
  std::string trace;
  std::vector<int> rank_counts;
  std::vector<std::int64_t> sizes;
  int problems = 0;  ///< number of random problems; 0: the problems of the grid
  std::uint32_t seed = 1;
  double seconds = 0;         ///< no problem is begun after this time; 0: no limit
  std::string operator_name;  ///< empty: all
  std::vector<std::string> collectives;
  bool sweep = false;
  bool orders = false;
  bool sides = false;
  gemm_bench_request gemm;
  overlap_request overlap;
  attention_bench_request attention;
  tune_request tune;
  spmv_bench_request spmv;
  norm_bench_request norm;

  /// 0 stands for all GPUs.
  [[nodiscard]] int ranks() const { return rank_counts.empty() ? 0 : rank_counts.front(); }
};

/// The options that all suites take: --repeat and --json.
void add_common_options(CLI::App& suite, bench_options& options);
/// --ranks of suites that measure one number of GPUs, at least `least`.
void add_ranks_option(CLI::App& suite, bench_options& options, int least = 2);
/// --ranks of suites that measure several numbers of ranks.
void add_rank_counts_option(CLI::App& suite, bench_options& options, const std::string& meaning);
/// --size, several times.
void add_sizes_option(CLI::App& suite, bench_options& options, const std::string& meaning);
/// --problems and --seed.
void add_problem_options(CLI::App& suite, bench_options& options, const std::string& meaning);
/// --seconds.
void add_seconds_option(CLI::App& suite, bench_options& options, const std::string& meaning);

/// Adds the options of the suite flash-decode, apart from --problems.
void add_attention_options(CLI::App& verb, attention_bench_request& request);

/// Adds the options of the suite gemm.
void add_gemm_options(CLI::App& verb, gemm_bench_request& request);

/// Adds the options of the suite all-reduce-norm.
void add_norm_options(CLI::App& verb, norm_bench_request& request);

/// Adds the options that all suites of GEMM operators have.
void add_overlap_options(CLI::App& verb, overlap_request& request);
/// --gather.
void add_gather_option(CLI::App& verb, overlap_request& request);
/// --partials.
void add_partials_option(CLI::App& verb, overlap_request& request);

/// Adds the options of the suite tune, apart from --operator and --seconds.
void add_tune_options(CLI::App& verb, tune_request& request);

/// Adds the options of the suite spmv.
void add_spmv_bench_options(CLI::App& verb, spmv_bench_request& request);

}  // namespace untax::cli
