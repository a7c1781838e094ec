#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <untax/flow/wait_verbs.hpp>
#include <untax/rma/signal.hpp>
#include <untax/world/block.hpp>
#include <untax/world/launch.hpp>

#include "random_inputs.hpp"
#include "team.hpp"

namespace {

using rma_test::random_inputs;
using untax::block;
using untax::world;

untax::world_options small() {
  untax::world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  return options;
}

void pause_now_and_then(random_inputs& random) {
  const auto what = random.number(0, 19);
  if (what == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.number(0, 100)));
  if (what < 4) std::this_thread::yield();
}

TEST(signals, are_raised_and_never_lowered) {
  std::uint64_t counter = 0;
  const untax::lone_thread group;
  untax::signal(group, &counter, 5);
  EXPECT_EQ(counter, 5U);
  untax::signal(group, &counter, 5);
  untax::signal(group, &counter, 3);
  EXPECT_EQ(counter, 5U) << "a signal that comes twice or late does no harm";
  untax::signal(group, &counter, 6);
  EXPECT_EQ(counter, 6U);
  untax::signal_add(group, &counter, 10);
  EXPECT_EQ(counter, 16U);
}

TEST(signals, of_a_team_are_added_once) {
  std::uint64_t counter = 0;
  rma_test::run_team(
      3, [&](const rma_test::team_member& member) { untax::signal_add(member, &counter, 10); });
  EXPECT_EQ(counter, 10U);
}

TEST(signals, a_message_is_complete_when_its_signal_is_seen) {
  // Plain payload in two rooms in turn: ThreadSanitizer reports any verb that orders too little.
  random_inputs seeds;
  SCOPED_TRACE(seeds.trace());
  const auto seed = static_cast<std::uint32_t>(seeds.number(0, 1'000'000));
  untax::run_threads(
      2,
      [&](world& w) {
        constexpr std::int64_t most = 300;
        random_inputs random(seed + static_cast<std::uint32_t>(w.rank()));
        block here(w);
        const auto room = w.allocate_cleared<std::int64_t>(2 * most, "room");
        const auto ready = w.allocate_cleared<std::uint64_t>(1, "ready");
        const auto taken = w.allocate_cleared<std::uint64_t>(1, "taken");
        const int peer = 1 - w.rank();
        for (std::uint64_t e = 1; e <= 400; ++e) {
          const auto value = static_cast<std::int64_t>(e * 1000);
          const std::size_t set = e % 2 * most;
          const auto count = static_cast<std::int64_t>(1 + e * 37 % most);
          pause_now_and_then(random);
          if (w.rank() == 0) {
            std::vector<std::int64_t> message(static_cast<std::size_t>(count), value);
            if (e > 2)
              untax::wait_until(here, taken.local(), e - 2, {.name = "taken", .peer = peer});
            untax::put_with_signal(here, room.at(peer, set), message.data(), count, ready.at(peer),
                                   e);
          } else {
            untax::wait_until(here, ready.local(), e, {.name = "ready", .peer = peer});
            for (std::int64_t i = 0; i < count; ++i)
              ASSERT_EQ(*room.local(set + static_cast<std::size_t>(i)), value);
            untax::signal(here, taken.at(peer), e);
          }
        }
        w.barrier();
      },
      small());
}

TEST(signals, order_passes_through_a_third_rank) {
  // 0 writes to 2 and signals 1; 1 signals 2; 2 reads what 0 wrote.
  untax::run_threads(
      3,
      [&](world& w) {
        block here(w);
        const auto data = w.allocate_cleared<int>(64, "data");
        const auto signals = w.allocate_cleared<std::uint64_t>(1, "signals");
        for (int e = 1; e <= 200; ++e) {
          const auto epoch = static_cast<std::uint64_t>(e);
          if (w.rank() == 0) {
            const std::vector<int> message(64, e);
            untax::put(here, data.at(2), message.data(), 64);
          }
          if (w.rank() != 0)
            untax::wait_until(here, signals.local(), epoch,
                              {.name = "relay", .peer = w.rank() - 1});
          if (w.rank() == 2) {
            for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(*data.local(i), e);
          }
          // The way back to rank 0 says that the data may be overwritten.
          untax::signal(here, signals.at((w.rank() + 1) % 3), epoch);
          if (w.rank() == 0)
            untax::wait_until(here, signals.local(), epoch, {.name = "relay", .peer = 2});
        }
      },
      small());
}

TEST(signals, of_many_writers_are_counted) {
  constexpr int ranks = 4;
  untax::run_threads(
      ranks,
      [&](world& w) {
        block here(w);
        const auto data = w.allocate_cleared<int>(ranks, "data");
        const auto arrived = w.allocate_cleared<std::uint64_t>(1, "arrived");
        for (int e = 1; e <= 100; ++e) {
          const auto mine = static_cast<std::size_t>(w.rank());
          untax::put(here, data.at(0, mine), &e, 1);
          untax::signal_add(here, arrived.at(0), 1);
          if (w.rank() == 0) {
            untax::wait_until(here, arrived.local(), static_cast<std::uint64_t>(e) * ranks,
                              {.name = "count"});
            for (std::size_t r = 0; r < ranks; ++r) ASSERT_EQ(*data.local(r), e);
          }
          w.barrier();
        }
      },
      small());
}

TEST(signals, a_tile_is_put_within_its_bounds) {
  untax::run_threads(
      2,
      [&](world& w) {
        block here(w);
        constexpr std::int64_t rows = 7;
        constexpr std::int64_t cols = 5;
        const auto field = w.allocate_cleared<float>(rows * cols, "field");
        const auto ready = w.allocate_cleared<std::uint64_t>(1, "ready");
        if (w.rank() == 0) {
          const std::vector<float> mine(rows * cols, 3.0F);
          const untax::tile_view<float> there(field.at(1), rows, cols);
          untax::put_with_signal(here, there,
                                 untax::tile_view<const float>(mine.data(), rows, cols), {6, 4},
                                 ready.at(1), 1);
        } else {
          untax::wait_until(here, ready.local(), 1, {.name = "tile", .peer = 0});
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < cols; ++c) {
              ASSERT_EQ(*field.local(static_cast<std::size_t>(r * cols + c)),
                        r < 6 && c < 4 ? 3.0F : 0.0F);
            }
          }
        }
        w.barrier();
      },
      small());
}

TEST(signals, quiet_lets_another_thread_of_the_rank_signal) {
  untax::run_threads(
      2,
      [&](world& w) {
        const auto data = w.allocate_cleared<int>(1, "data");
        const auto ready = w.allocate_cleared<std::uint64_t>(1, "ready");
        if (w.rank() == 0) {
          std::thread writer([&] {
            const int value = 11;
            const untax::lone_thread group;
            untax::put(group, data.at(1), &value, 1);
            untax::fence(group);
            untax::quiet(group);
          });
          writer.join();
          untax::signal(untax::lone_thread(), ready.at(1), 1);
        } else {
          block here(w);
          untax::wait_until(here, ready.local(), 1, {.name = "data", .peer = 0});
          EXPECT_EQ(*data.local(), 11);
        }
      },
      small());
}

}  // namespace
