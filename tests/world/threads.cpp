#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include <untax/memory/host_memory.hpp>
#include <untax/world/block.hpp>
#include <untax/world/launch.hpp>

#include "support.hpp"

namespace {

using untax::errc;
using untax::host_memory;
using untax::run_threads;
using untax::verb;
using untax::wait_outcome;
using untax::world;
using namespace std::chrono_literals;
using world_test::error_of;
using world_test::expect_error;
using world_test::small_world;

TEST(world, of_threads_knows_its_rank_size_and_kind) {
  const auto views = world::threads(3, small_world(7s));
  ASSERT_EQ(views.size(), 3U);
  for (int rank = 0; rank < 3; ++rank) {
    const world& w = views[static_cast<std::size_t>(rank)];
    EXPECT_EQ(w.rank(), rank);
    EXPECT_EQ(w.size(), 3);
    EXPECT_EQ(w.kind(), "threads");
    EXPECT_EQ(w.wait_limit(), 7s);
    EXPECT_TRUE(w.reachable(2));
    EXPECT_FALSE(w.reachable(3));
  }
  EXPECT_EQ(world::threads(1, small_world()).front().kind(), "alone");
}

TEST(world, of_a_process_without_a_launcher_has_one_rank) {
  untax::world_options options = small_world(7s);
  options.memory = untax::memory_kind::host;
  world w =
      world::from_environment(options, untax::environment(std::map<std::string, std::string>{}));
  EXPECT_EQ(w.size(), 1);
  EXPECT_EQ(w.rank(), 0);
  w.barrier();
}

TEST(world, refuses_impossible_sizes) {
  for (const int ranks : {0, -1, 65}) {
    expect_error(error_of([&] { (void)world::threads(ranks); }), errc::invalid_argument,
                 {std::to_string(ranks), "1 to 64"});
  }
  EXPECT_EQ(world::threads(64, small_world()).size(), 64U);
}

TEST(world, passes_data_around_a_ring) {
  auto random = world_test::random_numbers();
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const std::uint64_t start = random();
    run_threads(
        ranks,
        [&](world& w) {
          const auto token = w.allocate_cleared<std::uint64_t>(1, "token");
          const auto arrived = w.allocate_cleared<std::uint64_t>(1, "arrived");
          untax::watch guard = w.make_watch(0);
          const int next = (w.rank() + 1) % w.size();
          const int before = (w.rank() + w.size() - 1) % w.size();
          for (std::uint64_t lap = 1; lap <= 10; ++lap) {
            if (w.rank() > 0 || lap > 1) {
              const std::uint64_t expected = w.rank() > 0 ? lap : lap - 1;
              ASSERT_EQ(
                  untax::wait_until<host_memory>(
                      *arrived.local(), {"ring", verb::wait_until, before, 0, expected}, guard),
                  wait_outcome::ok);
            } else {
              *token.local() = start;
            }
            *token.at(next) = *token.local() + 1;
            host_memory::raise_release(*arrived.at(next), lap);
          }
          w.barrier();
          if (w.rank() == 0) {
            EXPECT_EQ(*token.local(), start + 10 * static_cast<std::uint64_t>(w.size()));
          }
        },
        small_world());
  }
}

TEST(world, guards_of_ended_operators_are_checked_before_ranks_meet) {
  auto ranks = world::threads(2, small_world(300ms));
  {
    const auto broken = ranks[0].allocate_owned<std::byte>(300, "the culprit");
    *broken->local(300) ^= std::byte{1};
  }
  // A rank in the barrier would wait for rank 1 in vain.
  expect_error(error_of([&] { ranks[0].barrier(); }), errc::internal, {"\"the culprit\""});
}

TEST(world, impossible_allocations_cause_no_meeting) {
  auto ranks = world::threads(2, small_world(300ms));
  { const auto ended = ranks[0].allocate_owned<double>(100, "ended"); }
  const std::size_t capacity = ranks[0].heap().capacity() / sizeof(double);
  // Rank 1 does not come, so a rank that meets would wait in vain.
  for (const std::size_t count :
       {capacity + 1, 2 * capacity, std::numeric_limits<std::size_t>::max() / 8 + 2})
    EXPECT_EQ(error_of([&] { (void)ranks[0].allocate<double>(count, "more"); }).code(),
              errc::out_of_memory);
  EXPECT_EQ(error_of([&] { (void)ranks[0].allocate<double>(capacity, "all"); }).code(),
            errc::timeout);
}

TEST(world, blocks_know_their_rank) {
  const auto ranks = world::threads(3, small_world());
  for (const world& w : ranks) EXPECT_EQ(untax::block(w).rank(), w.rank());
}

TEST(world, cleared_memory_is_clear_even_where_something_was_before) {
  run_threads(
      3,
      [](world& w) {
        for (int round = 0; round < 5; ++round) {
          const auto a = w.allocate_cleared<std::uint64_t>(100, "a");
          for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(*a.local(i), 0U);
          w.barrier();
          const int next = (w.rank() + 1) % w.size();
          for (std::size_t i = 0; i < a.size(); ++i) *a.at(next, i) = ~std::uint64_t{0};
          w.free(a);
        }
      },
      small_world());
}

