#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace untax::cli {

struct bench_options;

/// The request of `untax run spmv`.
struct spmv_request {
  std::string matrix;
  std::string kernel = "all";
  std::string selector;  ///< a file of `untax select train`; empty: none
  int iterations = 100;
  int threads = 0;  ///< 0: one for each processor
  std::string type = "fp64";
  std::string backend = "auto";  ///< auto is host
  int repeats = 20;
  std::uint64_t seed = 1;
  bool verify = false;
  std::string json;
};

void add_spmv_options(CLI::App& verb, spmv_request& request);
/// `verb` is `untax run`, and `own` its subcommand. Returns the exit code: 1 if a result was wrong.
/// Throws `invalid_argument` for options of `verb` that have no effect here.
[[nodiscard]] int run_spmv(const CLI::App& verb, const CLI::App& own, const spmv_request& request);

/// The request of `untax bench spmv`.
struct spmv_bench_request {
  std::string folder;     ///< of matrices
  std::string twins;      ///< a table of profiles
  int take = 100;         ///< twins, at most
  bool stencils = false;  ///< the matrices of stencils, too
  std::int64_t most_nnz = 1'000'000;
  std::int64_t band = 0;
  bool mixed_bands = false;  ///< bands of different widths, by turns
  int threads = 0;
  std::string backend = "host";
  std::string type = "fp64";
  bool verify = false;
  bool resume = false;
  std::string schema;  ///< a file to write; empty: none
};

/// The number of threads; if `asked` is 0, one for each processor.
[[nodiscard]] int threads_of(int asked);

/// Returns the exit code: 1 if a result was wrong.
[[nodiscard]] int run_spmv_bench(const bench_options& asked);

}  // namespace untax::cli
