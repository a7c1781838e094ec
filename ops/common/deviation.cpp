#include "ops/common/deviation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "engines/host/convert.hpp"

namespace untax {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool same(double actual, double right) {
  return actual == right || (std::isnan(actual) && std::isnan(right));
}

}  // namespace

void deviation::add(double actual, double right, double bound, double expected) noexcept {
  expected_ += expected;
  if (std::isfinite(right)) norm_ += right * right;
  if (same(actual, right)) return;
  const double off = std::abs(actual - right);
  if (!std::isfinite(off)) {
    worst_ = infinity;
    return;
  }
  difference_ += off * off;
  // Without a bound a result has to be exact, which the sum of squares shows. A bound that is NaN
  // bounds nothing.
  if (std::isnan(bound)) worst_ = infinity;
  if (off > bound && tolerance_ > 0) worst_ = std::max(worst_, off / bound);
}

template <class T>
void deviation::add_elements(std::span<const T> actual, std::span<const double> right, double share,
                             double expected) noexcept {
  double squares = 0;
  for (const double value : right)
    if (std::isfinite(value)) squares += value * value;
  const auto count = static_cast<double>(right.size());
  const double least = std::sqrt(std::max(squares / std::max(count, 1.0), expected));
  for (std::size_t i = 0; i < right.size(); ++i)
    add(static_cast<double>(actual[i]), right[i], share * std::max(least, std::abs(right[i])),
        expected);
}

void deviation::add_row(std::span<const double> actual, std::span<const double> right, double share,
                        double expected) noexcept {
  add_elements(actual, right, share, expected);
}
void deviation::add_row(std::span<const float> actual, std::span<const double> right, double share,
                        double expected) noexcept {
  add_elements(actual, right, share, expected);
}

void deviation::add(const gpu::comparison& rows, double elements, double expected) noexcept {
  difference_ += rows.difference;
  norm_ += rows.size;
  expected_ += expected * elements;
  const auto worst = static_cast<double>(rows.worst);
  worst_ = std::max(worst_, rows.broken > 0 || std::isnan(worst) ? infinity : worst);
}

double deviation::relative_error() const noexcept {
  // The sums are NaN if a difference or an expected square is.
  if (worst_ == infinity || std::isnan(difference_ + norm_ + expected_)) return infinity;
  const double error = difference_ > 0 ? std::sqrt(difference_ / std::max(norm_, expected_)) : 0;
  return worst_ > 1 ? std::max(error, tolerance_ * worst_) : error;
}

std::vector<double> widened(const void* elements, std::int64_t count, dtype type) {
  std::vector<float> row(static_cast<std::size_t>(count));
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(elements));  // NOLINT(*-const-cast)
  host::widen({bytes, count, type}, 1, count, row.data(), count);
  return {row.begin(), row.end()};
}

double partials_share(dtype partials, int ranks) noexcept {
  if (ranks < 2) return 0;
  return 2 * roundoff_of(partials) * (std::sqrt(static_cast<double>(ranks)) + 6);
}

double addition_share(std::int64_t terms) noexcept {
  const auto count = static_cast<double>(terms);
  return 2 * 0x1p-24 * (16 * std::sqrt(count) + count / 4);
}

}  // namespace untax
