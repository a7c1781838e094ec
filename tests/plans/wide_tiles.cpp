// Which plans of a GEMM operators take that have tiles with swap_ab for many rows.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/planning.hpp"

namespace {

using namespace untax;
using gpu::gemm_plan;
using gpu::gpu_model;

constexpr int few_rows = 128;

bool is_wide(const gemm_plan& p) { return p.config.swap_ab && p.config.block_n > few_rows; }

/// `visit(plans, shape, gpu)` for problems at random.
template <class Visit>
void each_problem(const Visit& visit) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> logarithm(0, 14);
  for (int i = 0; i < 200; ++i) {
    gpu::gemm_shape shape;
    shape.m = static_cast<std::int64_t>(std::exp2(logarithm(random)));
    shape.n = 8 * static_cast<std::int64_t>(1 + random() % 1024);
    shape.k = 64 * static_cast<std::int64_t>(1 + random() % 256);
    const gpu_model gpu{132, i % 2 == 0 ? gpu::gemm_costs::h200 : gpu::gemm_costs::h100};
    visit(plans_with_wide_tiles(gpu::scatter_kernels, shape, gpu, gpu::registers_with_peers), shape,
          gpu);
  }
}

TEST(wide_tiles, are_for_many_rows_and_no_other_plan_rereads_weights) {
  int wide = 0;
  each_problem([&](const auto& plans, const gpu::gemm_shape& shape, const gpu_model&) {
    ASSERT_FALSE(plans.empty());
    for (const gemm_plan& p : plans) {
      ASSERT_EQ(std::ranges::count(gpu::scatter_kernels, p.config), 1) << p.text();
      if (is_wide(p)) {
        ASSERT_GT(shape.m, few_rows) << p.text();
        ++wide;
      } else {
        ASSERT_FALSE(rereads_weights(p)) << p.text();
      }
    }
  });
  EXPECT_GT(wide, 100);
}

/// Beside what is moved they take a tenth more than alone, in clusters half of that; and the
/// quickest plan is the first.
TEST(wide_tiles, count_as_slower_than_alone) {
  each_problem([&](const auto& plans, const gpu::gemm_shape& shape, const gpu_model& gpu) {
    ASSERT_TRUE(std::ranges::is_sorted(plans, {}, &gemm_plan::cycles));
    if (shape.m <= few_rows) return;
    for (gemm_plan p : plans) {
      const double planned = p.cycles;
      // The model knows the kernel of the GEMM alone, which may keep other sub-tiles.
      const auto alone = compiled_for(gpu::gemm_kernels, p.config);
      ASSERT_TRUE(alone);
      p.config = *alone;
      p.schedule.raster_group = gemm_plan{}.schedule.raster_group;
      const double longer = !is_wide(p) ? 1 : p.config.cluster > 1 ? 1.05 : 1.1;
      const double expected = plan_cycles(shape, p, gpu) * longer;
      ASSERT_NEAR(planned / expected, 1, 1e-9) << p.text();
    }
  });
}

TEST(wide_tiles, without_a_kernel_are_not_planned) {
  constexpr gpu::tile_config rows[] = {{256, 2, 3, false, 4, false, 1}};
  for (const gemm_plan& p :
       plans_with_wide_tiles(rows, {600, 8192, 4096}, {132}, gpu::registers_with_sums)) {
    EXPECT_EQ(p.config, rows[0]);
  }
}

}  // namespace
