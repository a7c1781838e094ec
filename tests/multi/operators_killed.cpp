// Operators whose ranks are killed, stopped, or lose their launcher: every survivor is right or
// names the lost rank and the room soon, and nothing is left.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include <untax/memory/host_memory.hpp>

#include "operators.hpp"

namespace {

using namespace multi_test;
using untax::host_memory;
using untax::testing::all_cases;
using untax::testing::faulty_case;
using untax::testing::sample;

using generator = std::mt19937_64;

int pick(generator& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

std::string gone(int rank) { return fmt::format("rank {} is gone (its process ended)", rank); }

/// A few launches of every operator; each pattern and each number of ranks comes up.
std::vector<faulty_case> sampled_cases(std::size_t count, std::uint64_t seed) {
  std::vector<faulty_case> cases;
  for (const untax::operator_entry& entry : untax::operators()) {
    std::vector<faulty_case> of_operator = all_cases({2, 3, 4});
    std::erase_if(of_operator, [&](const faulty_case& c) { return c.entry.name != entry.name; });
    for (faulty_case& c : sample(of_operator, count, seed)) cases.push_back(std::move(c));
  }
  return cases;
}

TEST(operators, are_right_in_processes) {
  for (const faulty_case& c : sampled_cases(6, 1)) {
    const operator_launch l{c};
    const outcome o = launch_operator(l);
    for (int rank = 0; rank < c.world; ++rank) expect_right(o, l, rank);
  }
}

TEST(operators, killed_at_a_site) {
  generator random(2);
  const leftovers before = leftovers::now();
  const char* const verbs[] = {"", ",verb=reserve", ",verb=acquire", ",verb=publish",
                               ",verb=retire"};
  int struck = 0;
  int failed = 0;
  for (const faulty_case& c : sampled_cases(12, 2)) {
    operator_launch l{c};
    const int victim = pick(random, 0, c.world - 1);
    const char* kind = pick(random, 0, 3) == 0 ? "exit" : "kill";
    l.fault = fmt::format("{}:rank={}{},epoch={},nth={}", kind, victim, verbs[pick(random, 0, 4)],
                          pick(random, 1, 3), pick(random, 1, 4));
    const outcome o = launch_operator(l);
    const std::string when = o.said(victim, "STRUCK");
    struck += when.empty() ? 0 : 1;
    for (int rank = 0; rank < c.world; ++rank) {
      if (when.empty()) {
        expect_right(o, l, rank);  // there are not that many such sites
      } else if (rank != victim) {
        failed += expect_right_or_lost(o, l, rank, std::stoull(when),
                                       {"peer_lost", gone(victim), "room "});
      }
    }
    EXPECT_EQ(leftovers::now(), before) << l.describe();
    if (HasFailure()) return;
  }
  EXPECT_GT(struck, 18) << "of 36";
  EXPECT_GT(failed, 18);
}

/// Sends signals to ranks of a launch from outside, at a moment of its own choice.
class attacker {
 public:
  explicit attacker(int ranks) : processes_(static_cast<std::size_t>(ranks)) {}
  attacker(const attacker&) = delete;
  attacker& operator=(const attacker&) = delete;
  ~attacker() { join(); }

  /// Notes the process ids; true once every rank has said `word`.
  bool hears(int rank, const std::string& line, const std::string& word) {
    if (line.starts_with("PROCESS "))
      processes_[static_cast<std::size_t>(rank)] = static_cast<pid_t>(std::stol(line.substr(8)));
    const bool counts = line.starts_with(word);
    said_ += counts ? 1 : 0;
    return counts && said_ == static_cast<int>(processes_.size());
  }
  void strike(int rank, int number, std::chrono::microseconds after) {
    thread_ = std::thread([this, rank, number, after] {
      std::this_thread::sleep_for(after);
      when_ = host_memory::now();
      send(rank, number);
    });
  }
  void send(int rank, int number) const {
    kill(processes_[static_cast<std::size_t>(rank)], number);
  }
  /// When it struck.
  std::uint64_t join() {
    if (thread_.joinable()) thread_.join();
    return when_;
  }

 private:
  std::vector<pid_t> processes_;
  int said_ = 0;
  std::uint64_t when_ = 0;
  std::thread thread_;
};

constexpr int endless = 1'000'000;  // more epochs than a launch can do

TEST(operators, killed_from_outside_at_any_time) {
  generator random(3);
  const leftovers before = leftovers::now();
  for (const faulty_case& c : sampled_cases(5, 3)) {
    operator_launch l{c, endless};
    const int victim = pick(random, 0, c.world - 1);
    const std::chrono::microseconds after(pick(random, 0, 40'000));
    attacker enemy(c.world);
    const outcome o = launch_operator(l, [&](int rank, const std::string& line) {
      if (enemy.hears(rank, line, "RUNNING")) enemy.strike(victim, SIGKILL, after);
    });
    const std::uint64_t when = enemy.join();
    for (int rank = 0; rank < c.world; ++rank) {
      if (rank == victim) continue;
      EXPECT_TRUE(expect_right_or_lost(o, l, rank, when, {"peer_lost", gone(victim), "room "}));
    }
    EXPECT_EQ(leftovers::now(), before) << l.describe();
    if (HasFailure()) return;
  }
}

TEST(operators, killed_while_they_start) {
  generator random(4);
  const leftovers before = leftovers::now();
  for (const faulty_case& c : sampled_cases(4, 4)) {
    operator_launch l{c, endless};
    l.join_limit = 2s;
    const int victim = pick(random, 0, c.world - 1);
    const std::chrono::microseconds after(pick(random, 0, 5'000));
    attacker enemy(c.world);
    const outcome o = launch_operator(l, [&](int rank, const std::string& line) {
      static_cast<void>(enemy.hears(rank, line, "PROCESS"));
      if (rank == victim && line.starts_with("PROCESS")) enemy.strike(victim, SIGKILL, after);
    });
    enemy.join();
    for (int rank = 0; rank < c.world; ++rank) {
      if (rank == victim) continue;
      // It may be one of several that are late.
      const std::string said = o.said(rank, "ERROR");
      EXPECT_TRUE(said.find(fmt::format("rank {} ", victim)) != std::string::npos ||
                  said.find(fmt::format("rank {},", victim)) != std::string::npos)
          << l.describe() << "\n"
          << o.all(rank);
      EXPECT_FALSE(o.result.ends[static_cast<std::size_t>(rank)].killed) << o.all(rank);
    }
    EXPECT_EQ(leftovers::now(), before) << l.describe();
    if (HasFailure()) return;
  }
}

TEST(operators, a_stopped_rank_is_named_and_ends_when_it_goes_on) {
  generator random(5);
  const leftovers before = leftovers::now();
  for (const faulty_case& c : sampled_cases(2, 5)) {
    operator_launch l{c, endless};
    l.wait_limit = impatient;
    const int victim = pick(random, 0, c.world - 1);
    const std::chrono::microseconds after(pick(random, 0, 10'000));
    attacker enemy(c.world);
    int ended = 0;
    const outcome o = launch_operator(l, [&](int rank, const std::string& line) {
      if (enemy.hears(rank, line, "RUNNING")) enemy.strike(victim, SIGSTOP, after);
      if (line.starts_with("ERROR") && ++ended == c.world - 1) enemy.send(victim, SIGCONT);
    });
    const std::uint64_t when = enemy.join();
    for (int rank = 0; rank < c.world; ++rank) {
      expect_right_or_lost(
          o, l, rank, rank == victim ? host_memory::now() : when,
          {fmt::format("Suspect: rank {} is halted (by SIGSTOP or a debugger)", victim), "room "});
    }
    EXPECT_EQ(leftovers::now(), before) << l.describe();
    if (HasFailure()) return;
  }
}

const rank_body nested("launcher of an operator", [] {
  say(fmt::format("LAUNCHER {}", getpid()));
  launch_operator({all_cases({3}).front(), endless},
                  [](int, const std::string& line) { say(line); });
});

TEST(operators, end_when_their_launcher_is_killed) {
  const leftovers before = leftovers::now();
  std::vector<long> ranks;
  pid_t launcher = 0;
  int running = 0;
  const outcome o = launch("launcher of an operator", 1, {}, [&](int, const std::string& line) {
    if (line.starts_with("LAUNCHER ")) launcher = static_cast<pid_t>(std::stol(line.substr(9)));
    if (line.starts_with("PROCESS ")) ranks.push_back(std::stol(line.substr(8)));
    if (line == "RUNNING" && ++running == 3) kill(launcher, SIGKILL);
  });
  EXPECT_EQ(o.result.ends[0].signal, SIGKILL) << o.all(0);
  EXPECT_EQ(ranks.size(), 3U);
  for (const long rank : ranks) {
    // A process that was killed as an orphan is buried by init when it gets to it.
    for (int i = 0; i < 3000 && process_exists(rank); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_FALSE(process_exists(rank)) << rank;
  }
  EXPECT_EQ(leftovers::now(), before);
}

}  // namespace
