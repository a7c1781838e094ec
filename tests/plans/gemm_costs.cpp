// What the planner of GEMMs expects of random problems, for costs.py, which compares it with the
// model that bench/gemm fits.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include <fmt/format.h>

#include "engines/gpu/gemm/cost.hpp"

namespace {

using namespace untax;

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

}  // namespace
