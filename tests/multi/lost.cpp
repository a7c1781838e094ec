// Ranks that die or leave while others wait for them: every survivor names them, soon.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include <untax/memory/host_memory.hpp>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::errc;
using untax::host_memory;
using untax::verb;
using untax::wait_outcome;
using untax::world;

constexpr int victim = 2;

/// Rank 0 kills the victim once it waits in the slot `slot`, and says when.
void kill_victim_in(const world& w, int slot) {
  while (!w.state().wait_at(victim, slot)) std::this_thread::sleep_for(1ms);
  say(fmt::format("KILLED {}", host_memory::now()));
  kill(static_cast<pid_t>(w.state().process(victim)), SIGKILL);
}

const rank_body in_barrier("killed in barrier", [] {
  world w = world::from_environment(small_world());
  if (w.rank() == 0) kill_victim_in(w, 0);
  // The victim has entered this barrier, so that it may open; the next one cannot.
  w.barrier();
  w.barrier();
});

void wait_for(world& w, std::uint64_t& counter, int peer, int room, std::uint64_t expected) {
  untax::watch guard = w.make_watch(4);
  const wait_outcome outcome = untax::wait_until<host_memory>(
      counter, {"ring", verb::wait_until, peer, room, expected}, guard);
  if (outcome != wait_outcome::ok) w.throw_failure(outcome, "ring");
}

const rank_body in_wait("killed in wait_until", [] {
  world w = world::from_environment(small_world());
  const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
  w.run([&](world&) {
    if (w.rank() == 0) kill_victim_in(w, 5);
    // Every rank waits for the next one, and none signals.
    wait_for(w, *counter.local(), (w.rank() + 1) % w.size(), 7, 1);
  });
});

void expect_survivors_name_the_victim(const std::string& body, int ranks, const std::string& site) {
  const belongings before = belongings::now();
  const outcome o = launch(body, ranks);
  const std::string killed = o.said(0, "KILLED");
  ASSERT_FALSE(killed.empty()) << o.all(0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    expect_error(o, rank, errc::peer_lost,
                 {"rank 2 is gone (its process ended)", site, fmt::format("rank {}: ", rank)});
    unsigned long long noticed = 0;
    char code[32] = {};
    ASSERT_EQ(std::sscanf(o.said(rank, "ERROR").c_str(), "%31s %llu", code, &noticed), 2)
        << o.all(rank);
    EXPECT_LT(std::chrono::nanoseconds(noticed - std::stoull(killed)), soon) << "rank " << rank;
  }
  EXPECT_EQ(o.result.ends[victim].signal, SIGKILL);
  EXPECT_FALSE(o.result.ends[victim].killed) << "it was not the launcher";
  EXPECT_EQ(o.result.first_failure, victim);
  EXPECT_EQ(belongings::now(), before);
}

TEST(lost, a_rank_killed_in_a_barrier_is_named) {
  expect_survivors_name_the_victim("killed in barrier", 4, "world barrier");
}

TEST(lost, a_rank_killed_in_wait_until_is_named) {
  expect_survivors_name_the_victim("killed in wait_until", 4,
                                   "ring wait_until, room 7, needs 1, has 0");
}

TEST(lost, a_rank_killed_many_times_is_named) {
  for (int round = 0; round < 5; ++round)
    expect_survivors_name_the_victim("killed in barrier", 3, "world barrier");
}

const rank_body leaves("leaves early", [] {
  world w = world::from_environment(small_world());
  if (w.rank() != 1) w.barrier();
});

TEST(lost, a_rank_that_leaves_early_is_named) {
  const outcome o = launch("leaves early", 3);
  for (const int rank : {0, 2}) {
    expect_error(o, rank, errc::peer_lost, {"rank 1 finished without signalling", "world barrier"});
  }
  EXPECT_TRUE(o.result.ends[1].ok()) << o.all(1);
}

const rank_body exits("exits without a word", [] {
  world w = world::from_environment(small_world());
  if (w.rank() == 1) _exit(0);
  w.barrier();
});

TEST(lost, a_rank_that_exits_without_a_word_is_gone) {
  const outcome o = launch("exits without a word", 2);
  expect_error(o, 0, errc::peer_lost, {"rank 1 is gone"});
}

const rank_body throws("throws", [] {
  world w = world::from_environment(small_world());
  if (w.rank() == 1) throw untax::error(errc::unsupported, "cannot do this");
  w.barrier();
});

TEST(lost, a_rank_that_throws_has_failed) {
  const outcome o = launch("throws", 3);
  expect_error(o, 1, errc::unsupported, {"cannot do this"});
  for (const int rank : {0, 2})
    expect_error(o, rank, errc::peer_lost, {"rank 1 failed without signalling"});
}

const rank_body throws_in_run("throws in run", [] {
  world w = world::from_environment(small_world());
  w.run([](world& self) {
    if (self.rank() == 1) throw untax::error(errc::unsupported, "cannot do this");
    self.barrier();
  });
});

TEST(lost, the_error_of_a_body_reaches_the_peers) {
  const outcome o = launch("throws in run", 3);
  for (const int rank : {0, 2}) {
    expect_error(o, rank, errc::aborted,
                 {"barrier stopped because rank 1 reported: cannot do this"});
  }
}

const rank_body stalls("stalls", [] {
  world w = world::from_environment(small_world(impatient));
  if (w.rank() == 1) {
    while (!w.stopped()) std::this_thread::sleep_for(1ms);
    w.check();
  }
  w.barrier();
});

TEST(lost, a_stalled_rank_is_told_from_a_dead_one) {
  const outcome o = launch("stalls", 3);
  int reporters = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const bool reporter = o.said(rank, "ERROR").starts_with("timeout");
    reporters += reporter ? 1 : 0;
    expect_error(o, rank, reporter ? errc::timeout : errc::aborted,
                 {"Suspect: rank 1 is running and waits for nobody", "world barrier", "1500 ms"});
  }
  EXPECT_EQ(reporters, 1);
}

const rank_body last_word("signals and leaves", [] {
  for (int round = 0; round < 20; ++round) {
    world w = world::from_environment(small_world());
    const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
    if (w.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      host_memory::raise_release(*counter.at(1), 1);
    } else {
      wait_for(w, *counter.local(), 0, 3, 1);
    }
  }
});

TEST(lost, a_signal_raised_just_before_leaving_counts) {
  expect_ok(launch("signals and leaves", 2));
}

}  // namespace
