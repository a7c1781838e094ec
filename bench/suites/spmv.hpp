#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/select/schema.hpp>
#include <untax/sparse/profile.hpp>
#include <untax/sparse/spmv.hpp>

namespace untax::bench {

/// One kernel on one matrix.
struct spmv_figure {
  sparse::spmv_kernel kernel = sparse::spmv_kernel::csr_thread;
  std::string refused;          ///< why it was not run; empty if it was
  double setup_seconds = 0;     ///< of the conversion
  double seconds = 0;           ///< of one product, the median
  std::optional<double> error;  ///< relative to the sum of absolute values, if results are checked
};

/// All kernels on one matrix.
struct spmv_figures {
  std::string name;
  sparse::row_profile profile;
  double gathering_seconds = 0;  ///< time to compute the profile
  double memory_rate = 0;        ///< bytes a second that the GPU reads; 0: not measured
  std::vector<spmv_figure> kernels;
};

struct spmv_options {
  std::vector<sparse::spmv_kernel> kernels;
  int threads = 1;
  int repeats = 20;
  bool verify = false;
  bool single = false;  ///< floats instead of doubles
  bool on_gpu = false;
  std::uint64_t seed = 1;
};

/// Measures kernels on one matrix, with random x. On a GPU events time graphs of several
/// consecutive products, so data that fit into its caches stay there.
[[nodiscard]] spmv_figures measure_spmv(const std::string& name, const sparse::coordinates& matrix,
                                        const spmv_options& options);
/// As above, on a twin.
[[nodiscard]] spmv_figures measure_spmv(const std::string& name,
                                        const sparse::csr<double, std::int64_t>& matrix,
                                        const spmv_options& options);

/// The fewest bytes that a product moves: the matrix in compressed rows, x and y once.
[[nodiscard]] double bytes_of(const spmv_figures& figures, bool single);

/// The kernels that exist on the host, or on a GPU.
[[nodiscard]] std::vector<sparse::spmv_kernel> spmv_kernels(bool on_gpu);

/// A list of records, one for each matrix, in the form of tables for `untax select`: name, rows,
/// cols, nnz, row_*, gather, and t_ and setup_ of each kernel. A refused kernel has no time. The
/// records of `before`, another such table, come first if it is not empty.
[[nodiscard]] std::string table_of(const std::vector<spmv_figures>& suites,
                                   const std::string& before = {});
/// The names of the records of a table. Throws `invalid_argument` for a text that is no such table.
[[nodiscard]] std::vector<std::string> names_in_table(const std::string& text);
/// The schema of such a table. On a GPU quartiles are not gathered, since they need sorting, and
/// cuSPARSE is among the candidates.
[[nodiscard]] select::schema schema_of_table(const std::string& title, bool on_gpu);

/// The known (rows, cols, nnz) or gathered (row_*) value of this name. Throws `invalid_argument`.
[[nodiscard]] double feature_of(const sparse::row_profile& profile, std::string_view name);

/// Measures the kernels of `options` on the current GPU, to which it copies the matrix and x.
/// Throws `unsupported` if there is none.
template <class Value, class Offset>
void measure_on_gpu(const sparse::csr<Value, Offset>& matrix, std::span<const Value> x,
                    const spmv_options& options, spmv_figures& to);

/// The bytes per second that the GPU reads from its memory. Throws `unsupported` without a GPU.
[[nodiscard]] double gpu_memory_rate();

}  // namespace untax::bench
