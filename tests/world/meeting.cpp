// Barrier and agreement: how the ranks meet, and what they compare when they do.
#include <atomic>
#include <thread>

#include <untax/world/launch.hpp>

#include "support.hpp"

namespace {

using untax::errc;
using untax::run_threads;
using untax::world;
using namespace std::chrono_literals;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

/// The errors of all ranks that `body` ends with.
std::vector<untax::error> errors_of_all(int ranks, const std::function<void(world&)>& body,
                                        std::chrono::milliseconds limit = 60s) {
  std::vector<untax::error> errors(static_cast<std::size_t>(ranks),
                                   {errc::internal, "nothing was thrown"});
  std::vector<std::jthread> threads;
  for (world& view : world::threads(ranks, small_world(limit))) {
    threads.emplace_back([&errors, &body, mine = std::move(view)]() mutable {
      world w = std::move(mine);
      try {
        body(w);
        // Stay until the others have noticed what went wrong, so that this rank is not the one that
        // is lost.
        while (!w.stopped()) std::this_thread::sleep_for(1ms);
        w.check();
      } catch (const untax::error& e) {
        errors[static_cast<std::size_t>(w.rank())] = e;
      }
    });
  }
  threads.clear();
  return errors;
}

TEST(barrier, orders_plain_data_between_any_ranks) {
  auto random = world_test::random_numbers();
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const std::uint64_t salt = random();
    run_threads(
        ranks,
        [&](world& w) {
          const auto data = w.allocate<std::uint64_t>(1, "data");
          for (std::uint64_t round = 1; round <= 20; ++round) {
            *data.local() = salt + round * static_cast<std::uint64_t>(w.rank() + 1);
            w.barrier();
            for (int peer = 0; peer < w.size(); ++peer) {
              ASSERT_EQ(*data.at(peer), salt + round * static_cast<std::uint64_t>(peer + 1));
            }
            w.barrier();
          }
        },
        small_world());
  }
}

TEST(barrier, does_not_open_before_the_last_rank_has_come) {
  std::atomic<int> entered{0};
  run_threads(
      4,
      [&](world& w) {
        for (int round = 1; round <= 10; ++round) {
          if (w.rank() == round % 4) std::this_thread::sleep_for(5ms);
          ++entered;
          w.barrier();
          EXPECT_GE(entered, 4 * round);
          w.barrier();
        }
      },
      small_world());
}

TEST(agreement, ranks_that_agree_go_on) {
  run_threads(
      5,
      [](world& w) {
        // Longer than the ledger, with ranks that drift apart between the meetings.
        for (int i = 0; i < 200; ++i) {
          const auto a = w.allocate<int>(static_cast<std::size_t>(i), "a");
          w.free(a);
          if (i % 50 == 0) w.agree("op", "m=" + std::to_string(i));
        }
        w.barrier();
      },
      small_world());
}

TEST(agreement, a_different_description_is_an_error_with_both_sides_on_every_rank) {
  for (int ranks : {2, 3, 5}) {
    const auto errors = errors_of_all(
        ranks, [](world& w) { w.agree("all_gather_gemm", w.rank() == 1 ? "m=65" : "m=64"); });
    for (int rank = 0; rank < ranks; ++rank) {
      expect_error(errors[static_cast<std::size_t>(rank)], errc::disagreement,
                   {"rank " + std::to_string(rank) + ": ", "rank 1: all_gather_gemm: m=65",
                    ": all_gather_gemm: m=64"});
    }
  }
}

TEST(agreement, a_different_allocation_is_found_without_waiting_or_at_the_next_barrier) {
  const auto errors = errors_of_all(3, [](world& w) {
    (void)w.allocate<std::byte>(100, "same");
    (void)w.allocate<std::byte>(w.rank() == 2 ? 200 : 100, w.rank() == 2 ? "outbox" : "inbox");
    w.barrier();
  });
  for (const auto& e : errors) {
    expect_error(e, errc::disagreement,
                 {"number 2", "rank 2: allocate 200 bytes for \"outbox\"",
                  ": allocate 100 bytes for \"inbox\""});
  }
}

TEST(agreement, a_missing_call_is_found_at_the_next_barrier) {
  const auto errors = errors_of_all(2, [](world& w) {
    if (w.rank() == 0) (void)w.allocate<std::byte>(100, "extra");
    w.barrier();
  });
  for (const auto& e : errors) {
    expect_error(e, errc::disagreement,
                 {"rank 0: allocate 100 bytes for \"extra\"", "rank 1: barrier"});
  }
}

TEST(agreement, a_barrier_is_not_an_operator) {
  const auto errors = errors_of_all(2, [](world& w) {
    if (w.rank() == 0) {
      w.barrier();
    } else {
      w.agree("gemm_reduce_scatter", "m=1");
    }
  });
  for (const auto& e : errors)
    expect_error(e, errc::disagreement, {"rank 0: barrier", "rank 1: gemm_reduce_scatter: m=1"});
}

TEST(agreement, a_difference_long_ago_is_still_found) {
  const auto errors = errors_of_all(2, [](world& w) {
    // Rank 1 looks only when rank 0 has overwritten the entry that differs.
    const untax::control& state = w.state();
    if (w.rank() == 1) {
      while (state.posted(0) < 100) std::this_thread::sleep_for(1ms);
    }
    for (int i = 0; i < 100; ++i) {
      w.free(w.allocate<int>(i == 3 ? static_cast<std::size_t>(w.rank()) + 1 : 1, "a"));
    }
    w.barrier();
  });
  for (const auto& e : errors) expect_error(e, errc::disagreement, {"make different calls"});
}

TEST(agreement, a_rank_that_never_comes_is_named) {
  const auto errors = errors_of_all(
      3,
      [](world& w) {
        if (w.rank() != 2) w.agree("my_op", "k=3");
      },
      1500ms);
  int reporters = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto& e = errors[static_cast<std::size_t>(rank)];
    EXPECT_NE(std::string(e.what()).find("rank 2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("world agree"), std::string::npos) << e.what();
    reporters += e.code() == errc::timeout ? 1 : 0;
    EXPECT_TRUE(e.code() == errc::timeout || e.code() == errc::aborted) << e.what();
  }
  EXPECT_EQ(reporters, 1);
}

}  // namespace
