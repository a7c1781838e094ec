// What is chosen for sizes of models, in full. A plan is what was measured to be best, and nothing
// but a GPU tells whether another one would be as good; so every change of what is chosen is one
// that somebody wanted. Whoever has measured anew writes chosen.txt with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/plans_test --gtest_filter='chosen.*'
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ops/all_gather/protocol.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_reduce/protocol.hpp"
#include "ops/all_to_all/protocol.hpp"
#include "ops/broadcast/protocol.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/reduce_scatter/protocol.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;
using plans_test::own_patterns;

constexpr std::string_view file = "tests/plans/chosen.txt";

std::string text_of(const gpu::gemm_plan& p) {
  const gpu::tile_config& c = p.config;
  const gpu::tile_schedule& s = p.schedule;
  return fmt::format(
      "tiles {}{} by {} c{} s{}/{}{} p{}, {} x {} x {}/{}, clusters {}, cut {}, raster group {}, "
      "in {}, parts {}, multicast rows {}, {:.3g} cycles",
      c.swap_ab ? "B" : "A", gpu::tile_rows(c), c.block_n, c.cluster, c.stages, c.epilogue_buffers,
      c.warpgroup_split_k ? " warpgroup split-K" : "", c.cluster_split_k, s.m_tiles, s.n_tiles,
      s.k_blocks, s.k_blocks_per_stage, s.clusters, s.stream_k_tiles, s.raster_group, s.segments,
      s.part_k_blocks, p.multicast_rows, p.cycles);
}
std::string text_of(const protocol_plan& p) {
  return fmt::format(
      "{} {} w{} s{} {} x {}, panels {}, across {}{}{}, raster rows {}, k interleave {}, sets {}",
      name_of(p.how), name_of(p.move), p.workers, p.senders, p.tile_m, p.tile_n, p.panel_k,
      p.chunk_cross, p.gather_own ? ", own gathered" : "", p.fan_out ? ", fan out" : "",
      p.raster_rows, p.k_interleave, p.sets);
}
std::string text_of(const gather_plan& p) {
  return fmt::format(
      "who {}, comm CTAs {}, own grid {}, streams {}{}{}{}, rate limit {}, sources {}, "
      "segments of {} rows, {} k-blocks; {}; {}",
      static_cast<int>(p.who), p.comm_ctas, p.own_grid, p.streams, p.packets ? ", packets" : "",
      p.tma_tiles ? ", TMA tiles" : "", p.polls ? ", flag poller" : "", p.rate_limit,
      fmt::join(p.sources, " "), p.segment_rows, p.segment_k_blocks, text_of(p.protocol),
      text_of(p.gemm));
}
std::string text_of(const scatter_plan& p) {
  return fmt::format(
      "way {}, comm CTAs {}, own grid {}, streams {}, parts {}, {} row splits of {}; {}; {}",
      static_cast<int>(p.way), p.comm_ctas, p.own_grid, p.streams, p.parts, p.row_splits,
      p.split_rows, text_of(p.protocol), text_of(p.gemm));
}
std::string text_of(const planned_collective& made) {
  const collective_plan& p = made.plan;
  return fmt::format("{} {}, phases {}, workers {}, chunk {}, depth {}{}{}, keepers {}, serves {}",
                     name_of(p.how), name_of(p.wire), p.phases, p.workers, p.chunk, p.depth,
                     p.direct ? ", direct" : "", p.pushes ? ", pushes" : "", p.keepers, p.serves);
}

using lines = std::vector<std::string>;

void add_gemms(lines& all) {
  for (const std::int64_t m : {1, 16, 24, 48, 64, 96, 128, 200, 512, 1000, 4096}) {
    for (const auto& [n, k] : {std::pair<int, int>{3584, 8192}, {7168, 2048}, {1024, 4096}}) {
      const int places = all.size() % 4 < 2 ? 132 : 64;
      const auto plans = gpu::gemm_plans({m, n, k}, places);
      for (std::size_t i = 0; i < std::min<std::size_t>(plans.size(), 2); ++i)
        all.push_back(fmt::format("gemm {} x {} x {}, {} SMs, {}: {}", m, n, k, places, i + 1,
                                  text_of(plans[i])));
    }
  }
}

/// What the model expects of all plans of a shape, of GPUs whole, cut down, and shared.
void add_expectations(lines& all) {
  for (const int places : {132, 131, 114, 66, 34, 16, 7}) {
    for (const std::int64_t m : {1, 24, 64, 100, 256, 700, 2048, 16384}) {
      for (const auto& [n, k] : {std::pair<int, int>{3584, 8192}, {7424, 1024}, {520, 264}}) {
        std::string text;
        for (const gpu::gemm_plan& p : gpu::gemm_plans({m, n, k}, places))
          text += fmt::format(" {:.6g}", p.cycles);
        all.push_back(fmt::format("gemm {} x {} x {}, {} SMs, cycles:{}", m, n, k, places, text));
      }
    }
  }
}

/// What a plan says of itself, and what the model expects of those that come next.
template <class Plan>
void add_all(lines& all, const std::vector<Plan>& plans) {
  std::string text = plans.front().text() + "; cycles";
  for (std::size_t i = 0; i < std::min<std::size_t>(plans.size(), 8); ++i)
    text += fmt::format(" {:.6g}", plans[i].gemm.cycles);
  all.push_back("  " + text);
}

