// Objects that ranks drop at different times end together, once all ranks have dropped them.
#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include <untax/flow/interrupt.hpp>
#include <untax/world/launch.hpp>

#include "support.hpp"

namespace {

using untax::errc;
using untax::run_threads;
using untax::world;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

/// An object that notes its number when it is destroyed.
std::shared_ptr<void> noted(std::vector<std::uint64_t>& ended, std::uint64_t number) {
  return {nullptr, [&ended, number](void* /*none*/) { ended.push_back(number); }};
}

TEST(dropped, objects_end_in_order_when_the_last_rank_has_dropped_them) {
  run_threads(
      3,
      [](world& w) {
        std::vector<std::uint64_t> ended;
        for (std::uint64_t number = 1; number <= 4; ++number) ASSERT_EQ(w.next_object(), number);
        // Rank 0 drops 4 and 2 first; rank 2 keeps 4 for one barrier more.
        for (const std::uint64_t number : {4, 2}) {
          if (w.rank() == 0) w.drop(number, noted(ended, number));
        }
        w.barrier();
        EXPECT_EQ(ended.size(), 0U);
        if (w.rank() != 0) w.drop(2, noted(ended, 2));
        if (w.rank() == 1) w.drop(4, noted(ended, 4));
        w.drop(1, noted(ended, 1));
        EXPECT_EQ(ended.size(), 0U) << "a drop ends nothing";
        w.agree("a call", "that waits, too");
        EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2}));
        if (w.rank() == 2) w.drop(4, noted(ended, 4));
        w.barrier();
        EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2, 4}));
        w.barrier();
        EXPECT_EQ(ended.size(), 3U) << "3 is still in use";
      },
      small_world());
}

TEST(dropped, more_objects_than_fit_one_barrier_end_all_the_same) {
  auto random = world_test::random_numbers();
  const std::uint64_t seed = random();
  run_threads(
      3,
      [&](world& w) {
        constexpr std::uint64_t objects = 500;
        std::vector<std::uint64_t> ended;
        std::vector<std::uint64_t> order;
        for (std::uint64_t i = 0; i < objects; ++i) order.push_back(w.next_object());
        std::mt19937_64 mine(seed + static_cast<std::uint64_t>(w.rank()));
        std::shuffle(order.begin(), order.end(), mine);
        std::vector<std::uint64_t> ended_at_all;
        for (std::size_t next = 0; next < objects;) {
          const std::size_t end = std::min<std::size_t>(objects, next + mine() % 200);
          for (; next < end; ++next) w.drop(order[next], noted(ended, order[next]));
          w.agree("what has ended", std::to_string(ended.size()));
        }
        // The other ranks may need more barriers for theirs.
        for (int i = 0; i < 1000 && ended.size() < objects; ++i)
          w.agree("what has ended", std::to_string(ended.size()));
        EXPECT_EQ(std::set<std::uint64_t>(ended.begin(), ended.end()).size(), objects);
      },
      small_world());
}

TEST(dropped, a_destructor_may_be_collective_and_drop_another_object) {
  run_threads(
      2,
      [](world& w) {
        std::vector<std::uint64_t> ended;
        const std::uint64_t first = w.next_object();
        const std::uint64_t second = w.next_object();
        w.drop(first, std::shared_ptr<void>(nullptr, [&](void* /*none*/) {
                 w.drop(second, noted(ended, second));
                 w.barrier();
                 ended.push_back(first);
               }));
        w.barrier();
        EXPECT_EQ(ended, (std::vector<std::uint64_t>{second, first}));
      },
      small_world());
}

TEST(dropped, objects_that_other_ranks_still_use_end_with_the_world_without_a_meeting) {
  std::atomic<int> ended = 0;
  run_threads(
      2,
      [&](world& w) {
        const std::uint64_t number = w.next_object();
        if (w.rank() == 0) {
          w.drop(number,
                 std::shared_ptr<void>(nullptr, [&ended, &w = w.stable_view()](void* /*none*/) {
                   EXPECT_TRUE(w.unwinding());
                   ++ended;
                 }));
        }
        w.barrier();
        EXPECT_EQ(ended, 0);
        w.barrier();
      },
      small_world());
  EXPECT_EQ(ended, 1);
}

TEST(dropped, an_object_of_one_rank_ends_at_its_next_meeting_or_on_request) {
  run_threads(
      2,
      [](world& w) {
        std::vector<std::uint64_t> ended;
        if (w.rank() == 1) w.drop(0, noted(ended, 0));
        w.barrier();
        EXPECT_EQ(ended.size(), w.rank() == 1 ? 1U : 0U);
        w.drop(0, noted(ended, 0));
        w.end_own();
        EXPECT_EQ(ended.size(), w.rank() == 1 ? 2U : 1U);
      },
      small_world());
}

TEST(dropped, memory_that_all_ranks_have_dropped_is_reused_when_no_other_is_free) {
  run_threads(
      2,
      [](world& w) {
        const std::uint64_t number = w.next_object();
        const auto most = w.allocate<std::byte>(w.heap().largest_free() - 64, "most of it");
        const auto end = [&w, most](void* /*none*/) { w.free(most); };
        if (w.rank() == 0) {
          w.drop(number, std::shared_ptr<void>(nullptr, end));
          expect_error(error_of([&] { (void)w.allocate<int>(1, "one more"); }), errc::out_of_memory,
                       {"one more"});
        } else {
          expect_error(error_of([&] { (void)w.allocate<int>(1, "one more"); }), errc::out_of_memory,
                       {"one more"});
          w.drop(number, std::shared_ptr<void>(nullptr, end));
        }
        const auto more = w.allocate<int>(1, "one more");
        EXPECT_EQ(w.heap().offset_of(more.local()), 0);
      },
      small_world());
}

TEST(mapping, keeps_memory_where_it_is_when_the_world_has_ended) {
  std::shared_ptr<const void> kept;
  const int* value = nullptr;
  {
    auto views = world::threads(1, small_world());
    kept = views.front().mapping();
    const auto memory = views.front().allocate<int>(1, "a number");
    *memory.local() = 42;
    value = memory.local();
  }
  EXPECT_EQ(*value, 42);
}

std::atomic<std::thread::id> interrupted_thread;
std::atomic<bool> interrupted_now;

TEST(interrupt, ends_the_wait_of_its_thread_and_is_reported_to_peers) {
  interrupted_now = false;
  untax::set_interrupt([] {
    return interrupted_now && interrupted_thread.load() == std::this_thread::get_id() ? 1 : 0;
  });
  run_threads(
      3,
      [](world& w) {
        if (w.rank() == 1) {
          interrupted_thread = std::this_thread::get_id();
          interrupted_now = true;
        }
        const auto wait = [&] {
          if (w.rank() != 2) return w.barrier();
          while (!w.stopped()) std::this_thread::yield();  // it never comes
          w.check();
        };
        expect_error(error_of(wait), errc::aborted,
                     {"interrupted by a signal while it waited for rank "});
        ASSERT_TRUE(w.state().report());
        EXPECT_EQ(w.state().report()->suspect, 1);
      },
      small_world());
  untax::set_interrupt(nullptr);
}

}  // namespace
