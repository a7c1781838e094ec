// Local layers on one GPU: products of any number of rows up to a capacity against fp64, and what
// follows a product against the host.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/half.hpp>
#include <untax/ops/linear.hpp>
#include <untax/world/launch.hpp>

#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "engines/host/convert.hpp"
#include "engines/product/product.hpp"
#include "gemm_check.cuh"
#include "gpus.hpp"
#include "ops/common/random_matrix.hpp"
#include "rows_of_heads.hpp"

namespace {

using namespace gpu_test;
using untax::activation_function;
using untax::dtype;
using untax::linear;
using untax::linear_problem;
using untax::stream_ref;
using untax::world;
using untax::gpu::gemm;
using untax::gpu::gemm_plan;
using untax::gpu::gemm_shape;

/// Random numbers of a test, and their seed for messages.
class draws {
 public:
  [[nodiscard]] std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  /// As many below a power of two as above it.
  [[nodiscard]] std::int64_t rows(int octaves) {
    return number(1, std::int64_t{1} << number(0, octaves));
  }
  [[nodiscard]] std::string text() const { return fmt::format("seed {}", seed_); }

 private:
  unsigned seed_ = std::random_device{}();
  std::mt19937_64 engine_{seed_};
};

TEST(gemm, any_number_of_rows_up_to_a_capacity) {
  NEEDS_GPUS(1);
  draws draw;
  SCOPED_TRACE(draw.text());
  const stream on;
  for (int round = 0; round < cases(24); ++round) {
    const gemm_shape most{draw.rows(12), 8 * draw.number(1, 700), 8 * draw.number(1, 500),
                          draw.number(0, 1) == 0 ? dtype::bf16 : dtype::f16,
                          draw.number(0, 4) == 0};
    std::vector<gemm_plan> plans = untax::gpu::plans_by_model(most, untax::gpu::gpu_here());
    std::shuffle(plans.begin() + 1, plans.end(),
                 std::mt19937_64(static_cast<std::uint64_t>(round)));
    plans.resize(std::min<std::size_t>(plans.size(), 4));
    std::size_t bytes = 0;
    for (const gemm_plan& plan : plans) bytes = std::max(bytes, gemm::partials_of_rows(most, plan));
    const auto partials =
        bytes == 0 ? nullptr : std::make_shared<const untax::gpu::partial_sums>(bytes);
    for (const std::int64_t rows : {most.m, draw.number(1, most.m), draw.number(1, most.m)}) {
      gemm_data data(rows, most.n, most.k, most.type);
      data.fill(static_cast<std::uint32_t>(round), on.get());
      for (const gemm_plan& plan : plans) {
        gemm op(most, plan, partials,
                {.early = draw.number(0, 3) > 0,
                 .stages = draw.number(0, 1) == 1 ? plan.config.stages : 0});
        op.set_rows(rows);
        for (int run = 0; run < 2; ++run) {
          data.poison(on.get());
          op.run(data.a(), data.b(), data.c(), stream_ref(on.get()));
          ASSERT_EQ(data.findings(on.get()), "")
              << rows << " rows of m " << most.m << " n " << most.n << " k " << most.k
              << (most.invariant ? ", invariant: " : ": ") << plan.text();
        }
      }
    }
  }
}

TEST(product, of_random_shapes_is_right) {
  NEEDS_GPUS(1);
  draws draw;
  SCOPED_TRACE(draw.text());
  const stream on;
  for (int round = 0; round < cases(8); ++round) {
    untax::product_shape shape{.m = draw.rows(11),
                               .n = 8 * draw.number(1, 700),
                               .k = 8 * draw.number(1, 500),
                               .type = dtype::bf16,
                               .result = dtype::bf16,
                               .invariant = draw.number(0, 3) == 0};
    shape.library = !shape.invariant && draw.number(0, 3) == 0;
    std::vector<std::int64_t> ends;
    for (std::int64_t end = 1; end < shape.m; end += std::max<std::int64_t>(end / 3, 1))
      ends.push_back(end);
    ends.push_back(shape.m);
    const bool varies = draw.number(0, 2) > 0;
    untax::product op = varies ? untax::product(shape, ends) : untax::product(shape);
    SCOPED_TRACE(op.text());
    if (shape.library) ASSERT_EQ(op.text().find("untax"), std::string::npos);
    for (int run = 0; run < 6; ++run) {
      const std::int64_t rows = varies ? draw.number(1, shape.m) : shape.m;
      if (varies) op.set_rows(rows);
      gemm_data data(rows, shape.n, shape.k, shape.type);
      data.fill(static_cast<std::uint32_t>(run), on.get());
      data.poison(on.get());
      op.run(data.a(), data.b(), data.c(), stream_ref(on.get()));
      ASSERT_EQ(data.findings(on.get()), "")
          << rows << " rows of m " << shape.m << " n " << shape.n << " k " << shape.k;
    }
  }
}

float widened(std::uint16_t bits, dtype type) {
  float value = 0;
  untax::host::widen({reinterpret_cast<std::byte*>(&bits), 1, type}, 1, 1, &value, 1);
  return value;
}

double applied(activation_function function, double x) {
  switch (function) {
    case activation_function::silu:
    case activation_function::swiglu:
      return x / (1 + std::exp(-x));
    case activation_function::gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case activation_function::gelu_tanh:
    case activation_function::geglu:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default:
      return x;
  }
}

/// What follows the product, on the GPU: all functions, with and without a bias. The product alone
/// in fp32 is what it is compared with, as its own tests say that it is right. Whether the product
/// is rounded before the function depends on the kernel.
TEST(gpu_linear, applies_bias_and_function_to_the_product) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      1,
      [](world& w) {
        draws draw;
        SCOPED_TRACE(draw.text());
        const stream on;
        for (int round = 0; round < cases(12); ++round) {
          const auto function = static_cast<activation_function>(round % 6);
          const bool gated = is_gated(function);
          const dtype type = draw.number(0, 1) == 0 ? dtype::bf16 : dtype::f16;
          const linear_problem p{draw.rows(9), 8 * draw.number(1, 300), 8 * draw.number(1, 200),
                                 type, function};
          const std::int64_t columns = gated ? 2 * p.n : p.n;
          SCOPED_TRACE(fmt::format("rows {}, n {}, k {}, {}, {}", p.rows, p.n, p.k, name_of(type),
                                   name_of(function)));
          const auto random = [&](std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
            std::vector<std::uint16_t> host(static_cast<std::size_t>(rows * cols));
            untax::random_matrix{seed}.fill({host.data(), type, rows, cols, cols}, {0, rows},
                                            {0, cols});
            return host;
          };
          const std::vector<std::uint16_t> bias = random(1, columns, 3);
          const on_device<std::uint16_t> x(random(p.rows, p.k, 1), on);
          const on_device<std::uint16_t> weights(random(columns, p.k, 2), on);
          const on_device<std::uint16_t> addends(bias, on);
          const on_device<float> product(static_cast<std::size_t>(p.rows * columns));
          const on_device<std::uint16_t> out(static_cast<std::size_t>(p.rows * p.n));
          const bool has_bias = draw.number(0, 1) == 1;
          const untax::product alone(
              {.m = p.rows, .n = columns, .k = p.k, .type = type, .result = dtype::f32});
          linear op(w, p, {.varying_rows = draw.number(0, 1) == 1});
          const std::int64_t rows = p.rows;
          const untax::const_matrix in(x.data(), type, rows, p.k);
          const untax::const_matrix w_of(weights.data(), type, columns, p.k);
          ok(cudaMemsetAsync(out.data(), 0xff, static_cast<std::size_t>(rows * p.n) * 2, on.get()));
          alone.run(x.data(), weights.data(), product.data(), stream_ref(on.get()));
          op.run({.x = in,
                  .weights = w_of,
                  .bias = has_bias ? addends.data() : nullptr,
                  .out = {out.data(), type, rows, p.n}},
                 stream_ref(on.get()));
          const auto sums = values(product.data(), static_cast<std::size_t>(rows * columns), on);
          const auto results = values(out.data(), static_cast<std::size_t>(rows * p.n), on);
          const double step = type == dtype::bf16 ? 0x1p-7 : 0x1p-9;
          for (std::int64_t row = 0; row < rows; ++row) {
            const auto sum = [&](std::int64_t column) {
              return static_cast<double>(sums[static_cast<std::size_t>(row * columns + column)]);
            };
            const auto term = [&](std::int64_t column) {
              return sum(column) +
                     (has_bias ? widened(bias[static_cast<std::size_t>(column)], type) : 0);
            };
            const auto largest = [&](std::int64_t column) {
              return std::max(std::abs(sum(column)), std::abs(term(column)));
            };
            for (std::int64_t column = 0; column < p.n; ++column) {
              const std::int64_t gate = gated ? column / 8 * 16 + column % 8 : column;
              const double up = gated ? term(gate + 8) : 1;
              const double right = applied(function, term(gate)) * up;
              const double size =
                  (largest(gate) + 1) * std::max(1.0, gated ? largest(gate + 8) : 1);
              ASSERT_NEAR(widened(results[static_cast<std::size_t>(row * p.n + column)], type),
                          right, step * size)
                  << "row " << row << ", column " << column << ": " << op.explain();
            }
          }
        }
      },
      gpu_world());
}

TEST(gpu_linear, refuses_what_kernels_cannot_take) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      1,
      [](world& w) {
        expect_error(error_of([&] { linear(w, {.rows = 4, .n = 12, .k = 64}); }),
                     untax::errc::invalid_argument, {"n is 12", "16 would do"});
        expect_error(
            error_of([&] { linear(w, {.rows = 4, .n = 16, .k = 64, .type = dtype::f32}); }),
            untax::errc::invalid_argument, {"fp32"});
        expect_error(error_of([&] {
                       linear(w, {.rows = 4, .n = 16, .k = 64},
                              {.invariant = true, .library = true});
                     }),
                     untax::errc::unsupported, {"invariant", "library"});
      },
      gpu_world());
}

}  // namespace
