// The plans for sizes of models, with all fields. A plan was measured to be the best, and only a
// GPU can tell whether another one is as good, so a change has to be intended. After a new
// measurement chosen.txt is written with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/plans_test --gtest_filter='chosen.*'
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/plan.hpp"
#include "ops/common/plan_agreement.hpp"
#include "tests/plans/cases.hpp"
#include "tests/wanted_lines.hpp"

namespace {

using namespace untax;
using namespace plans_test;

using lines = std::vector<std::string>;

/// Adds all fields of the chosen plan, which are those that ranks agree on.
template <class Problem>
auto add(lines& out, const asked<Problem>& a) {
  auto plans = a.plans();
  out.push_back(fmt::format("{}: {}", a.text(), fmt::join(plans.front().agreed(), "; ")));
  return plans;
}
/// And what the plan says of itself, and what the model expects of those that come next.
template <class Problem>
void add_whole(lines& out, const asked<Problem>& a) {
  const auto plans = add(out, a);
  std::string text = "  " + plans.front().text() + "; cycles";
  for (std::size_t i = 0; i < std::min<std::size_t>(plans.size(), 8); ++i)
    text += fmt::format(" {:.6g}", plans[i].gemm.cycles);
  out.push_back(text);
}

void add_gemms(lines& out) {
  for (const std::int64_t m : {1, 16, 24, 48, 64, 96, 128, 200, 512, 1000, 4096}) {
    for (const auto& [n, k] : {std::pair<int, int>{3584, 8192}, {7168, 2048}, {1024, 4096}}) {
      const int places = out.size() % 4 < 2 ? 132 : 64;
      const auto plans = gpu::gemm_plans({m, n, k}, places);
      for (std::size_t i = 0; i < std::min<std::size_t>(plans.size(), 2); ++i)
        out.push_back(fmt::format("gemm {} x {} x {}, {} SMs, {}: {}", m, n, k, places, i + 1,
                                  fields_of(plans[i])));
    }
  }
}

/// Adds the times that the model expects of all plans of a shape: beside other work, or of the GEMM
/// `alone`, by the model that was fitted to measurements.
void add_expectations(lines& out, bool alone, const std::vector<int>& sm_counts,
                      const std::vector<std::int64_t>& rows) {
  for (const int places : sm_counts) {
    for (const std::int64_t m : rows) {
      for (const auto& [n, k] : {std::pair<int, int>{3584, 8192}, {7424, 1024}, {520, 264}}) {
        std::string text;
        for (const gpu::gemm_plan& p : alone ? gpu::plans_by_model({m, n, k}, {places})
                                             : gpu::gemm_plans({m, n, k}, places)) {
          text += fmt::format(" {:.7g}", p.cycles);
          EXPECT_TRUE(!alone || p.cycles == gpu::plan_cycles({m, n, k}, p, {places}));
        }
        out.push_back(fmt::format("gemm{} {} x {} x {}, {} SMs, cycles:{}", alone ? " alone" : "",
                                  m, n, k, places, text));
      }
    }
  }
}

/// The cycles of all plans as trees correct them; also where they say nothing.
void add_trees(lines& out) {
  const auto add_tree = [&](const gpu::gemm_shape& s, const gpu::gpu_model& gpu) {
    std::string text;
    for (const gpu::gemm_plan& p : gpu::plans_by_model(s, gpu))
      text += fmt::format(" {:.7g}", p.cycles);
    out.push_back(fmt::format("gemm by trees {} x {} x {}{}, {} SMs{}, cycles:{}", s.m, s.n, s.k,
                              s.invariant ? ", invariant" : "", gpu.num_sms,
                              gpu.costs == gpu::gemm_costs::h100 ? " of an H100" : "", text));
  };
  for (const std::int64_t m : {128, 129, 419, 573, 1019, 3566}) {
    for (const auto& [n, k] : {std::pair<int, int>{1280, 8192}, {6144, 4096}, {384, 5120}})
      for (const auto costs : {gpu::gemm_costs::h200, gpu::gemm_costs::h100})
        add_tree({m, n, k}, {num_sms, costs});
  }
  add_tree({419, 1280, 8192}, {num_sms - 1});
  add_tree({.m = 419, .n = 1280, .k = 8192, .invariant = true}, {num_sms});
}

void add_gathers(lines& out) {
  for (const std::int64_t m : {1, 16, 17, 64, 128, 256, 512, 1000, 2048, 8192}) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      for (const pattern how : own_patterns) {
        const int world = out.size() % 5 < 3 ? 2 : 4;
        const std::int64_t n = world == 2 ? 7168 : 3584;
        add_whole(
            out,
            asked_gather{
                {.m = m, .n = n, .k = 8192, .gather = gather}, world, {.how = how}, num_sms, 1});
      }
    }
  }
  // Explicit options, and small GPUs.
  for (const pattern how : own_patterns) {
    for (const direction move : {direction::push, direction::pull}) {
      for (const std::int64_t m : {48, 1024})
        add(out, asked_gather{{.m = m, .n = 4096, .k = 4096},
                              3,
                              {.how = how, .move = move, .workers = 40, .senders = 6},
                              64});
    }
  }
}

