// Launchers in surroundings that make it hard: children that are ignored or buried by others, and
// children that stop, or are met by a signal, before they are the program.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::launch_result;
using untax::process_launch;

process_launch shell(int ranks, const std::string& script) {
  process_launch l;
  l.ranks = ranks;
  l.command = {"sh", "-c", script};
  l.grace = 100ms;
  return l;
}

void handle_children(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGCHLD, &action, nullptr);
}

/// Ranks that end well, badly, by a signal, and by SIGTERM to the launcher.
void launch_and_expect_statuses() {
  const launch_result ended =
      untax::launch_processes(shell(3, "test $UNTAX_RANK != 2 || kill -9 $$; exit $UNTAX_RANK"));
  EXPECT_EQ(ended.ends[0].exit_code, 0);
  EXPECT_EQ(ended.ends[1].exit_code, 1);
  EXPECT_EQ(ended.ends[2].signal, SIGKILL);
  const launch_result interrupted =
      untax::launch_processes(shell(2, "trap '' TERM; kill -TERM $PPID; sleep 100"));
  EXPECT_EQ(interrupted.interrupt, SIGTERM);
  for (const auto& end : interrupted.ends) EXPECT_NE(end.signal, 0) << end.text();
  say("ENDED well");
}

const rank_body ignoring("children are ignored", [] {
  handle_children(SIG_IGN, 0);
  launch_and_expect_statuses();
  struct sigaction after {};
  sigaction(SIGCHLD, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
});

const rank_body dropping("children are dropped", [] {
  handle_children(SIG_DFL, SA_NOCLDWAIT);
  launch_and_expect_statuses();
  struct sigaction after {};
  sigaction(SIGCHLD, nullptr, &after);
  EXPECT_NE(static_cast<unsigned>(after.sa_flags) & SA_NOCLDWAIT, 0U);
});

void expect_well(const outcome& o) {
  EXPECT_EQ(o.said(0, "ENDED"), "well") << o.all(0);
  EXPECT_TRUE(o.result.ends[0].ok()) << o.all(0);
}

TEST(launcher, ends_if_sigchld_is_ignored) {
  expect_well(launch("children are ignored", 1));
  expect_well(launch("children are dropped", 1));
}

extern "C" void bury_all(int /*number*/) {
  const int interrupted = errno;
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  errno = interrupted;
}

const rank_body burying("others bury", [] {
  handle_children(bury_all, SA_RESTART);
  const launch_result ended = untax::launch_processes(shell(3, "exit 0"));
  int unknown = 0;
  for (const auto& end : ended.ends) {
    EXPECT_FALSE(end.killed);
    if (end.exit_code == 0) continue;  // the launcher came first
    ++unknown;
    EXPECT_NE(end.text().find("how is not known"), std::string::npos) << end.text();
  }
  EXPECT_EQ(ended.ok(), unknown == 0);
  const launch_result interrupted = untax::launch_processes(
      shell(2, "trap '' TERM; test $UNTAX_RANK = 0 && kill -TERM $PPID; sleep 100"));
  EXPECT_EQ(interrupted.interrupt, SIGTERM);
  say("ENDED well");
});

TEST(launcher, ends_if_other_code_reaps_its_children) { expect_well(launch("others bury", 1)); }

const rank_body stopping("children stop on their way", [] {
  pthread_atfork(nullptr, nullptr, [] { raise(SIGSTOP); });
  process_launch l = shell(2, "exit 0");
  l.limit = 200ms;
  const launch_result late = untax::launch_processes(l);
  for (const auto& end : late.ends) EXPECT_TRUE(end.killed) << end.text();
  say("ENDED well");
});

const rank_body interrupted("an interrupt while children stop", [] {
  pthread_atfork(nullptr, nullptr, [] {
    kill(getppid(), SIGTERM);
    raise(SIGSTOP);
  });
  const launch_result r = untax::launch_processes(shell(2, "exit 0"));
  EXPECT_EQ(r.interrupt, SIGTERM);
  for (const auto& end : r.ends) EXPECT_EQ(end.signal, SIGKILL) << end.text();
  say("ENDED well");
});

TEST(launcher, obeys_limits_and_signals_before_a_child_has_become_the_program) {
  expect_well(launch("children stop on their way", 1));
  expect_well(launch("an interrupt while children stop", 1));
}

const rank_body met("a signal meets a child", [] {
  // That of the launcher, and the first and the last of those that its caller may handle.
  static int met_signal = 0;
  pthread_atfork(nullptr, nullptr, [] { raise(met_signal); });
  for (const int number : {SIGTERM, SIGHUP, SIGRTMAX}) {
    met_signal = number;
    if (number != SIGTERM) std::signal(number, [](int /*number*/) { _exit(77); });
    const launch_result r = untax::launch_processes(shell(2, "exit 0"));
    EXPECT_EQ(r.interrupt, 0) << "the handler of the launcher ran in a child";
    for (const auto& end : r.ends) EXPECT_EQ(end.signal, number) << end.text();
  }
  say("ENDED well");
});

TEST(launcher, runs_no_handler_in_a_child) { expect_well(launch("a signal meets a child", 1)); }

}  // namespace
