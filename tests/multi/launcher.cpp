// The launcher: what it passes on, and that nothing outlives it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "ranks.hpp"
#include "tests/temporary_file.hpp"

namespace {

using namespace multi_test;
using untax::errc;
using untax::process_launch;

process_launch shell(int ranks, const std::string& script) {
  process_launch l;
  l.ranks = ranks;
  l.command = {"sh", "-c", script};
  l.limit = 30s;
  return l;
}

TEST(launcher, gives_each_rank_its_number_and_returns_how_it_ended) {
  process_launch l =
      shell(3, "test \"$EXTRA\" = yes || exit 9; exit $((UNTAX_RANK * UNTAX_WORLD_SIZE))");
  l.variables = {{"EXTRA", "yes"}};
  const untax::launch_result r = untax::launch_processes(l);
  ASSERT_EQ(r.ends.size(), 3U);
  for (int rank = 0; rank < 3; ++rank) {
    const auto& end = r.ends[static_cast<std::size_t>(rank)];
    EXPECT_EQ(end.rank, rank);
    EXPECT_EQ(end.exit_code, 3 * rank);
    EXPECT_FALSE(end.killed);
  }
  EXPECT_FALSE(r.ok());
  EXPECT_GT(r.first_failure, 0);
  EXPECT_EQ(r.ends[2].text(), "rank 2 exited with code 6");
}

TEST(launcher, tells_signals_from_exit_codes) {
  const untax::launch_result r = untax::launch_processes(shell(1, "kill -SEGV $$"));
  EXPECT_EQ(r.ends[0].signal, SIGSEGV);
  EXPECT_EQ(r.ends[0].exit_code, -1);
  EXPECT_EQ(r.ends[0].text(), "rank 0 was ended by signal 11 (Segmentation fault)");
}

TEST(launcher, passes_on_whole_lines_and_unfinished_ones) {
  std::vector<std::string> lines(2);
  process_launch l =
      shell(2, "printf one; sleep 0.05; echo \" $UNTAX_RANK\"; echo two >&2; printf three");
  l.output = [&](int rank, std::string_view line) {
    lines[static_cast<std::size_t>(rank)] += std::string(line) + "|";
  };
  EXPECT_TRUE(untax::launch_processes(l).ok());
  EXPECT_EQ(lines[0], "one 0|two|three|");
  EXPECT_EQ(lines[1], "one 1|two|three|");
}

TEST(launcher, loses_no_output) {
  std::size_t bytes = 0;
  process_launch l = shell(2,
                           "i=0; while [ $i -lt 2000 ]; do echo "
                           "0123456789012345678901234567890123456789; i=$((i+1)); done");
  l.output = [&](int, std::string_view line) { bytes += line.size(); };
  EXPECT_TRUE(untax::launch_processes(l).ok());
  EXPECT_EQ(bytes, 2U * 2000U * 40U);
}

TEST(launcher, kills_the_others_after_a_failure_and_a_grace) {
  process_launch l = shell(3, "test $UNTAX_RANK != 1 || exit 4; exec sleep 100");
  l.grace = 200ms;
  const auto begin = std::chrono::steady_clock::now();
  const untax::launch_result r = untax::launch_processes(l);
  const auto taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(taken, 200ms);
  EXPECT_LT(taken, soon);
  EXPECT_EQ(r.first_failure, 1);
  EXPECT_EQ(r.ends[1].exit_code, 4);
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_EQ(r.ends[rank].signal, SIGKILL);
    EXPECT_TRUE(r.ends[rank].killed);
    EXPECT_NE(r.ends[rank].text().find("stopped by the launcher"), std::string::npos);
  }
}

// The first one is what the others may only suffer from, whatever its number.
TEST(launcher, names_the_first_failure) {
  for (const int first : {0, 1}) {
    untax_test::temporary_file file;
    // The other one fails when the first is not only dead, but buried.
    process_launch l = shell(
        2,
        fmt::format("if test $UNTAX_RANK = {0}; then echo $$ >{1}.new; mv {1}.new {1}; exit 3; fi; "
                    "until test -s {1}; do sleep 0.01; done; "
                    "while kill -0 $(cat {1}) 2>/dev/null; do sleep 0.01; done; sleep 0.3; exit 4",
                    first, file.path()));
    l.grace = 30s;
    const untax::launch_result r = untax::launch_processes(l);
    EXPECT_EQ(r.first_failure, first);
    EXPECT_EQ(r.ends[static_cast<std::size_t>(first)].exit_code, 3);
    EXPECT_EQ(r.ends[static_cast<std::size_t>(1 - first)].exit_code, 4);
  }
}

TEST(launcher, names_every_kind_of_end) {
  using untax::process_end;
  EXPECT_EQ((process_end{.rank = 3, .exit_code = 0}.text()), "rank 3 exited with code 0");
  EXPECT_EQ((process_end{.rank = 3, .exit_code = 1}.text()), "rank 3 exited with code 1");
  EXPECT_NE(process_end{.rank = 3}.text().find("rank 3 ended, and how is not known"),
            std::string::npos);
  EXPECT_EQ((process_end{.rank = 3, .signal = SIGKILL, .killed = true}.text()),
            "rank 3 was stopped by the launcher by signal 9 (Killed)");
  EXPECT_EQ((process_end{.rank = 3, .signal = SIGHUP}.text()),
            "rank 3 was ended by signal 1 (Hangup)");
}

