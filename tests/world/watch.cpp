#include <untax/flow/watch.hpp>

#include <atomic>
#include <thread>

#include <untax/memory/host_memory.hpp>

#include "src/world/deadline.hpp"
#include "support.hpp"

namespace {

using untax::errc;
using untax::host_memory;
using untax::rank_status;
using untax::verb;
using untax::wait_outcome;
using untax::wait_site;
using untax::watch;
using namespace std::chrono_literals;
using world_test::lone_control;

constexpr wait_site site{"all_gather_gemm", verb::acquire, 1, 7, 4};

/// A liveness that a test decides.
class staged_liveness final : public untax::liveness {
 public:
  [[nodiscard]] bool alive(int rank) const noexcept override { return rank != dead.load(); }
  [[nodiscard]] bool halted(int /*rank*/) const noexcept override { return false; }
  std::atomic<int> dead{-1};
};

wait_outcome wait_for(std::uint64_t& counter, watch& guard, const wait_site& where = site) {
  return untax::wait_until<host_memory>(counter, where, guard);
}

TEST(watch, a_signal_ends_the_wait_and_clears_the_record) {
  const lone_control c(2);
  std::uint64_t counter = 3;
  bool recorded = false;
  std::jthread signaller([&] {
    while (!c.view.wait_at(0, 2)) std::this_thread::sleep_for(1ms);
    recorded = true;
    host_memory::raise_release(counter, 4);
  });
  watch guard(c.view, 0, 2, 60s);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::ok);
  signaller.join();
  EXPECT_TRUE(recorded);
  EXPECT_FALSE(c.view.wait_at(0, 2));
  EXPECT_FALSE(c.view.stopped());
}

TEST(watch, the_limit_stops_the_world_and_names_suspect_room_and_values) {
  const lone_control c(2);
  std::uint64_t counter = 3;
  watch guard(c.view, 0, 2, 100ms);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
  const auto report = c.view.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->code, errc::timeout);
  EXPECT_EQ(report->reporter, 0);
  EXPECT_EQ(report->suspect, 1);
  EXPECT_EQ(report->text.find("waited 100 ms for rank 1: all_gather_gemm acquire, room 7, needs 4, "
                              "has 3. Suspect: rank "
                              "1 is running and waits for nobody\n"),
            0U)
      << report->text;
}

TEST(watch, waits_end_soon_after_the_world_was_stopped) {
  const lone_control c(2);
  std::uint64_t counter = 0;
  std::chrono::steady_clock::time_point stopped;
  std::jthread stopper([&] {
    while (!c.view.wait_at(0, 0)) std::this_thread::sleep_for(1ms);
    stopped = std::chrono::steady_clock::now();
    c.view.stop({1, -1, errc::internal, "test"});
  });
  watch guard(c.view, 0, 0, 0ms);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::aborted);
  const auto taken = std::chrono::steady_clock::now() - stopped;
  stopper.join();
  EXPECT_LT(taken, 20s);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::aborted) << "a later wait ends as well";
}

TEST(watch, a_limit_of_zero_waits_for_ever) {
  const lone_control c(2);
  std::uint64_t counter = 0;
  std::jthread signaller([&] {
    std::this_thread::sleep_for(300ms);
    host_memory::raise_release(counter, 4);
  });
  watch guard(c.view, 0, 0, 0ms);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::ok);
}

TEST(watch, the_peer_that_finished_is_the_suspect) {
  const lone_control c(3);
  std::uint64_t counter = 3;
  c.view.set_status(2, rank_status::finished);  // no wait is for this counter
  std::jthread peer([&] {
    std::this_thread::sleep_for(50ms);
    c.view.set_status(1, rank_status::finished);
  });
  watch guard(c.view, 0, 0, 60s);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::peer_lost);
  const auto report = c.view.report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->code, errc::peer_lost);
  EXPECT_EQ(report->suspect, 1);
  EXPECT_EQ(
      report->text.find(
          "rank 1 finished without signalling, while rank 0 waited for rank 1: all_gather_gemm "
          "acquire, room 7, needs 4, has 3\n"),
      0U)
      << report->text;
}

TEST(watch, any_rank_that_failed_ends_the_wait) {
  const lone_control c(3);
  std::uint64_t counter = 3;
  c.view.set_status(2, rank_status::failed);
  watch guard(c.view, 0, 0, 60s);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::peer_lost);
  EXPECT_EQ(c.view.report()->suspect, 2);
  EXPECT_EQ(c.view.report()->text.find("rank 2 failed without signalling"), 0U)
      << c.view.report()->text;
}

