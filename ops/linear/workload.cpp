#include "ops/linear/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "engines/host/convert.hpp"
#include "engines/host/openblas.hpp"
#include "ops/common/deviation.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/linear/backend.hpp"
#include "ops/linear/spec.hpp"

namespace untax {
namespace {

/// Columns of the product that the reference computes at a time: whole groups of gate and up.
constexpr std::int64_t block_columns = 256;

double tolerance_of(dtype type) noexcept {
  return type == dtype::f32 ? 1e-5 : 2 * roundoff_of(type);
}

double activated(activation_function function, double sum) {
  switch (function) {
    case activation_function::silu:
    case activation_function::swiglu:
      return sum / (1 + std::exp(-sum));
    case activation_function::gelu:
      return sum / 2 * (1 + std::erf(sum / std::numbers::sqrt2));
    case activation_function::gelu_tanh:
    case activation_function::geglu:
      return sum / 2 *
             (1 +
              std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (sum + 0.044715 * sum * sum * sum)));
    case activation_function::none:
      break;
  }
  return sum;
}

/// A number, and a bound on the error of a computed value of it.
struct bounded {
  double value = 0;
  double error = 0;
};

/// Makes results of the sums of a row of the product and the bias.
class finisher {
 public:
  explicit finisher(const linear_problem& p)
      : problem_(p), roundoff_(roundoff_of(p.type)), addition_(addition_share(p.k)) {}

  /// A sum with the bias, for N(0, 1) sums that are rounded before the bias is added, after it, or
  /// both.
  [[nodiscard]] bounded sum(double product, double bias) const {
    return {product + bias, roundoff_ * (std::abs(product) + std::abs(product + bias)) + addition_};
  }
  [[nodiscard]] bounded activated(const bounded& sum) const {
    constexpr double steepest = 1.13;  // the largest slope of all functions
    constexpr double evaluation = 4e-6;
    return {untax::activated(problem_.activation, sum.value),
            steepest * sum.error + evaluation * (std::abs(sum.value) + 1)};
  }
  [[nodiscard]] bounded gated(const bounded& gate, const bounded& up) const {
    const bounded function = activated(gate);
    return {function.value * up.value,
            std::abs(function.value) * up.error + function.error * (std::abs(up.value) + up.error)};
  }
  [[nodiscard]] bounded rounded(const bounded& result) const {
    return {result.value, result.error + roundoff_ * (std::abs(result.value) + result.error)};
  }

