#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/tile/shard.hpp>

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

/// The backend on the host: the product by OpenBLAS or, with `invariant`, in order.
class host_backend final : public linear_backend {
 public:
  host_backend(const linear_problem& problem, const linear_options& options, int rank)
      : problem_(problem), invariant_(options.invariant), rank_(rank) {
    if (!invariant_)
      (void)host::blas();  // if there is no OpenBLAS, planning is refused and no run
                           // happens
  }

  void run(const linear_operands& o, stream_ref stream) override {
    argument_check{linear_name, rank_}.no_stream(stream);
    const std::int64_t rows = o.x.rows;
    const std::int64_t columns = product_columns(problem_);
    std::vector<float> product(static_cast<std::size_t>(rows * columns));
    multiply(o.x, o.weights, product);
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
    return invariant_ ? "products in order" : "OpenBLAS";
  }

 private:
  /// Multiplies some columns at a time, whose weights stay in a cache between their conversion and
  /// their use.
  void multiply(const const_matrix& x, const const_matrix& weights,
                std::vector<float>& product) const {
    const std::vector<float> wide = widened(x);
    if (weights.type == dtype::f32) {
      return multiply_columns(x.rows, wide.data(), {0, weights.rows},
                              static_cast<const float*>(weights.data), weights.stride, product);
    }
    constexpr std::int64_t cached = std::int64_t{1} << 18;
    const std::int64_t most = std::clamp(cached / weights.cols, std::int64_t{16}, weights.rows);
    const auto bytes = static_cast<std::int64_t>(size_of(weights.type));
    for (std::int64_t begin = 0; begin < weights.rows; begin += most) {
      const std::int64_t count = std::min(most, weights.rows - begin);
      const auto* const from =
          static_cast<const std::byte*>(weights.data) + begin * weights.stride * bytes;
      const std::vector<float> part =
          widened({from, weights.type, count, weights.cols, weights.stride});
      multiply_columns(x.rows, wide.data(), {begin, count}, part.data(), weights.cols, product);
    }
  }

  /// Computes columns of the product, from their weights.
  void multiply_columns(std::int64_t rows, const float* x, const range& columns,
                        const float* weights, std::int64_t stride,
                        std::vector<float>& product) const {
    const std::int64_t k = problem_.k;
    const std::int64_t all = product_columns(problem_);
    float* const to = product.data() + columns.begin;
    if (invariant_)
      return host::multiply_in_order(rows, columns.size, k, x, k, weights, stride, false, to, all);
    const auto size = [](std::int64_t number) { return static_cast<blasint>(number); };
    if (rows == 1) {
      host::blas().sgemv(CblasRowMajor, CblasNoTrans, size(columns.size), size(k), 1, weights,
                         size(stride), x, 1, 0, to, 1);
    } else {
      host::blas().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size(rows), size(columns.size),
                         size(k), 1, x, size(k), weights, size(stride), 0, to, size(all));
    }
  }

  void add(const void* bias, std::vector<float>& product) const {
    const std::vector<float> addends = widened({bias, problem_.type, 1, product_columns(problem_)});
    for (std::size_t i = 0; i < product.size(); ++i) product[i] += addends[i % addends.size()];
  }

  /// Computes a row of the result from one of the product.
  void finish(const float* product, float* result) const {
    const bool gated = is_gated(problem_.activation);
    for (std::int64_t column = 0; column < problem_.n; ++column) {
      const std::int64_t first = gated ? gate_column(column) : column;
      result[column] = applied(problem_.activation, product[first]);
      if (gated) result[column] *= product[first + gate_group];
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
