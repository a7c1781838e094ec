#pragma once

#include <span>
#include <vector>

#include <untax/ops/all_reduce_norm.hpp>

#include "ops/common/deviation.hpp"

namespace untax {

/// A row of the results of all_reduce_norm, in memory of the host.
struct norm_row {
  const void* x = nullptr;
  const void* out = nullptr;
  float scale = 1;  ///< the factor of e4m3 elements, as passed to the operator or as it computed it
};

/// Compares rows of results with all_reduce_norm in fp64. The norm is that of the stored x, which
/// is compared with the sum. Elements of e4m3 have to be the nearest ones, and the scale of a row
/// the one that makes its largest element the largest of e4m3.
class norm_reference {
 public:
  norm_reference(const all_reduce_norm_problem& problem, int ranks, std::vector<double> weight);

  /// `sum` is the row of the residual plus the rows of all ranks, with values about N(0, 1).
  void add_row(std::span<const double> sum, const norm_row& actual);

  /// The largest of the errors of x, of out and of the scales, as `deviation` defines them.
  [[nodiscard]] double relative_error() const noexcept;

 private:
  void add_narrow(std::span<const double> normed, const norm_row& actual);

  all_reduce_norm_problem problem_;
  int ranks_;
  std::vector<double> weight_;
  deviation sums_;
  deviation normed_;
  deviation scales_;
};

/// Half of the distance between neighbours among the numbers of e4m3 at `value`.
[[nodiscard]] double half_step_of_e4m3(double value) noexcept;

/// The largest relative error of a correct result in the Frobenius norm.
[[nodiscard]] double tolerance_of(const all_reduce_norm_problem& problem) noexcept;

}  // namespace untax
