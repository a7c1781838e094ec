#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <untax/core/types.hpp>

#include "engines/gpu/matrix/matrix.hpp"

namespace untax {

/// The difference between a result and its reference. It has two measures: the Frobenius norm over
/// all elements, and the largest error of one element, so that a single wrong word of 16 bytes is
/// seen in a result of any size. An element that is not finite is right only if the reference has
/// the same. The difference is never NaN itself.
class deviation {
 public:
  /// `tolerance` is the largest relative error of a correct result in the Frobenius norm.
  explicit deviation(double tolerance) noexcept : tolerance_(tolerance) {}

  /// Adds an element, which may be wrong by at most `bound`. `expected` is the expected value of
  /// its square: by chance all elements of a small result may be near zero, and any error is large
  /// relative to zero, so squares count as at least `expected` in the mean.
  void add(double actual, double right, double bound, double expected) noexcept;
  /// Adds a row. An element may be wrong by at most `share` of its own size or, if that is larger,
  /// of the root mean square of the row, whose squares count as at least `expected`, too.
  void add_row(std::span<const double> actual, std::span<const double> right, double share,
               double expected) noexcept;
  void add_row(std::span<const float> actual, std::span<const double> right, double share,
               double expected) noexcept;
  /// Adds rows that a GPU compared (gpu::compare), `elements` in all.
  void add(const gpu::comparison& rows, double elements, double expected) noexcept;

  ///
  /// actual - right
  ///
  /// /
  ///
  /// right
  ///
  /// , if every element is within its bound. Otherwise the result is above the tolerance: at least
  /// the tolerance times the number of bounds by which the worst element is wrong. Infinity if an
  /// element is not finite and the reference is, or the other way around.
  [[nodiscard]] double relative_error() const noexcept;

 private:
  template <class T>
  void add_elements(std::span<const T> actual, std::span<const double> right, double share,
                    double expected) noexcept;

  double tolerance_;
  double difference_ = 0;  ///< sum of squares
  double norm_ = 0;        ///< sum of squares of the reference
  double expected_ = 0;    ///< expected value of `norm_`
  double worst_ = 0;       ///< the largest error of an element, in bounds
};

/// `count` elements that lie side by side in memory of the host.
[[nodiscard]] std::vector<double> widened(const void* elements, std::int64_t count, dtype type);

/// The largest relative error of rounding to nearest: half of the last bit.
[[nodiscard]] constexpr double roundoff_of(dtype type) noexcept {
  return type == dtype::f32 ? 0x1p-24 : type == dtype::f16 ? 0x1p-11 : 0x1p-8;
}

/// A bound on the errors of a sum of `ranks` partial results that are each rounded to `partials`,
/// in units of the root mean square of such sums of N(0, 1) products.
///
/// A partial result p is off by at most u |p|, and all of them together by at most u sqrt(ranks)
///
/// p
///
/// , where p is the vector of the partial results of one element, by the inequality of Cauchy and
/// Schwarz. Its norm is 1 in the mean, and above 1 + 6 / sqrt(ranks) with a probability of less
/// than exp(-18), so that sqrt(ranks) + 6 covers it. A library that passes the running sum from
/// rank to rank in that type rounds as often again, hence the factor. With fp32 the bound is far
/// below the rounding of a result.
[[nodiscard]] double partials_share(dtype partials, int ranks) noexcept;

/// A bound on the errors of adding `terms` products of N(0, 1) elements in fp32, in units of the
/// root mean square of such sums.
///
/// In a plain loop the errors of additions are independent, with a standard deviation of less than
/// 2^-24 sqrt(terms) together; 16 covers the largest of 10^9. Tensor cores cut off instead of
/// rounding, always towards zero, once for 8 products or more: at most terms / 8 times 2^-23. The
/// reference may be added in either way, hence the factor.
[[nodiscard]] double addition_share(std::int64_t terms) noexcept;

}  // namespace untax
