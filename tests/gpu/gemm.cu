// The GEMM of the Hopper engine against a plain loop that adds in fp64: every configuration, random
// shapes, edges; the same bits every time; captured.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engines/gpu/gemm/kernels.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "gemm_check.cuh"
#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::dtype;
using untax::gpu::gemm;
using untax::gpu::gemm_plan;
using untax::gpu::gemm_shape;
using untax::gpu::plans_by_model;
using untax::gpu::tile_config;

std::string text_of(const gemm_shape& s) {
  return fmt::format("m {} n {} k {} {}", s.m, s.n, s.k, name_of(s.type));
}

/// Computes a shape by each of the plans, and says what is wrong.
void expect_right(const gemm_shape& s, const std::vector<gemm_plan>& plans, std::uint32_t seed) {
  const stream on;
  gemm_data data(s.m, s.n, s.k, s.type);
  data.fill(seed, on.get());
  for (const gemm_plan& plan : plans) {
    const gemm op(s, plan);
    // Twice: what the first run leaves behind must not disturb the second.
    for (int run = 0; run < 2; ++run) {
      data.poison(on.get());
      op.run(data.a(), data.b(), data.c(), on.get());
      const std::string wrong = data.findings(on.get());
      EXPECT_EQ(wrong, "") << text_of(s) << ", run " << run << ", seed " << seed << ": "
                           << plan.text();
      if (!wrong.empty()) return;
    }
  }
}

/// They cannot be told apart by 6144 bits of memory bus: a driver gives 6016 for an H200.
TEST(gemm, plans_by_the_costs_of_this_gpu) {
  NEEDS_GPUS(1);
  cudaDeviceProp device{};
  ASSERT_EQ(cudaGetDeviceProperties(&device, 0), cudaSuccess);
  const std::string name = device.name;
  const auto is = [&](const char* model) { return name.find(model) != std::string::npos; };
  if (!is("H200") && !is("H100")) GTEST_SKIP() << name << " has no costs of its own";
  EXPECT_EQ(untax::gpu::gpu_here().costs,
            is("H200") ? untax::gpu::gemm_costs::h200 : untax::gpu::gemm_costs::h100)
      << name << ", bytes of L2: " << device.l2CacheSize;
}

TEST(gemm, every_configuration) {
  NEEDS_GPUS(1);
  for (const dtype type : {dtype::bf16, dtype::f16}) {
    for (const gemm_shape& s :
         {gemm_shape{128, 256, 64, type}, gemm_shape{256, 512, 1024, type},
          gemm_shape{777, 1000, 1352, type}, gemm_shape{64, 4608, 8192, type},
          gemm_shape{90, 3584, 2048, type}, gemm_shape{129, 3584, 4096, type},
          gemm_shape{1100, 2112, 1000, type}, gemm_shape{2048, 3584, 1024, type}})
      expect_right(s, plans_by_model(s, untax::gpu::gpu_here()), 1);
  }
}

TEST(gemm, every_kernel_where_tiles_are_not_full) {
  NEEDS_GPUS(1);
  std::vector<tile_config> left(std::begin(untax::gpu::gemm_kernels),
                                std::end(untax::gpu::gemm_kernels));
  for (const gemm_shape& s :
       {gemm_shape{13, 328, 1400, dtype::bf16}, gemm_shape{29, 328, 1400, dtype::f16},
        gemm_shape{150, 328, 1400, dtype::bf16}, gemm_shape{269, 712, 2056, dtype::f16},
        gemm_shape{385, 2112, 584, dtype::bf16}, gemm_shape{1293, 2888, 456, dtype::bf16},
        gemm_shape{530, 9224, 328, dtype::f16}}) {
    const stream on;
    gemm_data data(s.m, s.n, s.k, s.type);
    data.fill(5, on.get());
    // Memory around the matrices, and old contents of shared memory, are NaN.
    gemm_data none(std::max(s.m, s.n), s.k, 8, s.type);
    none.poison(on.get());
    for (const gemm_plan& plan : plans_by_model(s, untax::gpu::gpu_here())) {
      std::erase(left, plan.config);
      const gemm op(s, plan);
      op.run(none.c(), none.c(), data.c(), on.get());
      data.poison(on.get());
      op.run(data.a(), data.b(), data.c(), on.get());
      EXPECT_EQ(data.findings(on.get()), "") << text_of(s) << ": " << plan.text();
    }
  }
  for (const tile_config& c : left)
    ADD_FAILURE() << "not tried: a kernel of " << c.block_n << " columns, swap_ab " << c.swap_ab
                  << ", cluster split-K " << c.cluster_split_k;
}

