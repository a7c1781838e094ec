#include "ops/all_reduce_norm/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <untax/core/fp8.hpp>

namespace untax {
namespace {

/// The relative error of a row's root mean square and of the products with it, all in fp32.
constexpr double arithmetic_share = 1e-5;

constexpr auto largest = static_cast<double>(e4m3::largest);

}  // namespace

double half_step_of_e4m3(double value) noexcept {
  // e4m3 has four significant bits; below 2^-6 its steps are 2^-9.
  constexpr int least_exponent = -6;
  const int exponent = value == 0 ? least_exponent : std::ilogb(value);
  return std::ldexp(0.5, std::max(exponent, least_exponent) - 3);
}

norm_reference::norm_reference(const all_reduce_norm_problem& problem, int ranks,
                               std::vector<double> weight)
    : problem_(problem),
      ranks_(ranks),
      weight_(std::move(weight)),
      sums_(tolerance_of(problem)),
      normed_(tolerance_of(problem)),
      scales_(tolerance_of(problem)) {}

void norm_reference::add_row(std::span<const double> sum, const norm_row& actual) {
  // The terms are added in fp32, and the sum is rounded once.
  const double terms = ranks_ + 1;
  const std::vector<double> x = widened(actual.x, problem_.hidden, problem_.type);
  sums_.add_row(std::span<const double>(x), sum,
                roundoff_of(problem_.type) + addition_share(ranks_ + 1), terms);
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(problem_.hidden) +
                                       static_cast<double>(problem_.epsilon));
  std::vector<double> normed(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) normed[i] = x[i] * inverse * weight_[i];
  if (problem_.output != norm_output::same) return add_narrow(normed, actual);
  const std::vector<double> out = widened(actual.out, problem_.hidden, problem_.type);
  normed_.add_row(std::span<const double>(out), normed,
                  roundoff_of(problem_.type) + arithmetic_share, 1);
}

void norm_reference::add_narrow(std::span<const double> normed, const norm_row& actual) {
  const auto scale = static_cast<double>(actual.scale);
  if (problem_.output == norm_output::e4m3_per_token) {
    double most = 0;
    for (const double value : normed) most = std::max(most, std::abs(value));
    const double right = most > 0 ? most / largest : 1;
    scales_.add(scale, right, arithmetic_share * right, 0);
  }
  for (std::size_t i = 0; i < normed.size(); ++i) {
    e4m3 element;
    element.bits = static_cast<const std::uint8_t*>(actual.out)[i];
    const double right = std::clamp(normed[i] / scale, -largest, largest);
    const double bound = half_step_of_e4m3(right) + arithmetic_share * std::abs(right);
    normed_.add(static_cast<double>(static_cast<float>(element)) * scale, right * scale,
                bound * scale, 1);
  }
}

double norm_reference::relative_error() const noexcept {
  return std::max({sums_.relative_error(), normed_.relative_error(), scales_.relative_error()});
}

double tolerance_of(const all_reduce_norm_problem& problem) noexcept {
  // The rounding of an e4m3 element, with four significant bits; `norm_reference` bounds each of
  // them.
  if (problem.output != norm_output::same) return 1.0 / 16 + 1e-3;
  return problem.type == dtype::f32 ? 1e-5 : problem.type == dtype::f16 ? 6e-4 : 4e-3;
}

}  // namespace untax
