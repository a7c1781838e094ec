// Collectives on GPUs: every result is compared, bit by bit, with the contributions combined in
// fp32 in rank order and rounded once, so runs that differ among themselves are found, too.
#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/collectives.hpp>
#include <untax/world/launch.hpp>

#include "collective_trial.cuh"

#include "ops/all_gather/spec.hpp"
#include "ops/all_reduce/spec.hpp"
#include "ops/all_to_all/spec.hpp"
#include "ops/broadcast/spec.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/reduce_scatter/spec.hpp"

namespace {

using namespace gpu_test;
using untax::collective_entry;
using untax::collective_options;
using untax::collective_problem;
using untax::dtype;
using untax::input_path;
using untax::pattern;
using untax::reduction;
using untax::wire_kind;
using untax::world;

untax::world_options roomy_world(std::chrono::milliseconds limit = 20s) {
  untax::world_options options = gpu_world(limit);
  options.heap_bytes = std::size_t{1} << 30;
  return options;
}

struct collective_case {
  const collective_entry* entry;
  collective_problem problem;
  collective_options options;
  trial_layout layout;

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "{}, {} {}, offsets {} and {}{}, {}{}phases {}, workers {}, chunk {}, depth {}, keepers {}",
        untax::describe(*entry, problem), name_of(options.how), name_of(options.wire),
        layout.in_offset, layout.out_offset, layout.in_place ? ", in place" : "",
        options.direct ? "direct, " : "", options.inputs == input_path::rooms ? "by rooms, " : "",
        options.phases, options.workers, options.chunk_bytes, options.depth, options.keepers);
  }
};

class case_maker {
 public:
  case_maker(int ranks, std::uint64_t seed) : ranks_(ranks), random_(seed) {}

  collective_case make(const collective_entry& entry) {
    collective_case c{&entry, {}, {}, {}};
    c.problem.type = one_of({dtype::f32, dtype::f16, dtype::bf16});
    c.problem.how = one_of({reduction::sum, reduction::max, reduction::min});
    c.problem.count = count();
    c.problem.root = below(ranks_);
    c.problem.uneven = entry.has_uneven && below(2) == 0;
    choose_wire(c);
    // The blocks of all ranks that share a GPU have to fit on it.
    if (c.options.workers > 1)
      c.options.workers = std::max(c.options.workers / gpu_test::sharing(), 1);
    if (below(2) == 0) {
      c.layout.in_offset = below(9);
      c.layout.out_offset = below(9);
    }
    // The others write parts of what they read, or need both sides to be of one size.
    c.layout.in_place = entry.name == "all_reduce" && below(4) == 0 &&
                        !(c.options.how == pattern::fused_specialized && c.options.phases != 2) &&
                        !(c.options.direct && c.options.phases == 1);
    return c;
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(static_cast<int>(all.size()))];
  }

  std::int64_t count() {
    switch (below(6)) {
      case 0:
        return below(ranks_ + 2);
      case 1:
        return below(200);
      case 2:
        return 1 + below(5000);
      case 3:
        return 8 * below(20000);
      case 4:
        return below(1000000);
      default:
        return below(3) == 0 ? (4 << 20) - below(3) * 13 : 1 << (10 + below(11));
    }
  }

  void choose_wire(collective_case& c) {
    collective_options& o = c.options;
    o.phases = c.entry->has_phases ? below(3) : 0;
    switch (below(4)) {
      case 0:  // as untax chooses
        o.phases = 0;
        o.direct = below(2) == 0;
        return;
      case 1:
        if (c.problem.count > 300000) c.problem.count = 300000 + below(1000);
        o.wire = wire_kind::packets;
        o.workers = one_of({0, 1, 3, 20});
        return;
      default:
        o.wire = one_of({wire_kind::stores, wire_kind::stores, wire_kind::bulk});
    }
    o.how = one_of({pattern::fused_sequential, pattern::fused_sequential,
                    pattern::fused_specialized, pattern::bulk_synchronous});
    o.direct = o.how == pattern::fused_sequential && below(3) > 0;
    o.inputs = one_of({input_path::automatic, input_path::in_place, input_path::rooms});
    o.workers = one_of({0, 1, 2, 7, 32});
    if (o.workers > 0 && c.problem.count > 500000) o.workers = 32;
    o.depth = one_of({0, 1, 2, 3, 4});
    o.keepers = one_of({0, 1, 5});
    o.serves = one_of({0, 1, 2, 3});
    // Large problems would have too many small chunks.
    if (c.problem.count < 3000) o.chunk_bytes = one_of({0, 4, 6, 64, 500});
    if (c.problem.count >= 3000) o.chunk_bytes = one_of({0, 4096, 10000, 65536});
    if (o.how == pattern::bulk_synchronous && o.chunk_bytes > 0)
      o.chunk_bytes = std::max<std::int64_t>(o.chunk_bytes, c.problem.count / 64);
  }

  int ranks_;
  std::mt19937_64 random_;
};

