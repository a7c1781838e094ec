#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <untax/sparse/spmv.hpp>

#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

/// A compensated sum: rounding errors are summed separately.
class compensated {
 public:
  void add(double term) {
    const double sum = sum_ + term;
    const double back = sum - sum_;
    error_ += (sum_ - (sum - back)) + (term - back);
    sum_ = sum;
  }
  void add_product(double a, double b) {
    const double product = a * b;
    error_ += std::fma(a, b, -product);
    add(product);
  }
  [[nodiscard]] double value() const { return sum_ + error_; }

 private:
  double sum_ = 0;
  double error_ = 0;
};

/// Calls `see(row, compensated sum, sum of absolute values)` for each row of A x.
template <class Value, class Offset, class See>
void each_row(const csr_view<Value, Offset>& m, std::span<const Value> x, const See& see) {
  for (std::size_t r = 0; r + 1 < m.offsets.size(); ++r) {
    compensated sum;
    double magnitude = 0;
    for (auto i = static_cast<std::size_t>(m.offsets[r]);
         i < static_cast<std::size_t>(m.offsets[r + 1]); ++i) {
      const double a = m.values[i];
      const double b = x[static_cast<std::size_t>(m.columns[i])];
      sum.add_product(a, b);
      magnitude += std::abs(a * b);
    }
    see(r, sum.value(), magnitude);
  }
}

}  // namespace

template <class Value, class Offset>
void spmv_reference(const csr_view<Value, Offset>& matrix, double alpha, std::span<const Value> x,
                    double beta, std::span<double> y) {
  each_row(matrix, x, [&](std::size_t r, double sum, double) {
    y[r] = beta == 0 ? alpha * sum : alpha * sum + beta * y[r];
  });
}

template <class Value, class Offset>
double spmv_error(const csr_view<Value, Offset>& matrix, double alpha, std::span<const Value> x,
                  double beta, std::span<const Value> before, std::span<const Value> y) {
  double worst = 0;
  each_row(matrix, x, [&](std::size_t r, double sum, double magnitude) {
    const double added = beta == 0 ? 0 : beta * static_cast<double>(before[r]);
    const double away = std::abs(static_cast<double>(y[r]) - (alpha * sum + added));
    const double scale = std::abs(alpha) * magnitude + std::abs(added);
    const double error = away == 0 ? 0 : away / scale;
    // std::max could drop NaN. A result that should be zero has an infinite error.
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  });
  return worst;
}

#define UNTAX_REFERENCE(Value, Offset)                                                         \
  template void spmv_reference(const csr_view<Value, Offset>&, double, std::span<const Value>, \
                               double, std::span<double>);                                     \
  template double spmv_error(const csr_view<Value, Offset>&, double, std::span<const Value>,   \
                             double, std::span<const Value>, std::span<const Value>);
UNTAX_SPARSE_TYPES(UNTAX_REFERENCE)
#undef UNTAX_REFERENCE

}  // namespace untax::sparse
