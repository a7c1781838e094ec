// Worlds of GPUs and operators on them, as far as a build without CUDA comes.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/tile/program.hpp>
#include <untax/tile/row_program.hpp>
#include <untax/untax.hpp>

#include "engines/host/engine.hpp"
#include "engines/schedule/lanes.hpp"
#include "src/world/own_share.hpp"
#include "tests/errors.hpp"
#include "tests/pretended/kernels.hpp"

namespace {

using namespace untax;
using untax_test::error_of;
using untax_test::expect_error;

world_options small() {
  world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.wait_limit = std::chrono::seconds(20);
  return options;
}

TEST(pretended_gpus, are_a_world_in_device_memory) {
  const auto ranks = world::local_gpus(3, small());
  for (int rank = 0; rank < 3; ++rank) {
    const world& w = ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(w.memory(), memory_kind::cuda);
    EXPECT_EQ(w.kind(), "GPUs");
    EXPECT_EQ(w.device(), rank);
    EXPECT_EQ(w.ranks_per_gpu(), 1);
  }
  expect_error(error_of([] { (void)world::local_gpus(9, small()); }), errc::unsupported,
               {"a world of 9 GPUs", "8 are visible"});
}

/// Of a rank that is a process: its own, not that of its number, which counts within the world.
TEST(pretended_gpus, are_as_many_as_requested) {
  world_options options = small();
  options.memory = memory_kind::cuda;
  const auto alone = [&] { return world::from_exchange(0, 1, {}, options); };
  EXPECT_EQ(alone().device(), 0);
  options.device = 5;
  EXPECT_EQ(alone().device(), 5);
  EXPECT_EQ(world::local_gpus(2, options)[1].device(), 1) << "these are not processes";
  const auto trouble_of_rank_1_of_2 = [&] {
    return own_share::make({.rank = 1, .world_size = 2}, settings::of(options, environment()))
        .trouble.value();
  };
  expect_error(trouble_of_rank_1_of_2(), errc::unsupported, {"rank 1", "device 5"});
  for (const int none : {8, -1}) {
    options.device = none;
    const std::string said = fmt::format("option device is {}; 8 GPUs are visible", none);
    expect_error(error_of([&] { (void)alone(); }), errc::invalid_argument, {said});
    expect_error(trouble_of_rank_1_of_2(), errc::invalid_argument, {"rank 1", said});
  }
}

TEST(pretended_gpus, meet_and_give_memory_back) {
  run_gpus(
      2,
      [](world& w) {
        {
          const auto mine = w.allocate_owned_cleared<int>(100, "mine");
          *mine->at(1 - w.rank()) = 7 + w.rank();
          w.barrier();
          EXPECT_EQ(*mine->local(), 8 - w.rank());
        }
        w.barrier();
        EXPECT_EQ(w.heap().used(), 0U);
      },
      small());
}

world_options growing(std::size_t limit) {
  world_options options = small();
  options.heap_limit = limit;
  return options;
}

TEST(pretended_gpus, have_heaps_that_grow_when_they_are_full) {
  constexpr std::size_t step = symmetric_heap::growth_step;
  run_gpus(
      3,
      [](world& w) {
        const std::size_t first = w.heap().capacity();
        EXPECT_LT(first, std::size_t{2} << 20);
        const auto early = w.allocate<std::uint64_t>(1000, "early");
        *early.local() = 40 + static_cast<std::uint64_t>(w.rank());
        const auto large = w.allocate<std::byte>(3 * first, "large");
        EXPECT_EQ(w.heap().capacity(), first + step) << "by whole steps";
        // Addresses and distances are those of before.
        EXPECT_EQ(*early.local(), 40 + static_cast<std::uint64_t>(w.rank()));
        EXPECT_EQ(w.owner_of(large.local(), 3 * first), w.rank());
        EXPECT_EQ(large.at(1) - large.at(0), early.span());
        EXPECT_EQ(large.local()[3 * first - 1], std::byte{0}) << "it is cleared";
        w.barrier();
        large.at((w.rank() + 1) % 3)[3 * first - 1] = std::byte{7};
        w.barrier();
        EXPECT_EQ(large.local()[3 * first - 1], std::byte{7});
        w.barrier();
        // Memory that is free again counts, also where the heap ended.
        w.free(large);
        const auto larger = w.allocate<std::byte>(first + step - (std::size_t{64} << 10), "larger");
        EXPECT_EQ(w.heap().capacity(), first + step);
        const auto more = w.allocate<std::byte>(step, "more");
        EXPECT_EQ(w.heap().capacity(), first + 2 * step);
        EXPECT_EQ(w.heap().offset_of(more.local()) % 512, 0);
        w.free(larger);
        w.free(more);
        w.free(early);
        EXPECT_EQ(w.heap().used(), 0U);
        EXPECT_EQ(w.heap().largest_free(), w.heap().capacity()) << "one block";
      },
      growing(std::size_t{512} << 20));
}

TEST(pretended_gpus, use_memory_of_ended_operators_before_heaps_grow) {
  run_gpus(
      2,
      [](world& w) {
        const std::size_t first = w.heap().capacity();
        { const auto ended = w.allocate_owned<std::byte>(first / 2, "ended"); }
        EXPECT_GT(w.heap().retired(), 0U);
        (void)w.allocate<std::byte>(first / 4 * 3, "next");
        EXPECT_EQ(w.heap().capacity(), first);
      },
      growing(std::size_t{512} << 20));
}

TEST(pretended_gpus, have_heaps_that_grow_up_to_their_limit) {
  run_gpus(
      2,
      [](world& w) {
        constexpr std::size_t limit = std::size_t{5} << 20;
        // A whole step would be too much, but not what is needed.
        (void)w.allocate<std::byte>(limit - (std::size_t{64} << 10), "most");
        EXPECT_LE(w.heap().capacity(), limit);
        const auto e = error_of([&] { (void)w.allocate<std::byte>(limit, "more"); });
        expect_error(e, errc::out_of_memory,
                     {"no room for 5 MiB for \"more\" in a heap that may grow to 5 MiB",
                      "raise UNTAX_HEAP_LIMIT to 10M or more", "most"});
        w.barrier();  // the world goes on
      },
      growing(std::size_t{5} << 20));
}

TEST(pretended_gpus, all_ranks_report_a_rank_without_memory) {
  pretended::leave_memory(1, symmetric_heap::growth_step);
  run_gpus(
      3,
      [](world& w) {
        const std::size_t first = w.heap().capacity();
        (void)w.allocate<std::byte>(2 * first, "fits");
        const std::size_t now = w.heap().capacity();
        const auto e =
            error_of([&] { (void)w.allocate<std::byte>(symmetric_heap::growth_step, "too much"); });
        expect_error(e, errc::out_of_memory, {"rank 1: device 1 is full", "\"too much\"", "fits"});
        EXPECT_EQ(w.heap().capacity(), now) << "no rank has grown";
        w.barrier();
        if (w.rank() == 0) pretended::leave_all_memory();
        w.barrier();
        (void)w.allocate<std::byte>(symmetric_heap::growth_step, "at last");
      },
      growing(std::size_t{512} << 20));
  pretended::leave_all_memory();
}

TEST(pretended_gpus, are_refused_by_operators_of_the_host) {
  for (world& w : world::local_gpus(1, small())) {
    const schedule::lane_program nothing({});
    const auto refused = [&](const auto& make) {
      expect_error(
          error_of([&] { host::engine(w, make, host::engine_options{.operator_name = "op"}); }),
          errc::unsupported, {"op computes on the host", "GPU memory"});
    };
    refused(program(nothing));
    refused(row_program({1}, 1, [=](std::int64_t /*rows*/, auto&& use) { use(nothing); }));
  }
}

TEST(pretended_gpus, are_not_ended_by_a_forked_child) {
  auto ranks = std::optional(world::local_gpus(2, small()));
  const pid_t child = fork();
  if (child == 0) {
    ranks.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "it ended what the parent still has";
  EXPECT_EQ((*ranks)[0].memory(), memory_kind::cuda);
}

}  // namespace