/// On parts of a GPU that several ranks share, down to the smallest.
void add_small(lines& out) {
  for (const int places : {8, 10, 12, 15, 16, 17, 22}) {
    for (const pattern how : own_patterns) {
      for (const std::int64_t m : {16, 600}) {
        add(out, asked_gather{{.m = m, .n = 2048, .k = 1024}, 2, {.how = how}, places});
        add(out,
            asked_scatter{{m, 2048, 1024}, 2, {.how = how, .senders = 40 * (places % 2)}, places});
      }
    }
  }
}

void add_scatters(lines& out) {
  for (const std::int64_t m : {1, 16, 40, 64, 128, 300, 1024, 2048, 8192, 100'000}) {
    for (const pattern how : own_patterns) {
      const int world = out.size() % 5 < 3 ? 2 : 4;
      const gemm_all_scatter_problem problem{m, world == 2 ? 7168 : 8192, 4096};
      add_whole(out, asked_scatter{problem, world, {.how = how}, num_sms, 1});
      if (m == 1024)
        add(out, asked_scatter{problem, world, {.how = how, .workers = 50, .senders = 5}, 64, 1});
    }
  }
}

/// Problems at which the planner changes its mind: how many rows are packets, or lie in segments of
/// whole sources; when epilogue warps move, and how fast; how many CTAs move a shard alone.
void add_edges(lines& out) {
  struct edge {
    pattern how;
    int world;
    std::vector<std::int64_t> rows;
    std::int64_t n = 3584;
    std::int64_t k = 8192;
    gather_axis gather = gather_axis::rows;
    int senders = 0;
    int places = num_sms;
  };
  using enum pattern;
  const edge edges[] = {
      {fused_sequential, 2, {16, 17}},
      {fused_sequential, 2, {16}, 3584, (std::int64_t{1} << 26)},
      {fused_sequential, 2, {16}, 3584, (std::int64_t{1} << 26) + 8},
      {fused_specialized, 2, {64, 128, 129, 249, 400, 512, 1100, 2304, 4096}},
      {fused_specialized, 3, {384, 3001, 4096}},
      {fused_specialized, 4, {256, 257, 512, 6400}},
      {fused_specialized, 8, {1024, 4104}},
      {fused_warp_specialized, 2, {128, 256, 512, 1024, 2048, 4096}},
      {fused_warp_specialized, 2, {256, 512, 1024}, 3584, 8192, gather_axis::k},
      {fused_warp_specialized, 2, {512, 2048}, 7168},
      {fused_warp_specialized, 2, {1024}, 512},
      {fused_warp_specialized, 2, {1024}, 3584, 8192, gather_axis::rows, 4},
      {fused_warp_specialized, 3, {256}},
      {fused_warp_specialized, 3, {700}, 7168, 2048},
      {fused_warp_specialized, 4, {256, 999, 1024}},
      {fused_warp_specialized, 8, {512, 1024}},
      {bulk_synchronous, 2, {1, 16, 512, 1024, 8192}, 7168},
      {bulk_synchronous, 4, {16, 768, 1024, 8000}, 7168},
      {bulk_synchronous, 8, {640}, 7168},
      {bulk_synchronous, 4, {2048}, 7168, 8192, gather_axis::k},
      {bulk_synchronous, 4, {8192}, 7168, 8192, gather_axis::rows, 7},
      {bulk_synchronous, 4, {8192}, 7168, 8192, gather_axis::rows, 200},
      {bulk_synchronous, 4, {8192}, 7168, 8192, gather_axis::rows, 99, 33},
      {bulk_synchronous, 4, {8192}, 7168, 8192, gather_axis::rows, 0, 33},
      {copy_engine, 2, {1024, 2048, 8192}, 7168, 8192, gather_axis::rows, 3},
  };
  for (const edge& e : edges) {
    for (const std::int64_t m : e.rows)
      for (const bool varying : {false, true})
        add(out, asked_gather{{.m = m, .n = e.n, .k = e.k, .gather = e.gather},
                              e.world,
                              {.how = e.how, .senders = e.senders, .varying_rows = varying},
                              e.places});
  }
}

TEST(chosen, plans_equal_the_recorded_ones) {
  lines out;
  add_gemms(out);
  add_expectations(out, false, {132, 131, 114, 66, 34, 16, 7},
                   {1, 24, 64, 100, 256, 700, 2048, 16384});
  add_gathers(out);
  add_scatters(out);
  add_small(out);
  add_edges(out);
  add_expectations(out, true, {132, 78, 16}, {1, 40, 64, 100, 129, 256, 700, 2048, 9000});
  add_trees(out);
  untax_test::expect_wanted_lines("tests/plans/chosen.txt", out);
}

}  // namespace