void add_gathers(lines& all) {
  for (const std::int64_t m : {1, 16, 17, 64, 128, 256, 512, 1000, 2048, 8192}) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      for (const pattern how : own_patterns) {
        operator_options options;
        options.how = how;
        const int world = all.size() % 5 < 3 ? 2 : 4;
        const std::int64_t n = world == 2 ? 7168 : 3584;
        const auto plans =
            gather_plans({.m = m, .n = n, .k = 8192, .gather = gather}, world, 1, options, num_sms);
        all.push_back(fmt::format("all_gather_gemm {} x {} x 8192, {} of {} ranks, {}: {}", m, n,
                                  name_of(gather), world, name_of(how), text_of(plans.front())));
        add_all(all, plans);
      }
    }
  }
  // What is asked for, and small GPUs.
  for (const pattern how : own_patterns) {
    for (const direction move : {direction::push, direction::pull}) {
      operator_options options;
      options.how = how;
      options.move = move;
      options.senders = 6;
      options.workers = 40;
      for (const std::int64_t m : {48, 1024}) {
        const auto plans = gather_plans({.m = m, .n = 4096, .k = 4096}, 3, 0, options, 64);
        all.push_back(fmt::format("all_gather_gemm {} x 4096 x 4096, 3 ranks, {} {}, 6 of 40: {}",
                                  m, name_of(how), name_of(move), text_of(plans.front())));
      }
    }
  }
}

/// On parts of a GPU that several ranks share, down to the smallest.
void add_small(lines& all) {
  for (const int places : {8, 10, 12, 16, 22}) {
    for (const pattern how : own_patterns) {
      operator_options options;
      options.how = how;
      for (const std::int64_t m : {16, 600}) {
        all.push_back(fmt::format(
            "all_gather_gemm {} x 2048 x 1024, 2 ranks, {}, {} SMs: {}", m, name_of(how), places,
            text_of(gather_plans({.m = m, .n = 2048, .k = 1024}, 2, 0, options, places).front())));
        all.push_back(fmt::format(
            "gemm_all_scatter {} x 2048 x 1024, 2 ranks, {}, {} SMs: {}", m, name_of(how), places,
            text_of(scatter_plans({m, 2048, 1024}, 2, 0, options, places).front())));
      }
    }
  }
}

void add_scatters(lines& all) {
  for (const std::int64_t m : {1, 16, 40, 64, 128, 300, 1024, 2048, 8192, 100'000}) {
    for (const pattern how : own_patterns) {
      operator_options options;
      options.how = how;
      const int world = all.size() % 5 < 3 ? 2 : 4;
      const std::int64_t n = world == 2 ? 7168 : 8192;
      const auto plans = scatter_plans({m, n, 4096}, world, 1, options, num_sms);
      all.push_back(fmt::format("gemm_all_scatter {} x {} x 4096, {} ranks, {}: {}", m, n, world,
                                name_of(how), text_of(plans.front())));
      add_all(all, plans);
      if (m != 1024) continue;
      options.senders = 5;
      options.workers = 50;
      all.push_back(fmt::format(
          "gemm_all_scatter {} x {} x 4096, {} ranks, {}, 5 of 50: {}", m, n, world, name_of(how),
          text_of(scatter_plans({m, n, 4096}, world, 1, options, 64).front())));
    }
  }
}

/// Three ranks, where it matters to how many a shard goes while others' tiles begin.
void add_gathers_of_three(lines& all) {
  for (const auto& [m, n, k] : {std::tuple<int, int, int>{256, 3584, 8192}, {700, 7168, 2048}}) {
    operator_options options;
    options.how = pattern::fused_warp_specialized;
    const auto plans = gather_plans({.m = m, .n = n, .k = k}, 3, 1, options, num_sms);
    all.push_back(
        fmt::format("all_gather_gemm {} x {} x {}, 3 ranks: {}", m, n, k, text_of(plans.front())));
  }
}

void add_collectives(lines& all) {
  const auto add = [&](int world, std::int64_t count, const collective_need& need) {
    for (const bool direct : {false, true}) {
      for (const int sharing : {1, 2}) {
        if (sharing > 1 && count != std::int64_t{1} << 20) continue;
        collective_options options;
        options.direct = direct;
        all.push_back(fmt::format(
            "{} of {}, {} ranks, {} a GPU{}: {}", need.name, count, world, sharing,
            direct ? ", direct" : "",
            text_of(plan_collective(world, 0, need, options, memory_kind::cuda, sharing))));
      }
    }
  };
  for (const int world : {1, 2, 3, 4, 8}) {
    for (const std::int64_t count :
         {std::int64_t{1} << 10, std::int64_t{100'000}, std::int64_t{1} << 20,
          std::int64_t{3'000'000}, std::int64_t{1} << 24, std::int64_t{100'000'000}}) {
      add(world, count, need_of(all_gather_problem{count}, world));
      add(world, count, need_of(reduce_scatter_problem{count}, world));
      add(world, count, need_of(all_reduce_problem{count}, world));
      add(world, count, need_of(all_to_all_problem{count / world}, world));
      add(world, count, need_of(broadcast_problem{count}, world));
    }
  }
}

lines all_lines() {
  lines all;
  add_gemms(all);
  add_expectations(all);
  add_gathers(all);
  add_scatters(all);
  add_small(all);
  add_collectives(all);
  add_gathers_of_three(all);
  return all;
}

TEST(chosen, what_was_measured) {
  const lines all = all_lines();
  if (std::getenv("UNTAX_WRITE_PLANS") != nullptr) {
    std::ofstream to{std::string(file)};
    for (const std::string& line : all) to << line << '\n';
    return;
  }
  std::ifstream from{std::string(file)};
  ASSERT_TRUE(from.good()) << file << ": run this in the root of the repository";
  std::string line;
  std::size_t number = 0;
  int different = 0;
  for (; std::getline(from, line); ++number) {
    ASSERT_LT(number, all.size());
    EXPECT_EQ(all[number], line) << file << ":" << number + 1;
    if (all[number] != line && ++different == 5) GTEST_FAIL() << "and perhaps more";
  }
  EXPECT_EQ(number, all.size());
}

}  // namespace