TEST(world, translates_and_names_owners) {
  auto views = world::threads(2, small_world());
  const auto a = views[0].allocate<float>(8, "a");
  EXPECT_EQ(views[0].translate(a.local(3), 1), a.at(1, 3));
  EXPECT_EQ(views[0].owner_of(a.at(1), a.size_bytes()), 1);
  const float elsewhere = 0;
  EXPECT_EQ(views[0].owner_of(&elsewhere), -1);
  EXPECT_EQ(error_of([&] { (void)views[0].translate(&elsewhere, 1); }).code(), errc::not_symmetric);
}

TEST(run_threads, throws_the_cause_and_not_its_echo) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    const auto begin = std::chrono::steady_clock::now();
    const auto e = error_of([&] {
      run_threads(
          4,
          [&](world& w) {
            w.barrier();
            if (w.rank() == culprit) throw untax::error(errc::unsupported, "this is the cause");
            w.barrier();
          },
          small_world(60s));
    });
    expect_error(e, errc::unsupported, {"this is the cause"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  }
}

TEST(run_threads, peers_learn_of_thrown_objects_that_are_no_exceptions) {
  const auto body = [](world& w) {
    if (w.rank() == 1) throw 42;  // NOLINT(hicpp-exception-baseclass)
    expect_error(error_of([&] { w.barrier(); }), errc::aborted,
                 {"an exception left the body of the rank"});
  };
  EXPECT_ANY_THROW(untax::run_threads(2, body, small_world()));
}

TEST(run_threads, peers_of_a_failed_rank_learn_its_text) {
  std::string heard;
  EXPECT_THROW(run_threads(
                   2,
                   [&](world& w) {
                     if (w.rank() == 0) throw std::runtime_error("out of luck");
                     try {
                       w.barrier();
                     } catch (const untax::error& e) {
                       EXPECT_EQ(e.code(), errc::aborted);
                       heard = e.what();
                       throw;
                     }
                   },
                   small_world()),
               std::runtime_error);
  EXPECT_EQ(heard, "rank 1: barrier stopped because rank 0 reported: out of luck");
}

TEST(run_threads, peers_of_a_rank_that_left_early_name_it) {
  const auto e = error_of([] {
    run_threads(
        3,
        [](world& w) {
          if (w.rank() != 1) w.barrier();
        },
        small_world());
  });
  expect_error(e, errc::peer_lost,
               {"rank 1 finished without signalling", "world barrier, needs 1, has 0"});
}

TEST(world, destroyed_by_an_exception_has_failed) {
  auto views = world::threads(2, small_world());
  const untax::control state = views[0].state();
  try {
    const world mine = std::move(views[1]);
    throw std::runtime_error("leaves");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(state.status(1), untax::rank_status::failed);
  }
  expect_error(error_of([&] { views[0].barrier(); }), errc::peer_lost, {"rank 1 failed"});
}

TEST(world, can_be_stopped_by_any_rank) {
  auto views = world::threads(2, small_world());
  views[0].check();
  views[1].fail(errc::out_of_memory, "rank 1: no room");
  views[0].fail(errc::internal, "too late");
  EXPECT_TRUE(views[0].stopped());
  expect_error(error_of([&] { views[0].check(); }), errc::aborted,
               {"rank 0: the world stopped because rank 1 reported: no room"});
  expect_error(error_of([&] { views[1].check(); }), errc::out_of_memory, {"rank 1: no room"});
}

TEST(world, a_stalled_rank_is_the_suspect_at_every_rank) {
  std::vector<std::string> texts(3);
  const auto e = error_of([&] {
    run_threads(
        3,
        [&](world& w) {
          if (w.rank() == 2) {
            while (!w.stopped()) std::this_thread::sleep_for(1ms);
            return;
          }
          try {
            w.barrier();
          } catch (const untax::error& failure) {
            texts[static_cast<std::size_t>(w.rank())] = failure.what();
            throw;
          }
        },
        small_world(1500ms));
  });
  expect_error(e, errc::timeout, {"1500 ms", "Suspect: rank 2 is running and waits for nobody"});
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_NE(texts[static_cast<std::size_t>(rank)].find("Suspect: rank 2"), std::string::npos);
  }
}

TEST(world, out_of_memory_comes_at_every_rank) {
  const auto e = error_of([] {
    run_threads(
        2, [](world& w) { (void)w.allocate<float>(std::size_t{1} << 20U, "field"); },
        small_world());
  });
  expect_error(e, errc::out_of_memory, {"\"field\"", "UNTAX_HEAP_BYTES"});
}

TEST(world, stopped_by_a_rank_that_ends_normally_is_an_error) {
  expect_error(error_of([] {
                 run_threads(
                     2,
                     [](world& w) {
                       if (w.rank() == 0) return w.fail(errc::aborted, "enough");
                       w.barrier();
                     },
                     small_world());
               }),
               errc::aborted, {"rank 1", "rank 0 reported: enough"});
}

}  // namespace
