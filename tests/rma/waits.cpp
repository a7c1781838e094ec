#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/rma/signal.hpp>
#include <untax/world/block.hpp>
#include <untax/world/launch.hpp>

namespace {

using untax::block;
using untax::errc;
using untax::world;
using namespace std::chrono_literals;

untax::world_options limited(std::chrono::milliseconds limit) {
  untax::world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.wait_limit = limit;
  return options;
}

/// The error that `run_threads` throws for `body`.
template <class Body>
untax::error failure_of(int ranks, std::chrono::milliseconds limit, const Body& body) {
  try {
    untax::run_threads(ranks, body, limited(limit));
  } catch (const untax::error& e) {
    return e;
  }
  return {errc::internal, "it did not fail"};
}

void expect_text(const untax::error& e, const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << "\n" << e.what();
}

TEST(waits, end_at_once_when_the_signal_is_there) {
  untax::run_threads(
      1,
      [](world& w) {
        block here(w);
        std::uint64_t counter = 7;
        untax::wait_until(here, &counter, 0);
        untax::wait_until(here, &counter, 7);
        EXPECT_EQ(untax::try_wait_until(here, &counter, 6), untax::wait_outcome::ok);
      },
      limited(1ms));
}

TEST(waits, that_take_too_long_name_site_peer_and_values) {
  const auto begin = std::chrono::steady_clock::now();
  const auto e = failure_of(2, 200ms, [](world& w) {
    block here(w);
    const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
    if (w.rank() == 1) {
      untax::signal(here, counter.local(), 3);
      untax::wait_until(here, counter.local(), 4,
                        {.name = "halo from below", .peer = 0, .room = 5});
    }
    // Rank 0 lives on and waits too, so that it is slow and not lost. It begins when the other's
    // wait is on record (workers' records follow the rank's own), so that any report shows it.
    while (!w.state().wait_at(1, 1) && !w.stopped()) std::this_thread::yield();
    untax::wait_until(here, counter.local(), 9, {.name = "halo from above", .peer = 1});
  });
  const auto taken = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(e.code(), errc::timeout) << e.what();
  expect_text(e, {"halo from below wait_until", "room 5", "needs 4", "has 3", "rank 0", "rank 1",
                  "200 ms"});
  EXPECT_GE(taken, 200ms);
  EXPECT_LT(taken, 20s);
}

TEST(waits, for_a_rank_that_has_finished_name_it) {
  const auto e = failure_of(2, 60s, [](world& w) {
    block here(w);
    const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
    if (w.rank() == 1) untax::wait_until(here, counter.local(), 1, {.name = "gift", .peer = 0});
  });
  EXPECT_EQ(e.code(), errc::peer_lost) << e.what();
  expect_text(e, {"rank 0 finished", "gift", "needs 1", "has 0"});
}

TEST(waits, end_when_another_rank_fails) {
  const auto begin = std::chrono::steady_clock::now();
  untax::wait_outcome outcome = untax::wait_outcome::ok;
  const auto e = failure_of(2, 60s, [&](world& w) {
    block here(w);
    const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
    if (w.rank() == 0) throw untax::error(errc::unsupported, "no such thing");
    outcome = untax::try_wait_until(here, counter.local(), 1, {.name = "gift"});
  });
  EXPECT_EQ(e.code(), errc::unsupported) << e.what();
  EXPECT_NE(outcome, untax::wait_outcome::ok);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST(waits, refuse_an_invalid_counter) {
  untax::run_threads(
      1,
      [](world& w) {
        block here(w);
        EXPECT_THROW(untax::wait_until(here, nullptr, 1), untax::error);
        alignas(8) unsigned char bytes[16] = {};
        EXPECT_THROW(untax::wait_until(here, reinterpret_cast<std::uint64_t*>(bytes + 4), 1),
                     untax::error);
      },
      limited(100ms));
}

}  // namespace