TEST(watch, a_dead_process_ends_the_wait_unless_it_had_finished) {
  staged_liveness alive;
  const lone_control c(3);
  std::uint64_t counter = 3;
  c.view.set_status(2, rank_status::finished);
  alive.dead = 2;
  std::jthread killer([&] {
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(c.view.stopped()) << "rank 2 had finished";
    alive.dead = 1;
  });
  watch guard(c.view, 0, 0, 60s, &alive);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::peer_lost);
  EXPECT_EQ(c.view.report()->suspect, 1);
  EXPECT_EQ(c.view.report()->text.find("rank 1 is gone (its process ended)"), 0U)
      << c.view.report()->text;
}

TEST(watch, a_signal_raised_just_before_the_end_counts) {
  for (int round = 0; round < 200; ++round) {
    const lone_control c(2);
    std::uint64_t counter = 0;
    std::jthread peer([&] {
      while (!c.view.wait_at(0, 0)) std::this_thread::yield();
      host_memory::raise_release(counter, 4);
      c.view.set_status(1, rank_status::finished);
    });
    watch guard(c.view, 0, 0, 60s);
    ASSERT_EQ(wait_for(counter, guard), wait_outcome::ok);
  }
}

TEST(watch, one_look_at_an_ended_peer_is_not_enough) {
  const lone_control c(2);
  c.view.set_status(1, rank_status::finished);
  watch guard(c.view, 0, 0, 60s);
  EXPECT_EQ(guard.look(site, 3), wait_outcome::ok);
  EXPECT_EQ(guard.look(site, 3), wait_outcome::peer_lost);
}

TEST(watch, gives_up_on_a_reporter_that_never_writes_its_report) {
  // The claim is taken, but the rank that took it died before it could raise the flag.
  constexpr int ranks = 2;
  std::vector<std::uint64_t> words((untax::control::bytes(ranks) + 7) / 8);
  auto* block = reinterpret_cast<untax::control_block*>(words.data());
  block->stop.claim = 2;
  const untax::control view(reinterpret_cast<std::byte*>(words.data()), ranks);
  view.set_status(0, rank_status::running);
  view.set_status(1, rank_status::failed);
  std::uint64_t counter = 0;
  watch guard(view, 0, 0, 60s);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::aborted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  world_test::expect_error(
      world_test::error_of([&] { untax::throw_failure(view, 0, wait_outcome::aborted, "op"); }),
      errc::aborted, {"rank 0", "op", "before it gave the reason"});
}

// The rank that stops the world writes the reason, and may be killed before it does: others wait a
// second for it.
TEST(watch, a_claim_without_a_report_ends_the_wait) {
  const world_test::lone_control c(2);
  c.block().stop.claim = 2;
  std::uint64_t counter = 0;
  watch guard(c.view, 0, 0, 1ms);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::aborted);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s) << "it gave the other no time";
  EXPECT_FALSE(c.view.stopped());
}

TEST(watch, a_claim_with_a_report_ends_the_wait) {
  const world_test::lone_control c(2);
  c.block().stop.claim = 2;
  std::uint64_t counter = 0;
  std::jthread winner([&] {
    while (!c.view.wait_at(0, 0)) std::this_thread::sleep_for(1ms);
    std::atomic_ref(c.block().stop.flag).store(1);
  });
  watch guard(c.view, 0, 0, 1ms);
  EXPECT_EQ(wait_for(counter, guard), wait_outcome::aborted);
}

TEST(deadlines, are_milliseconds_for_poll) {
  EXPECT_EQ(untax::deadline(0ms).poll_time(), -1);
  EXPECT_EQ(untax::deadline(0ms).poll_time(7ms), 7);
  const int hour = untax::deadline(1h).poll_time();
  EXPECT_GT(hour, 1'800'000);
  EXPECT_LE(hour, 3'600'000);
  EXPECT_EQ(untax::deadline(1h).poll_time(5ms), 5);
  const untax::deadline past(1ms);
  std::this_thread::sleep_for(3ms);
  EXPECT_TRUE(past.passed());
  EXPECT_EQ(past.poll_time(), 0);
}

}  // namespace
