#include <cmath>
#include <numbers>
#include <vector>

#include <untax/core/error.hpp>

#include "engines/host/convert.hpp"
#include "engines/host/openblas.hpp"
#include "engines/host/ordered_product.hpp"
#include "ops/common/arguments.hpp"
#include "ops/linear/backend.hpp"

namespace untax {
namespace {

float silu(float x) { return x / (1 + std::exp(-x)); }
float gelu_tanh(float x) {
  constexpr float cubic = 0.044715F;
  const float scale = std::sqrt(2 * std::numbers::inv_pi_v<float>);
  return 0.5F * x * (1 + std::tanh(scale * (x + cubic * x * x * x)));
}

float applied(activation_function function, float x) {
  switch (function) {
    case activation_function::silu:
    case activation_function::swiglu:
      return silu(x);
    case activation_function::gelu:
      return 0.5F * x * (1 + std::erf(x / std::numbers::sqrt2_v<float>));
    case activation_function::gelu_tanh:
    case activation_function::geglu:
      return gelu_tanh(x);
    case activation_function::none:
      break;
  }
  return x;
}

std::vector<float> widened(const const_matrix& m) {
  std::vector<float> values(static_cast<std::size_t>(m.rows * m.cols));
  const host::tile_memory from{
      static_cast<std::byte*>(const_cast<void*>(m.data)),  // NOLINT(*-const-cast)
      m.stride, m.type};
  host::widen(from, m.rows, m.cols, values.data(), m.cols);
  return values;
}

/// The whole product by one call of OpenBLAS or, with `invariant`, in order.
class host_backend final : public linear_backend {
 public:
  host_backend(const linear_problem& problem, const linear_options& options, int rank)
      : problem_(problem), invariant_(options.invariant), rank_(rank) {
    if (!invariant_) host::blas();
  }

  void run(const linear_operands& o, stream_ref stream) override {
    argument_check{linear_name, rank_}.no_stream(stream);
    const std::int64_t rows = o.x.rows;
    const std::int64_t columns = product_columns(problem_);
    const std::vector<float> x = widened(o.x);
    const std::vector<float> weights = widened(o.weights);
    std::vector<float> product(static_cast<std::size_t>(rows * columns));
    multiply(rows, columns, x, weights, product);
    if (o.bias != nullptr) add(o.bias, product);
    host::round_to(problem_.type, product.data(), columns, rows, columns);
    std::vector<float> results(static_cast<std::size_t>(rows * problem_.n));
    for (std::int64_t row = 0; row < rows; ++row)
      finish(&product[static_cast<std::size_t>(row * columns)],
             &results[static_cast<std::size_t>(row * problem_.n)]);
    host::narrow(results.data(), problem_.n, rows, problem_.n,
                 {static_cast<std::byte*>(o.out.data), o.out.stride, o.out.type});
  }

  [[nodiscard]] std::string text() const override {
    return invariant_ ? "products in order" : "one product by OpenBLAS";
  }

 private:
  void multiply(std::int64_t rows, std::int64_t columns, const std::vector<float>& x,
                const std::vector<float>& weights, std::vector<float>& product) const {
    const std::int64_t k = problem_.k;
    if (invariant_)
      return host::multiply_in_order(rows, columns, k, x.data(), k, weights.data(), k, false,
                                     product.data(), columns);
    const auto size = [](std::int64_t number) { return static_cast<blasint>(number); };
    host::blas().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size(rows), size(columns), size(k),
                       1, x.data(), size(k), weights.data(), size(k), 0, product.data(),
                       size(columns));
  }

  void add(const void* bias, std::vector<float>& product) const {
    const std::vector<float> addends = widened({bias, problem_.type, 1, product_columns(problem_)});
    for (std::size_t i = 0; i < product.size(); ++i) product[i] += addends[i % addends.size()];
  }

  /// A row of the result, of one of the product.
  void finish(const float* product, float* result) const {
    constexpr std::int64_t group = linear::group;
    const bool gated = is_gated(problem_.activation);
    for (std::int64_t column = 0; column < problem_.n; ++column) {
      const std::int64_t first = gated ? column / group * 2 * group + column % group : column;
      result[column] = applied(problem_.activation, product[first]);
      if (gated) result[column] *= product[first + group];
    }
  }

  linear_problem problem_;
  bool invariant_;
  int rank_;
};

}  // namespace

process_owned<linear_backend> host_linear(const linear_problem& problem,
                                          const linear_options& options, int rank) {
  return make_process_owned<host_backend>(problem, options, rank);
}

}  // namespace untax
