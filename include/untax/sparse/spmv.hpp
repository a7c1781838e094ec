#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// Ways to compute y = alpha A x + beta y on threads of the host.
enum class spmv_kernel {
  csr_rows,        ///< a thread has as many rows as another one
  csr_adaptive,    ///< blocks of rows with about as many elements, long rows cut; whoever is free
  csr_merge_path,  ///< a thread has as many rows and elements, added up, as another one
  csr_balanced,    ///< a thread has as many elements as another one
  coo,             ///< the same, with the row of each element stored
  ell,             ///< all rows padded to the longest, stored by columns
  sellp,           ///< rows padded to the longest of their slice
};
inline constexpr std::array all_spmv_kernels = {
    spmv_kernel::csr_rows,     spmv_kernel::csr_adaptive, spmv_kernel::csr_merge_path,
    spmv_kernel::csr_balanced, spmv_kernel::coo,          spmv_kernel::ell,
    spmv_kernel::sellp};

/// "csr_rows" and so on.
[[nodiscard]] std::string_view name_of(spmv_kernel kernel) noexcept;

/// Whether y has the same bits for any number of threads. Those that cut rows where threads end
/// (csr_merge_path, csr_balanced, coo) have the same bits for the same number of threads only.
[[nodiscard]] bool is_reproducible(spmv_kernel kernel) noexcept;

/// ELL is refused where it would store more than so many times as much as the matrix has.
inline constexpr double most_padding = 10;

/// A matrix made ready for one kernel. Kernels by CSR read the matrix where it lies, which has to
/// outlive this; the others have a copy.
///
/// Merge-path: Merrill, Garland, Merge-based parallel sparse matrix-vector multiplication, SC 2016.
/// SELL-P: Anzt, Tomov, Dongarra, Implementing a sparse matrix vector product for the
/// SELL-C/SELL-C- sigma formats on NVIDIA GPUs, 2014.
template <class Value, class Offset>
class spmv {
 public:
  /// Converts. Throws `invalid_argument` for a matrix that is none and for threads out of 1 to
  /// 1024, `unsupported` where ELL would be padded too much, `out_of_memory` for threads that
  /// cannot be made.
  spmv(const csr_view<Value, Offset>& matrix, spmv_kernel kernel, int threads);
  ~spmv();
  spmv(spmv&&) noexcept;
  spmv& operator=(spmv&&) noexcept;

  /// y = alpha A x + beta y; where beta is 0, y is not read. x has as many elements as A has
  /// columns, y as many as rows, and they do not overlap. Throws `invalid_argument` for other
  /// sizes. One call at a time.
  void run(Value alpha, std::span<const Value> x, Value beta, std::span<Value> y);

  /// What the constructor took to convert, threads not counted.
  [[nodiscard]] double setup_seconds() const noexcept;
  [[nodiscard]] spmv_kernel which() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The same by one thread, each row with a compensated sum of products without rounding (Ogita,
/// Rump, Oishi, Accurate sum and dot product, 2005): what kernels are compared with.
template <class Value, class Offset>
void spmv_reference(const csr_view<Value, Offset>& matrix, double alpha, std::span<const Value> x,
                    double beta, std::span<double> y);

/// The largest difference between `y` and the reference, over what the absolute values of its
/// terms add up to. `before` is y before the product; empty if beta is 0.
template <class Value, class Offset>
[[nodiscard]] double spmv_error(const csr_view<Value, Offset>& matrix, double alpha,
                                std::span<const Value> x, double beta,
                                std::span<const Value> before, std::span<const Value> y);

/// What `spmv_error` may be: 1e-13 of doubles, 1e-5 of floats.
template <class Value>
inline constexpr double spmv_tolerance = sizeof(Value) == 8 ? 1e-13 : 1e-5;

}  // namespace untax::sparse
