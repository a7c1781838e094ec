#pragma once

#include <memory>
#include <span>

#include <untax/sparse/csr.hpp>
#include <untax/sparse/ways.hpp>

namespace untax::sparse {

/// ELL is refused where it would store more than so many times as much as the matrix has.
inline constexpr double most_padding = 10;
/// Throws `unsupported` if that is so. Small matrices may be padded as they like.
void require_padding(std::int64_t rows, std::int64_t elements, std::int64_t longest);

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
  /// 1024, `unsupported` where ELL would be padded too much and for ways of cuSPARSE,
  /// `out_of_memory` for threads that cannot be made.
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