TEST(gemm, few_rows) {
  NEEDS_GPUS(1);
  for (const std::int64_t m : {2, 9, 24, 40, 64, 100, 128, 200, 256}) {
    const gemm_shape s{m, 1096, 2056, dtype::bf16};
    expect_right(s, plans_by_model(s, untax::gpu::gpu_here()), 4);
  }
}

TEST(gemm, edges) {
  NEEDS_GPUS(1);
  for (const dtype type : {dtype::bf16, dtype::f16}) {
    for (const gemm_shape& s :
         {gemm_shape{1, 8, 8, type}, gemm_shape{1, 8, 4096, type}, gemm_shape{1, 7168, 8192, type},
          gemm_shape{3, 264, 72, type}, gemm_shape{16, 136, 200, type},
          gemm_shape{17, 8, 8000, type}, gemm_shape{65, 8200, 56, type},
          gemm_shape{129, 120, 136, type}, gemm_shape{257, 264, 8, type},
          gemm_shape{5000, 8, 520, type}, gemm_shape{4999, 40, 64, type}})
      expect_right(s, plans_by_model(s, untax::gpu::gpu_here()), 2);
  }
}

TEST(gemm, random_shapes) {
  NEEDS_GPUS(1);
  const unsigned seed = std::random_device{}();
  std::mt19937_64 engine(seed);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine);
  };
  for (int round = 0; round < 40; ++round) {
    // As many below a power of two as above it.
    const std::int64_t m = number(1, std::int64_t{1} << number(0, 13));
    const gemm_shape s{m, 8 * number(1, 1125), 8 * number(1, 1125),
                       number(0, 1) == 0 ? dtype::bf16 : dtype::f16};
    // The one that is taken, and others.
    std::vector<gemm_plan> plans = plans_by_model(s, untax::gpu::gpu_here());
    std::shuffle(plans.begin() + 1, plans.end(), engine);
    plans.resize(std::min<std::size_t>(plans.size(), 4));
    expect_right(s, plans, seed + static_cast<unsigned>(round));
  }
}

TEST(gemm, rows_at_any_address) {
  NEEDS_GPUS(1);
  const unsigned seed = std::random_device{}();
  std::mt19937_64 engine(seed);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine);
  };
  for (int round = 0; round < 24; ++round) {
    const gemm_shape s{number(1, std::int64_t{1} << number(0, 11)), number(1, 3000),
                       number(1, 3000), number(0, 1) == 0 ? dtype::bf16 : dtype::f16};
    const stream on;
    gemm_data data(s.m, s.n, s.k, s.type);
    data.fill(seed, on.get());
    const gemm op(s);
    for (int run = 0; run < 2; ++run) {
      data.poison(on.get());
      op.run(data.a(), data.b(), data.c(), on.get());
      EXPECT_EQ(data.findings(on.get()), "") << text_of(s) << ", seed " << seed;
    }
  }
}

/// The bytes of C.
std::vector<std::uint16_t> result_of(const gemm_data& data, const gemm_shape& s, const stream& on) {
  return values(static_cast<const std::uint16_t*>(data.c()), static_cast<std::size_t>(s.m * s.n),
                on);
}

/// With `invariant` rows have the same bits in batches of any size, by every plan for them.
TEST(gemm, invariant_rows_have_the_same_bits_by_every_plan) {
  NEEDS_GPUS(1);
  const unsigned seed = std::random_device{}();
  std::mt19937_64 engine(seed);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine);
  };
  // Ranges of k: 1, 2, 4, 8, and what comes.
  std::vector<gemm_shape> shapes = {{600, 328, 64, dtype::bf16},
                                    {600, 4608, 1416, dtype::bf16},
                                    {600, 2048, 2880, dtype::f16},
                                    {600, 1000, 3584, dtype::bf16}};
  for (int i = 0; i < 4; ++i)
    shapes.push_back({600, 8 * number(1, 800), 8 * number(1, 500),
                      number(0, 1) == 0 ? dtype::bf16 : dtype::f16});
  for (gemm_shape all : shapes) {
    all.invariant = true;
    const stream on;
    gemm_data data(all.m, all.n, all.k, all.type);
    data.fill(seed, on.get());
    const gemm usual(all);
    data.poison(on.get());
    usual.run(data.a(), data.b(), data.c(), on.get());
    ASSERT_EQ(data.findings(on.get()), "") << text_of(all) << ", seed " << seed;
    const auto wanted = result_of(data, all, on);
    for (const std::int64_t rows : {1, 7, 16, 17, 40, 64, 90, 128, 150, 257, 600}) {
      gemm_shape some = all;
      some.m = rows;
      const std::int64_t first = number(0, all.m - rows);
      const std::vector<std::uint16_t> same(wanted.begin() + first * all.n,
                                            wanted.begin() + (first + rows) * all.n);
      for (const gemm_plan& plan : plans_by_model(some, untax::gpu::gpu_here())) {
        data.poison(on.get());
        gemm(some, plan)
            .run(static_cast<const std::uint16_t*>(data.a()) + first * all.k, data.b(), data.c(),
                 on.get());
        ASSERT_EQ(result_of(data, some, on), same)
            << text_of(some) << ", from row " << first << ", seed " << seed << ": " << plan.text();
      }
    }
  }
}