 private:
  linear_problem problem_;
  double roundoff_;
  double addition_;
};

double product_of(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

/// The memory of a rank beside its operands.
double work_space_of(const linear_problem& p, memory_kind memory, bool verify) {
  const std::int64_t columns = product_columns(p);
  const double product = product_of(p.rows, columns);
  if (memory == memory_kind::cuda)
    return is_gated(p.activation) ? product * static_cast<double>(size_of(p.type)) : 0;
  const double widened = product_of(p.rows + columns, p.k) + product + product_of(p.rows, p.n);
  const double checked =
      product_of(p.rows + block_columns, p.k) + product_of(p.rows, p.n + block_columns);
  return std::max(sizeof(float) * widened, verify ? sizeof(double) * checked : 0);
}

}  // namespace

linear_work::linear_work(const linear_problem& problem, int world, int rank)
    : problem_(problem), world_(world), rank_(rank) {}

std::vector<trial_operand> linear_work::operands() const {
  auto operands = trial_operands(spec_of<linear>::operands(problem_, world_, rank_));
  operands[weights].role = operand_role::weight;
  return operands;
}

std::unique_ptr<lone_operator<linear>> linear_work::make(world& w,
                                                         const linear_options& options) const {
  return std::make_unique<lone_operator<linear>>(linear(w, problem_, options));
}

void linear_work::fill(std::uint64_t seed, operand_set& set) const {
  const std::uint64_t first = seed * 64 + static_cast<std::uint64_t>(rank_) * 3;
  for (const std::size_t i : {weights, bias}) {
    const matrix m = set[i].host_elements(problem_.type);
    random_matrix{first + i}.fill(m, {0, m.rows}, {0, m.cols});
  }
  const matrix to = set[x].host_elements(problem_.type);
  const random_matrix normal{first};
  const float scale = 1 / std::sqrt(static_cast<float>(problem_.k));
  std::vector<float> line(static_cast<std::size_t>(to.cols));
  for (std::int64_t row = 0; row < to.rows; ++row) {
    for (std::int64_t col = 0; col < to.cols; ++col)
      line[static_cast<std::size_t>(col)] = scale * normal.at(row, col);
    host::narrow(line.data(), to.cols, 1, to.cols,
                 {static_cast<std::byte*>(row_of(to, row).data), to.stride, to.type});
  }
}

void linear_work::run(lone_operator<linear>& op, operand_set& set, stream_ref stream) const {
  const bool has_bias = problem_.activation != activation_function::none;
  op.get().run({.x = as_const(set[x].elements(problem_.type)),
                .weights = as_const(set[weights].elements(problem_.type)),
                .bias = has_bias ? set[bias].data() : nullptr,
                .out = set[out].elements(problem_.type)},
               stream);
}

double linear_work::relative_error(std::uint64_t /*seed*/, operand_set& set) const {
  const linear_problem& p = problem_;
  deviation off(tolerance_of(p.type));
  if (p.rows == 0) return off.relative_error();
  const std::vector<double> rows = widened(set[x].fetched(), p.rows * p.k, p.type);
  const std::vector<double> results = widened(set[out].fetched(), p.rows * p.n, p.type);
  const std::int64_t columns = product_columns(p);
  std::vector<double> addends = widened(set[bias].fetched(), columns, p.type);
  if (p.activation == activation_function::none) std::ranges::fill(addends, 0);
  const auto* const first_weight = static_cast<const std::byte*>(set[weights].fetched());
  const bool gated = is_gated(p.activation);
  const finisher finish(p);
  // The mean of the squares of results is above this, whatever the function.
  constexpr double expected = 0.1;
  std::vector<double> products(static_cast<std::size_t>(p.rows * block_columns));
  for (std::int64_t first = 0; first < columns; first += block_columns) {
    const std::int64_t count = std::min(block_columns, columns - first);
    const std::vector<double> part =
        widened(first_weight + static_cast<std::size_t>(first * p.k) * size_of(p.type), count * p.k,
                p.type);
    const auto size = [](std::int64_t number) { return static_cast<blasint>(number); };
    host::blas().dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size(p.rows), size(count),
                       size(p.k), 1, rows.data(), size(p.k), part.data(), size(p.k), 0,
                       products.data(), size(count));
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const auto sum = [&](std::int64_t column) {
        return finish.sum(products[static_cast<std::size_t>(row * count + column)],
                          addends[static_cast<std::size_t>(first + column)]);
      };
      const std::int64_t width = gated ? count / 2 : count;
      for (std::int64_t column = 0; column < width; ++column) {
        const std::int64_t gate = gated ? gate_column(column) : column;
        const bounded right = finish.rounded(gated ? finish.gated(sum(gate), sum(gate + gate_group))
                                                   : finish.activated(sum(gate)));
        const std::int64_t at = row * p.n + (gated ? first / 2 : first) + column;
        off.add(results[static_cast<std::size_t>(at)], right.value, right.error, expected);
      }
    }
  }
  return off.relative_error();
}

trial_subject spec_of<linear>::subject(const problem& p, const options& o, memory_kind memory,
                                       bool /*uneven*/) {
  trial_subject subject;
  subject.name = name;
  subject.description = fmt::format("{}, rows {}, n {}, k {}, {}, activation {}", name, p.rows, p.n,
                                    p.k, name_of(p.type), name_of(p.activation));
  subject.facts = {{"rows", p.rows},
                   {"n", p.n},
                   {"k", p.k},
                   {"dtype", std::string(name_of(p.type))},
                   {"activation", std::string(name_of(p.activation))}};
  subject.memory = memory;
  subject.patterns = {lone_pattern};
  subject.tolerance = tolerance_of(p.type);
  subject.rate_unit = "GFLOP/s";
  subject.rate_name = "flops_per_second";
  subject.work = [p](int ranks) {
    return 2.0 * ranks * product_of(p.rows, product_columns(p)) * static_cast<double>(p.k);
  };
  subject.heap_bytes = [](int /*ranks*/) { return std::size_t{0}; };
  subject.need = need_of_ranks(
      memory, [p, memory](int ranks, int rank, const std::vector<pattern>& patterns, bool verify) {
        memory_need need = need_of(linear_work(p, ranks, rank).operands());
        need.weights *= static_cast<double>(patterns.size());
        need.activations *= static_cast<double>(patterns.size());
        need.work_space = work_space_of(p, memory, verify);
        return need;
      });
  subject.make = maker_of_lone_trials<linear_workload>(name, p, o);
  return subject;
}

bool spec_of<linear>::has_gpu_kernel(const problem& p, const options& /*o*/) {
  return p.type != dtype::f32 && p.n % 8 == 0 && p.k % 8 == 0;
}

}  // namespace untax
