#pragma once

#include <functional>
#include <optional>
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
  std::optional<double> error;  ///< over the sum of absolute values, if it was looked at
};

/// All kernels on one matrix.
struct spmv_figures {
  std::string name;
  sparse::row_profile profile;
  double gathering_seconds = 0;  ///< what the profile takes
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

/// Measures kernels in turn on one matrix, with random x. On a GPU events time graphs of several
/// products, which follow each other: what fits into its caches stays there, what is larger does
/// not.
[[nodiscard]] spmv_figures measure_spmv(const std::string& name, const sparse::coordinates& matrix,
                                        const spmv_options& options);
/// The same on a twin.
[[nodiscard]] spmv_figures measure_spmv(const std::string& name,
                                        const sparse::csr<double, std::int64_t>& matrix,
                                        const spmv_options& options);

/// The bytes that a product moves at least: the matrix by compressed rows, x and y once.
[[nodiscard]] double bytes_of(const spmv_figures& figures, bool single);

/// Those that there are on the host, or on a GPU.
[[nodiscard]] std::vector<sparse::spmv_kernel> spmv_kernels(bool on_gpu);

/// A list of records, one a matrix, as `untax select` takes tables: name, rows, cols, nnz, row_*,
/// gather, and t_ and setup_ of each kernel. What was refused has no time. Behind those of
/// `before`, another such table, if it is not empty.
[[nodiscard]] std::string table_of(const std::vector<spmv_figures>& all,
                                   const std::string& before = {});
/// The names of its records. Throws `invalid_argument` for a text that is no such table.
[[nodiscard]] std::vector<std::string> names_in_table(const std::string& text);
/// What the columns of such a table mean. On a GPU quartiles are not gathered, which would take
/// sorting, and cuSPARSE is among the candidates.
[[nodiscard]] select::schema schema_of_table(const std::string& title, bool on_gpu);

/// What is known (rows, cols, nnz) or gathered (row_*) by its name. Throws `invalid_argument`.
[[nodiscard]] double feature_of(const sparse::row_profile& profile, std::string_view name);

}  // namespace untax::bench
