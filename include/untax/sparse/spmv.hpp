#pragma once

#include <span>

#include <untax/core/process_owned.hpp>
#include <untax/sparse/csr.hpp>
#include <untax/sparse/ways.hpp>

namespace untax::sparse {

/// ELL is refused if it would store more than this multiple of the elements of the matrix.
inline constexpr double most_padding = 10;
/// Throws `unsupported` if ELL would be padded too much. Small matrices may have any padding.
void require_padding(std::int64_t rows, std::int64_t elements, std::int64_t longest);

/// A matrix that is prepared for one kernel of the host. Kernels with CSR read the caller's matrix,
/// so it has to outlive this object; the others have a copy.
///
/// Merge-path: Merrill, Garland, Merge-based parallel sparse matrix-vector multiplication, SC 2016.
/// SELL-P: Anzt, Tomov, Dongarra, Implementing a sparse matrix vector product for the
/// SELL-C/SELL-C-sigma formats on NVIDIA GPUs, 2014.
template <class Value, class Offset>
class spmv {
 public:
  /// Converts the matrix, and starts `threads` threads, from 1 to 1024. Throws `invalid_argument`
  /// for a matrix that is not valid and for another number of threads, `unsupported` if ELL would
  /// be padded too much and for ways of cuSPARSE, and `out_of_memory` if threads cannot be started.
  spmv(const csr_view<Value, Offset>& matrix, spmv_kernel kernel, int threads);
  ~spmv();
  spmv(spmv&&) noexcept;
  spmv& operator=(spmv&&) noexcept;

  /// y = alpha A x + beta y. If beta is 0, y is not read. x has as many elements as A has columns,
  /// y as many as rows, and they do not overlap. It returns when y is complete. Throws
  /// `invalid_argument` for other sizes, and if x and y overlap; `unsupported` in a process that
  /// was forked later, if there are several threads. Calls must not run at the same time.
  void run(Value alpha, std::span<const Value> x, Value beta, std::span<Value> y);

  /// The seconds that the constructor took to convert, without the start of threads.
  [[nodiscard]] double setup_seconds() const noexcept;
  [[nodiscard]] spmv_kernel which() const noexcept;

 private:
  struct state;
  process_owned<state> state_;
};

/// The product by one thread, each row with a compensated sum of products without rounding (Ogita,
/// Rump, Oishi, Accurate sum and dot product, 2005). It is the reference for kernels.
template <class Value, class Offset>
void spmv_reference(const csr_view<Value, Offset>& matrix, double alpha, std::span<const Value> x,
                    double beta, std::span<double> y);

/// The largest difference between `y` and the reference, divided by the sum of the absolute values
/// of the terms of the element. `before` is y before the product; it may be empty if beta is 0.
template <class Value, class Offset>
[[nodiscard]] double spmv_error(const csr_view<Value, Offset>& matrix, double alpha,
                                std::span<const Value> x, double beta,
                                std::span<const Value> before, std::span<const Value> y);

/// The largest `spmv_error` of a correct kernel: 1e-13 of doubles, 1e-5 of floats.
template <class Value>
inline constexpr double spmv_tolerance = sizeof(Value) == 8 ? 1e-13 : 1e-5;

}  // namespace untax::sparse