TEST(launcher, ends_everything_at_the_limit) {
  process_launch l = shell(2, "exec sleep 100");
  l.limit = 200ms;
  const auto begin = std::chrono::steady_clock::now();
  const untax::launch_result r = untax::launch_processes(l);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
  EXPECT_TRUE(r.ends[0].killed && r.ends[1].killed);
}

template <class Call>
untax::error error_of(const Call& call) {
  try {
    call();
  } catch (const untax::error& e) {
    return e;
  }
  return {errc::internal, "nothing was thrown"};
}

TEST(launcher, names_the_command_that_cannot_be_started) {
  const belongings before = belongings::now();
  process_launch l;
  l.ranks = 2;
  l.command = {"/no/such/program"};
  const untax::error e = error_of([&] { (void)untax::launch_processes(l); });
  EXPECT_EQ(e.code(), errc::invalid_argument);
  EXPECT_STREQ(e.what(), "cannot start /no/such/program: No such file or directory");
  l.command.clear();
  EXPECT_EQ(error_of([&] { (void)untax::launch_processes(l); }).code(), errc::invalid_argument);
  l.command = {"true"};
  l.ranks = 0;
  EXPECT_EQ(error_of([&] { (void)untax::launch_processes(l); }).code(), errc::invalid_argument);
  EXPECT_EQ(belongings::now(), before);
}

TEST(launcher, kills_and_reaps_when_its_caller_throws) {
  const belongings before = belongings::now();
  process_launch l = shell(3, "echo here; exec sleep 100");
  l.output = [](int, std::string_view) { throw std::runtime_error("caller"); };
  EXPECT_THROW((void)untax::launch_processes(l), std::runtime_error);
  EXPECT_EQ(belongings::now(), before);
}

const rank_body forever("forever", [] {
  say(fmt::format("PROCESS {}", getpid()));
  untax::world w = untax::world::from_environment(small_world(60s));
  if (w.rank() == 0) say("ALL");
  while (true) std::this_thread::sleep_for(1s);
});

/// A launcher inside a rank, so that the test can do something to it.
const rank_body nested("nested launcher", [] {
  process_launch l;
  l.ranks = 3;
  l.command = {"/proc/self/exe", "--as-rank", "forever"};
  l.grace = 100ms;
  l.output = [](int, std::string_view line) { say(std::string(line)); };
  const belongings before = belongings::now();
  say(fmt::format("LAUNCHER {}", getpid()));
  const untax::launch_result r = untax::launch_processes(l);
  EXPECT_EQ(belongings::now().descriptors, before.descriptors);
  EXPECT_EQ(belongings::now().directories, before.directories);
  say(fmt::format("INTERRUPTED {}", r.interrupt));
});

/// Sends `number` to the launcher of three ranks as soon as all of them run; the outcome and the
/// three ranks.
std::pair<outcome, std::vector<long>> interrupt_launcher(int number) {
  long launcher = 0;
  std::vector<long> ranks;
  bool complete = false;
  outcome o = launch("nested launcher", 1, {}, [&](int, const std::string& line) {
    if (line.starts_with("LAUNCHER ")) launcher = std::stol(line.substr(9));
    if (line.starts_with("PROCESS ")) ranks.push_back(std::stol(line.substr(8)));
    complete = complete || line == "ALL";
    // Lines of different ranks overtake each other.
    if (!complete || ranks.size() != 3 || launcher == 0) return;
    kill(static_cast<pid_t>(std::exchange(launcher, 0)), number);
  });
  return {std::move(o), ranks};
}

void expect_gone(const std::vector<long>& processes) {
  EXPECT_EQ(processes.size(), 3U);
  for (const long process : processes) {
    // A process that was killed as an orphan is buried by init when it gets to it.
    for (int i = 0; i < 3000 && process_exists(process); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_FALSE(process_exists(process)) << process;
  }
}

TEST(launcher, an_interrupt_ends_the_ranks_and_is_reported) {
  const belongings before = belongings::now();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const auto [o, ranks] = interrupt_launcher(number);
    EXPECT_EQ(o.said(0, "INTERRUPTED"), std::to_string(number)) << o.all(0);
    EXPECT_TRUE(o.result.ends[0].ok()) << o.all(0);
    expect_gone(ranks);
  }
  EXPECT_EQ(belongings::now(), before);
}

TEST(launcher, its_ranks_die_with_it) {
  const belongings before = belongings::now();
  const auto [o, ranks] = interrupt_launcher(SIGKILL);
  EXPECT_EQ(o.result.ends[0].signal, SIGKILL);
  expect_gone(ranks);
  EXPECT_EQ(belongings::now(), before);
  const std::string path = fmt::format("/tmp/untax-launch-{}-", o.said(0, "LAUNCHER"));
  for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
    EXPECT_FALSE(entry.path().string().starts_with(path)) << entry.path();
  }
}

TEST(launcher, leaves_the_signal_handlers_as_they_were) {
  struct sigaction before {};
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &before);
  EXPECT_TRUE(untax::launch_processes(shell(1, "exit 0")).ok());
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