TEST(gemm, gives_the_same_bits_again_also_in_a_graph) {
  NEEDS_GPUS(1);
  for (const gemm_shape& s :
       {gemm_shape{16, 7168, 8192, dtype::bf16}, gemm_shape{300, 2048, 4096, dtype::f16},
        gemm_shape{1, 3584, 8192, dtype::bf16}, gemm_shape{64, 3584, 8192, dtype::f16},
        gemm_shape{128, 3584, 8192, dtype::bf16}, gemm_shape{256, 3584, 8192, dtype::bf16},
        gemm_shape{161, 4608, 8192, dtype::bf16}, gemm_shape{40, 1001, 2051, dtype::f16},
        gemm_shape{800, 7168, 2048, dtype::bf16}}) {
    const stream on;
    gemm_data data(s.m, s.n, s.k, s.type);
    data.fill(3, on.get());
    const gemm op(s);
    op.run(data.a(), data.b(), data.c(), on.get());
    const auto first = result_of(data, s, on);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t captured = nullptr;
    ok(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal));
    op.run(data.a(), data.b(), data.c(), on.get());
    ok(cudaStreamEndCapture(on.get(), &graph));
    ok(cudaGraphInstantiate(&captured, graph, 0));
    for (int round = 0; round < 50; ++round) {
      data.poison(on.get());
      ok(cudaGraphLaunch(captured, on.get()));
      ASSERT_EQ(result_of(data, s, on), first) << text_of(s) << ", round " << round;
    }
    ok(cudaGraphExecDestroy(captured));
    ok(cudaGraphDestroy(graph));
  }
}

// Partial sums that clusters of one run leave for others must not be those of the run before.
TEST(gemm, a_run_after_other_values_is_right) {
  NEEDS_GPUS(1);
  for (const gemm_shape& s :
       {gemm_shape{16, 7168, 8192, dtype::bf16}, gemm_shape{161, 4608, 8192, dtype::bf16},
        gemm_shape{256, 3584, 8192, dtype::bf16}}) {
    const stream on;
    gemm_data data(s.m, s.n, s.k, s.type);
    for (const gemm_plan& plan : plans_by_model(s, untax::gpu::gpu_here())) {
      const gemm op(s, plan);
      for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        data.fill(seed, on.get());
        data.poison(on.get());
        op.run(data.a(), data.b(), data.c(), on.get());
        ASSERT_EQ(data.findings(on.get()), "") << text_of(s) << ", " << plan.text();
      }
    }
  }
}

TEST(gemm, ends_with_nan_inputs) {
  NEEDS_GPUS(1);
  const gemm_shape s{16, 4608, 8192, dtype::bf16};
  const stream on;
  gemm_data data(s.m, s.n, s.k, s.type);
  data.fill(6, on.get());
  gemm_data nothing(s.n, s.n, s.k, s.type);
  nothing.poison(on.get());
  const gemm op(s);
  // The poison is longer than A.
  op.run(nothing.c(), data.b(), data.c(), on.get());
  EXPECT_TRUE(on.done());
  for (const std::uint16_t c : result_of(data, s, on)) ASSERT_GT(c & 0x7fff, 0x7f80);
}

TEST(gemm, refuses_impossible_problems) {
  const auto refused = [](const gemm_shape& s) {
    return error_of([&] { (void)plans_by_model(s, {132}); });
  };
  using untax::errc;
  expect_error(refused({0, 8, 8}), errc::invalid_argument, {"m 0", "1 or more"});
  expect_error(refused({1, 12, 8}), errc::invalid_argument, {"n 12", "multiples of 8"});
  expect_error(refused({1, 8, 8, dtype::f32}), errc::invalid_argument, {"fp32", "bf16 or fp16"});
}

}  // namespace
