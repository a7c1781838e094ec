// What the model of the GEMM alone expects of plans, number for number: it was fitted to what was
// measured. Whoever fits it anew writes costs.txt with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/plans_test --gtest_filter='costs.*'
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "tests/wanted_lines.hpp"

namespace {

using namespace untax;

constexpr std::string_view file = "tests/plans/costs.txt";

TEST(costs, are_those_that_were_fitted) {
  std::vector<std::string> all;
  for (const int places : {132, 78, 16}) {
    for (const int m : {1, 40, 64, 100, 129, 256, 700, 2048, 9000}) {
      for (const auto& [n, k] : {std::pair<int, int>{3584, 8192}, {7424, 1024}, {520, 264}}) {
        const gpu::gemm_shape shape{m, n, k};
        std::string text;
        const auto plans = gpu::plans_alone(shape, places);
        for (const gpu::gemm_plan& p : plans) {
          text += fmt::format(" {:.7g}", p.cycles);
          EXPECT_EQ(p.cycles, gpu::plan_cycles(shape, p, places));
        }
        all.push_back(fmt::format("{} x {} x {}, {} SMs:{}", m, n, k, places, text));
      }
    }
  }
  untax_test::expect_wanted_lines(file, all);
}

/// Of random problems, for costs.py, which compares them with the model that bench/gemm fits.
TEST(gemm_costs, of_random_problems) {
  constexpr int problems = 60;
  constexpr int num_sms = 132;
  std::mt19937_64 engine(9);
  const auto below = [&](std::uint64_t count) {
    return static_cast<std::int64_t>(engine() % count);
  };
  std::string text;
  for (int i = 0; i < problems; ++i) {
    const gpu::gemm_shape s{1 + below(std::uint64_t{1} << below(14)), 8 * (1 + below(2000)),
                            8 * (1 + below(2000))};
    for (const gpu::gemm_plan& p : gpu::plans_alone(s, num_sms)) {
      const gpu::tile_config& c = p.config;
      const gpu::tile_schedule& order = p.schedule;
      ASSERT_GT(p.cycles, 0);
      text += fmt::format("{} {} {} {} {} {} {:d} {} {:d} {} {} {} {} {} {} {:.17g}\n", s.m, s.n,
                          s.k, c.block_n, c.cluster, c.stages, c.swap_ab, c.epilogue_buffers,
                          c.warpgroup_split_k, c.cluster_split_k, order.m_tiles, order.n_tiles,
                          order.clusters, order.stream_k_tiles, order.raster_group, p.cycles);
    }
  }
  RecordProperty("plans", text);
}

TEST(tma_tiles, fit_from_one_row_and_eight_columns_to_the_last_byte) {
  EXPECT_TRUE(gpu::fits_tma({1, 8}, 16));
  EXPECT_TRUE(gpu::fits_tma({2, 8}, 32));
  EXPECT_FALSE(gpu::fits_tma({2, 8}, 31));
  EXPECT_FALSE(gpu::fits_tma({0, 8}, 1000));
  EXPECT_FALSE(gpu::fits_tma({1, 0}, 1000));
  EXPECT_FALSE(gpu::fits_tma({1, 12}, 1000));
  EXPECT_TRUE(gpu::fits_tma({256, 256}, 1 << 20));
  EXPECT_FALSE(gpu::fits_tma({257, 256}, 1 << 20));
  EXPECT_FALSE(gpu::fits_tma({256, 264}, 1 << 20));
}

TEST(bulk_gathers, have_one_sender_unless_told) { EXPECT_EQ(bulk_gather{}.senders, 1); }

}  // namespace