/// Runs cases for every number of ranks.
void check_cases(const collective_entry& entry, std::uint64_t seed, int cases) {
  NEEDS_GPUS(2);
  for (int ranks = 1; ranks <= gpus(); ranks = ranks < 4 ? ranks + 1 : 2 * ranks) {
    untax::run_gpus(
        ranks,
        [&](world& w) {
          const stream s;
          case_maker maker(ranks, seed);
          for (int i = 0; i < cases; ++i) {
            const collective_case c = maker.make(entry);
            const std::string text =
                fmt::format("rank {} of {}, case {}: {}", w.rank(), ranks, i, c.text());
            SCOPED_TRACE(text);
            try {
              collective_trial trial(w, s, entry, c.problem, c.options, c.layout);
              for (int epoch = 0; epoch < 5; ++epoch) trial.launch();
              EXPECT_TRUE(s.done());
              w.check();
              EXPECT_EQ(trial.wrong(), 0U) << trial.explain();
            } catch (const untax::error& e) {
              // A trace is told of failures alone.
              throw untax::error(e.code(), fmt::format("{}\n{}", text, e.what()));
            }
          }
        },
        roomy_world());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(gpu_collectives, all_gather_is_right) {
  check_cases(untax::all_gather_entry(), 1, gpu_test::cases(60));
}
TEST(gpu_collectives, reduce_scatter_is_right) {
  check_cases(untax::reduce_scatter_entry(), 2, gpu_test::cases(60));
}
TEST(gpu_collectives, all_reduce_is_right) {
  check_cases(untax::all_reduce_entry(), 3, gpu_test::cases(120));
}
TEST(gpu_collectives, all_to_all_is_right) {
  check_cases(untax::all_to_all_entry(), 4, gpu_test::cases(60));
}
TEST(gpu_collectives, broadcast_is_right) {
  check_cases(untax::broadcast_entry(), 5, gpu_test::cases(60));
}

TEST(gpu_collectives, a_graph_of_five_is_right_a_thousand_times) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        const auto gather = untax::all_gather_entry();
        const auto reduce = untax::all_reduce_entry();
        const auto deal = untax::all_to_all_entry();
        collective_trial first(w, s, gather, {.count = 300001, .type = dtype::bf16},
                               {.wire = wire_kind::stores}, {});
        collective_trial second(w, s, reduce, {.count = 8192, .type = dtype::bf16},
                                {.wire = wire_kind::packets}, {});
        collective_trial third(w, s, deal, {.count = 20000, .type = dtype::f32, .uneven = true},
                               {.wire = wire_kind::bulk}, {});
        const collective_options direct{.wire = wire_kind::stores, .direct = true};
        collective_trial fourth(w, s, reduce, {.count = 200000, .type = dtype::bf16}, direct, {});
        collective_trial fifth(w, s, untax::reduce_scatter_entry(), {.count = 99999}, direct, {});
        // Kernels are loaded before anything is captured.
        for (collective_trial* trial : {&first, &second, &third, &fourth, &fifth})
          trial->launch_after_stall(1);
        EXPECT_TRUE(s.done());
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t replay = nullptr;
        ok(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeThreadLocal));
        first.launch_after_stall(60);
        second.launch_after_stall(30);
        third.launch_after_stall(30);
        fourth.launch_after_stall(30);
        fifth.launch_after_stall(30);
        ok(cudaStreamEndCapture(s.get(), &graph));
        ok(cudaGraphInstantiate(&replay, graph, 0));
        // A tool takes memory for every kernel that has not ended, and has little.
        const bool is_watched = !watched("").empty();
        for (int i = 0; i < 1000; ++i) {
          ok(cudaGraphLaunch(replay, s.get()));
          if (is_watched && i % 50 == 49) EXPECT_TRUE(s.done());
        }
        EXPECT_TRUE(s.done());
        w.check();
        for (const collective_trial* trial : {&first, &second, &third, &fourth, &fifth})
          EXPECT_EQ(trial->wrong(), 0U) << "rank " << w.rank() << ": " << trial->explain();
        ok(cudaGraphExecDestroy(replay));
        ok(cudaGraphDestroy(graph));
      },
      roomy_world());
}

