// all_gather_gemm on GPUs in every way that it has.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

#include <fmt/format.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"
#include "operator_runs.hpp"

#include "ops/all_gather_gemm/spec.hpp"

namespace {

using namespace gpu_test;

constexpr pattern ways[] = {pattern::bulk_synchronous, pattern::producer_consumer,
                            pattern::fused_sequential, pattern::fused_specialized,
                            pattern::fused_warp_specialized};

/// Every way in which rows of A travel and are multiplied, between all ranks, also where they share
/// GPUs. Which ways there were is looked for in what the plans say.
TEST(gpu_gather_ways, every_way_of_sending_is_right) {
  NEEDS_GPUS(2);
  const std::uint64_t seed = std::random_device{}();
  // The last ones are of large tiles, several for a block.
  const std::int64_t sizes[][3] = {{3, 520, 4104},     {16, 520, 4104},
                                   {32, 520, 4104},    {64, 520, 4104},
                                   {127, 520, 4104},   {256, 3000, 4104},
                                   {512, 3000, 4104},  {999, 9000, 520},
                                   {2040, 9000, 2056}, {128 * gpus() - 3, 8200, 2056}};
  const auto size_count = static_cast<int>(std::size(sizes));
  const int taken = std::min(gpu_test::cases(size_count), size_count);
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        const operator_entry entry = untax::all_gather_gemm_entry();
        std::mt19937_64 stalls(static_cast<std::uint64_t>(w.rank()) * 977 + seed);
        std::string plans;
        for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
          for (int size = 0; size < taken; ++size) {
            const auto& [m, n, k] = sizes[size];
            for (const pattern how : ways) {
              const gemm_problem p{.m = m, .n = n, .k = k, .type = dtype::bf16, .gather = gather};
              const operator_options options{.how = how, .constant_weights = true};
              SCOPED_TRACE(fmt::format("seed {}, rank {} of {}: {}", seed, w.rank(), gpus(),
                                       text_of(entry, p, options)));
              workload load(w, entry, p, options, seed);
              plans += load.explain() + "\n";
              expect_right(w, s, load, tolerance_of(entry, p), seed, stalls);
            }
          }
        }
        if (taken < size_count) return;
        for (const char* way : {"packets", " to a tile", "warps that store move", "all blocks move",
                                "a warp in each", "A collected"})
          EXPECT_NE(plans.find(way), std::string::npos) << "no plan has: " << way;
      },
      roomy_world());
}

/// The last rank has no part of A, so nothing that it sends says what it has read: its counters
/// have to. It comes late to each run, while the others could be several runs ahead.
TEST(gpu_gather_ways, a_rank_without_a_part_is_not_overtaken) {
  NEEDS_GPUS(2);
  const std::uint64_t seed = std::random_device{}();
  constexpr std::uint64_t epochs = 6;
  constexpr std::int64_t late_microseconds = 10'000;
  untax::run_gpus(
      gpus(),
      [&](world& w) {
        const stream s;
        const operator_entry entry = untax::all_gather_gemm_entry();
        for (const std::int64_t m : {64, 300, 2000}) {
          for (const pattern how : ways) {
            const gemm_problem p{.m = m,
                                 .n = 520,
                                 .k = 8L * (w.size() - 1),
                                 .type = dtype::bf16,
                                 .gather = gather_axis::k};
            const operator_options options{.how = how};
            SCOPED_TRACE(fmt::format("seed {}, rank {} of {}: {}", seed, w.rank(), w.size(),
                                     text_of(entry, p, options)));
            workload load(w, entry, p, options, seed);
            for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
              load.refresh(seed + epoch);
              load.poison_result();
              if (w.rank() == w.size() - 1) stall(s, late_microseconds);
              load.launch(s.get());
              EXPECT_TRUE(s.done());
              w.check();
              EXPECT_LE(load.relative_error(), tolerance_of(entry, p))
                  << "epoch " << epoch << ": " << load.explain();
            }
          }
        }
      },
      roomy_world());
}

}  // namespace
