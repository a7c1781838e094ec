// Linear layers on hosts against plain loops in fp64.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/half.hpp>
#include <untax/ops/linear.hpp>
#include <untax/world/launch.hpp>

#include "engines/host/convert.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/linear/spec.hpp"
#include "ops/linear/workload.hpp"
#include "tests/errors.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

/// A matrix of a type, and its elements as floats.
struct typed_matrix {
  typed_matrix(dtype element_type, std::int64_t rows, std::int64_t cols, std::uint64_t seed)
      : type(element_type),
        bytes(static_cast<std::size_t>(rows * cols) * size_of(element_type)),
        height(rows),
        width(cols) {
    random_matrix{seed}.fill(view(), {0, rows}, {0, cols});
  }
  [[nodiscard]] matrix view() { return {bytes.data(), type, height, width}; }
  [[nodiscard]] std::vector<float> values() {
    std::vector<float> floats(static_cast<std::size_t>(height * width));
    host::widen({bytes.data(), width, type}, height, width, floats.data(), width);
    return floats;
  }

  dtype type;
  std::vector<std::byte> bytes;
  std::int64_t height;
  std::int64_t width;
};

double applied(activation_function function, double x) {
  switch (function) {
    case activation_function::silu:
    case activation_function::swiglu:
      return x / (1 + std::exp(-x));
    case activation_function::gelu:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    case activation_function::gelu_tanh:
    case activation_function::geglu:
      return x / 2 *
             (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)));
    default:
      return x;
  }
}

class linear_case {
 public:
  linear_case(const linear_problem& p, bool has_bias, std::uint64_t seed)
      : problem_(p),
        columns_(is_gated(p.activation) ? 2 * p.n : p.n),
        x_(p.type, p.rows, p.k, seed),
        weights_(p.type, columns_, p.k, seed + 1),
        bias_(p.type, 1, columns_, seed + 2),
        out_(p.type, p.rows, p.n, seed + 3),
        has_bias_(has_bias) {
    poison(out_.view());
  }

  [[nodiscard]] linear_operands operands(std::int64_t first, std::int64_t rows) {
    const auto part = [&](typed_matrix& m) {
      const std::int64_t at = first * m.width * static_cast<std::int64_t>(size_of(m.type));
      return matrix(m.bytes.data() + at, m.type, rows, m.width);
    };
    return {.x = as_const(part(x_)),
            .weights = as_const(weights_.view()),
            .bias = has_bias_ ? bias_.bytes.data() : nullptr,
            .out = part(out_)};
  }

  void expect_right() {
    const std::vector<float> x = x_.values();
    const std::vector<float> weights = weights_.values();
    const std::vector<float> bias = bias_.values();
    const std::vector<float> out = out_.values();
    // A rounding of the product, one of the result, and sums in another order.
    const double step = problem_.type == dtype::f32   ? 1e-5
                        : problem_.type == dtype::f16 ? 2e-3
                                                      : 1.6e-2;
    for (std::int64_t row = 0; row < problem_.rows; ++row) {
      const auto product = [&](std::int64_t column) {
        double sum = has_bias_ ? static_cast<double>(bias[static_cast<std::size_t>(column)]) : 0;
        for (std::int64_t i = 0; i < problem_.k; ++i)
          sum += static_cast<double>(x[static_cast<std::size_t>(row * problem_.k + i)]) *
                 static_cast<double>(weights[static_cast<std::size_t>(column * problem_.k + i)]);
        return sum;
      };
      for (std::int64_t column = 0; column < problem_.n; ++column) {
        const bool gated = is_gated(problem_.activation);
        const std::int64_t gate = gated ? column / 8 * 16 + column % 8 : column;
        const double up = gated ? product(gate + 8) : 1;
        const double sum = product(gate);
        const double right = applied(problem_.activation, sum) * up;
        const double size = (std::abs(sum) + std::sqrt(static_cast<double>(problem_.k))) *
                            std::max(1.0, std::abs(up));
        ASSERT_NEAR(static_cast<double>(out[static_cast<std::size_t>(row * problem_.n + column)]),
                    right, step * size)
            << "row " << row << ", column " << column;
      }
    }
  }
  [[nodiscard]] const std::vector<std::byte>& bits() const { return out_.bytes; }

 private:
  linear_problem problem_;
  std::int64_t columns_;
  typed_matrix x_;
  typed_matrix weights_;
  typed_matrix bias_;
  typed_matrix out_;
  bool has_bias_;
};