TEST(gpu_collectives, direct_needs_symmetric_memory) {
  NEEDS_GPUS(2);
  const untax::error e = error_of([] {
    untax::run_gpus(
        2,
        [](world& w) {
          const std::vector<float> mine(500);
          std::vector<float> there(1000);
          untax::all_gather op(w, {.count = 1000, .type = dtype::f32},
                               {.wire = wire_kind::stores, .direct = true});
          op.run(mine, there);
        },
        gpu_world());
  });
  expect_error(e, untax::errc::not_symmetric, {"all_gather: out at", "world.allocate"});
}

TEST(gpu_collectives, refuse_impossible_problems) {
  NEEDS_GPUS(1);
  std::vector<world> alone = world::local_gpus(1, gpu_world());
  alone[0].use_device();
  std::vector<float> host(8);
  untax::all_reduce op(alone[0], {.count = 8, .type = dtype::f32});
  expect_error(error_of([&] { op.run(host, host); }), untax::errc::invalid_argument,
               {"rank 0: all_reduce: in lies at", "memory of the host"});
  expect_error(error_of([&] {
                 (void)untax::all_reduce(alone[0], {.count = 8, .type = dtype::f32},
                                         {.wire = wire_kind::stores, .workers = 2000});
               }),
               untax::errc::invalid_argument, {"2000 blocks", "this GPU holds"});
  expect_error(error_of([&] {
                 (void)untax::all_gather(
                     alone[0], {.count = 8},
                     {.how = pattern::bulk_synchronous, .wire = wire_kind::packets});
               }),
               untax::errc::invalid_argument, {"all_gather", "packets as fused_sequential"});
}

/// Objects that it leaves do not wait for peers, which wait for it. (On a shared GPU the driver
/// gives memory back when the kernels of all ranks there have ended.)
TEST(gpu_collectives, a_rank_that_throws_ends_the_waits_of_others_at_once) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  const auto begin = std::chrono::steady_clock::now();
  const untax::error e = error_of([&] {
    untax::run_gpus(
        2,
        [&](world& w) {
          const stream s;
          collective_trial trial(w, s, untax::all_reduce_entry(), {.count = 3000}, {}, {});
          if (w.rank() == 1) throw untax::error(untax::errc::internal, "rank 1 has had enough");
          trial.launch();
          EXPECT_TRUE(s.done());
          w.check();
        },
        roomy_world(20s));
  });
  expect_error(e, untax::errc::internal, {"rank 1 has had enough"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(gpu_collectives, a_rank_that_stays_away_is_named_and_cuda_stays_usable) {
  NEEDS_GPUS(2);
  for (const wire_kind wire : {wire_kind::packets, wire_kind::stores}) {
    const untax::error e = error_of([&] {
      untax::run_gpus(
          2,
          [&](world& w) {
            const stream s;
            collective_trial trial(w, s, untax::all_reduce_entry(), {.count = 3000}, {.wire = wire},
                                   {});
            if (w.rank() == 0) {
              trial.launch();
              EXPECT_TRUE(s.done()) << "the context is broken";
              w.check();
            }
            // The kernel's wait has to be the first to reach the limit.
            std::this_thread::sleep_for(300ms);
            w.barrier();
          },
          roomy_world(500ms));
    });
    expect_error(e, untax::errc::timeout, {"all_reduce acquire", "rank 1"});
    untax::run_gpus(
        2,
        [&](world& w) {
          const stream s;
          collective_trial trial(w, s, untax::all_reduce_entry(), {.count = 3000}, {.wire = wire},
                                 {});
          trial.launch();
          EXPECT_TRUE(s.done());
          w.check();
          EXPECT_EQ(trial.wrong(), 0U);
        },
        roomy_world());
  }
}

TEST(gpu_collectives, run_by_the_command_are_right) {
  NEEDS_GPUS(1);
  const int ranks = gpus();
  for (const collective_entry& entry : untax::collectives()) {
    for (const bool direct : {false, true}) {
      collective_options options;
      options.direct = direct;
      const untax::trial_subject what = subject_of(entry, {.count = 4099, .type = dtype::bf16},
                                                   options, untax::memory_kind::cuda);
      untax::world_options room = gpu_world(20s);
      room.heap_bytes = what.heap_bytes(ranks) + (std::size_t{1} << 20);
      untax::run_gpus(
          ranks,
          [&](world& w) {
            const auto trial = what.make(w, pattern::automatic, 5);
            for (std::uint64_t seed = 6; seed < 9; ++seed) {
              trial->refresh(seed);
              trial->poison_result();
              w.barrier();
              trial->run();
              EXPECT_LE(trial->relative_error(), what.tolerance)
                  << entry.name << (direct ? ", direct" : "") << ", rank " << w.rank();
              w.barrier();
            }
          },
          room);
    }
  }
}

}  // namespace