TEST(linear, of_random_problems_equals_plain_loops) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < 60; ++round) {
    linear_problem p{.rows = number(0, 20),
                     .n = number(1, 40),
                     .k = number(1, 90),
                     .type = static_cast<dtype>(number(0, 2)),
                     .activation = static_cast<activation_function>(number(0, 5))};
    if (is_gated(p.activation)) p.n = 8 * number(1, 5);
    const linear_options options{.varying_rows = number(0, 1) == 1, .invariant = number(0, 1) == 1};
    SCOPED_TRACE(fmt::format("rows {}, n {}, k {}, {}, {}", p.rows, p.n, p.k, name_of(p.type),
                             name_of(p.activation)));
    linear_case c(p, number(0, 1) == 1, random());
    run_threads(1, [&](world& w) {
      linear op(w, p, options);
      // Where rows vary, two runs of some rows each make the whole.
      const std::int64_t first =
          options.varying_rows ? number(0, static_cast<int>(p.rows)) : p.rows;
      op.run(c.operands(0, first));
      if (first < p.rows) op.run(c.operands(first, p.rows - first));
    });
    ASSERT_NO_FATAL_FAILURE(c.expect_right());
  }
}

TEST(linear, with_invariant_has_the_same_bits_for_any_number_of_rows) {
  const linear_problem p{
      .rows = 33, .n = 24, .k = 70, .type = dtype::bf16, .activation = activation_function::swiglu};
  linear_case together(p, true, 7);
  linear_case one_by_one(p, true, 7);
  run_threads(1, [&](world& w) {
    linear op(w, p, {.varying_rows = true, .invariant = true});
    op.run(together.operands(0, p.rows));
    for (std::int64_t row = 0; row < p.rows; ++row) op.run(one_by_one.operands(row, 1));
  });
  EXPECT_EQ(together.bits(), one_by_one.bits());
}

TEST(linear, trials_see_one_wrong_element) {
  for (int i = 0; i < 18; ++i) {
    const linear_problem p{.rows = 5,
                           .n = 264,
                           .k = 40,
                           .type = static_cast<dtype>(i / 6),
                           .activation = static_cast<activation_function>(i % 6)};
    SCOPED_TRACE(fmt::format("{}, {}", name_of(p.type), name_of(p.activation)));
    const double tolerance = spec_of<linear>::subject(p, {}, memory_kind::host, false).tolerance;
    run_threads(1, [&](world& w) {
      linear_workload trial(w, p, {}, 7);
      trial.run();
      EXPECT_LE(trial.relative_error(), tolerance);
      const matrix out = trial.operand(linear_work::out).elements(p.type);
      const matrix row = row_of(out, 3);
      const host::tile_memory last{
          static_cast<std::byte*>(row.data) + static_cast<std::size_t>(p.n - 1) * size_of(p.type),
          p.n, p.type};
      float element = 0;
      host::widen(last, 1, 1, &element, 1);
      element += p.type == dtype::f32 ? 1e-3F : 0.3F;
      host::narrow(&element, 1, 1, 1, last);
      EXPECT_GT(trial.relative_error(), tolerance);
    });
  }
}

TEST(linear, interleaves_rows_of_gate_and_up) {
  typed_matrix gate(dtype::f32, 16, 3, 1);
  typed_matrix up(dtype::f32, 16, 3, 2);
  typed_matrix weights(dtype::f32, 32, 3, 3);
  linear::interleave(as_const(gate.view()), as_const(up.view()), weights.view());
  const std::vector<float> rows = weights.values();
  for (std::size_t row = 0; row < 32; ++row) {
    const std::size_t from = row / 16 * 8 + row % 8;
    for (std::size_t column = 0; column < 3; ++column)
      EXPECT_EQ(rows[row * 3 + column], (row % 16 < 8 ? gate : up).values()[from * 3 + column]);
  }
  expect_error(error_of([&] {
                 linear::interleave(as_const(gate.view()), as_const(gate.view()), gate.view());
               }),
               errc::invalid_argument, {"16 x 3", "twice the rows"});
}

TEST(linear, refuses_impossible_problems) {
  run_threads(1, [](world& w) {
    expect_error(error_of([&] { linear(w, {.rows = 4, .n = 0, .k = 8}); }), errc::invalid_argument,
                 {"rank 0: linear: n is 0"});
    expect_error(error_of([&] {
                   linear(w,
                          {.rows = 4, .n = 12, .k = 8, .activation = activation_function::geglu});
                 }),
                 errc::invalid_argument, {"n is 12", "multiple of 8"});
    const linear_problem p{.rows = 4, .n = 8, .k = 8, .type = dtype::f32};
    linear op(w, p, {.varying_rows = true});
    linear_case c({.rows = 5, .n = 8, .k = 8, .type = dtype::f32}, false, 1);
    expect_error(error_of([&] { op.run(c.operands(0, 5)); }), errc::invalid_argument,
                 {"x has 5 rows", "4 at most"});
    linear_operands in_place = c.operands(0, 4);
    in_place.out = {const_cast<void*>(in_place.x.data), dtype::f32, 4, 8};  // NOLINT(*-const-cast)
    expect_error(error_of([&] { op.run(in_place); }), errc::invalid_argument, {"x"});
  });
}

}  // namespace
}  // namespace untax
