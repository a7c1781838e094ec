// The launcher's children, one at a time.
#include "src/world/child_process.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ranks.hpp"
#include "tests/errors.hpp"

namespace {

using namespace multi_test;
using untax::child_process;
using untax_test::error_of;
using untax_test::expect_error;

untax::child_program shell(const std::string& script, bool collect_output = false) {
  return {{"sh", "-c", script}, {"GREETING=hello"}, collect_output};
}

/// The status of a child that ends by itself.
int status_of(child_process& child) {
  while (!child.ended()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(child.status());
  return child.status().value_or(-1);
}

bool kernel_has_handles() {
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (handle >= 0) close(handle);
  return handle >= 0;
}

bool readable(int number, std::chrono::milliseconds limit) {
  pollfd entry{number, POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(limit.count())) == 1;
}

TEST(child_processes, tell_that_they_have_ended) {
  if (!kernel_has_handles()) GTEST_SKIP() << "no handles of processes in this kernel";
  child_process child(shell("exit 3"));
  ASSERT_GE(child.number(), 0);
  EXPECT_TRUE(readable(child.number(), patient));
  EXPECT_TRUE(child.ended()) << "it said so";
  EXPECT_EQ(WEXITSTATUS(child.status().value_or(0)), 3);
}

TEST(child_processes, say_nothing_while_they_run) {
  child_process child(shell("exec sleep 100"));
  EXPECT_FALSE(child.ended());
  EXPECT_FALSE(child.status());
  EXPECT_FALSE(readable(child.number(), 1ms));
  EXPECT_EQ(child.output_number(), -1) << "nobody collects it";
  child.signal(SIGTERM);
  const int status = status_of(child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  child.signal(SIGTERM);  // no process is left
}

// There are descriptors for the pipe to the child, and none for its handle.
TEST(child_processes, without_a_handle_are_signalled_by_their_number) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  for (const int end : ends) close(end);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit two_more{static_cast<rlim_t>(std::max(ends[0], ends[1])) + 1, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &two_more);
  child_process child(shell("exec sleep 30"));
  setrlimit(RLIMIT_NOFILE, &before);
  child.signal(SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(status_of(child)));
}

TEST(child_processes, that_cannot_start_end_at_once_with_the_status_of_a_shell) {
  child_process child({{"/nowhere/at/all"}, {}, false});
  expect_error(error_of([&] { (void)status_of(child); }), untax::errc::invalid_argument,
               {"cannot start /nowhere/at/all: No such file or directory"});
  ASSERT_TRUE(child.status());
  EXPECT_TRUE(WIFEXITED(*child.status()));
  EXPECT_EQ(WEXITSTATUS(*child.status()), 127);
  EXPECT_TRUE(child.ended()) << "the reason is told once";
}

TEST(child_processes, have_the_environment_and_the_output_of_their_program) {
  child_process child(shell("echo \"$GREETING\"; printf '\\n'; echo >&2 error; printf end", true));
  ASSERT_GE(child.output_number(), 0);
  std::vector<std::string> lines;
  const auto collect = [&](std::string_view line) { lines.emplace_back(line); };
  EXPECT_EQ(status_of(child), 0);
  child.read_output(collect, false);
  EXPECT_EQ(lines, (std::vector<std::string>{"hello", "", "error"}));
  EXPECT_EQ(child.output_number(), -1) << "it is complete";
  child.read_output(collect, true);
  child.read_output(collect, true);
  EXPECT_EQ(lines, (std::vector<std::string>{"hello", "", "error", "end"}));
}

TEST(child_processes, are_killed_and_reaped_when_their_owner_ends) {
  int handle = -1;
  {
    child_process child(shell("exec sleep 100", true));
    child_process moved(std::move(child));
    if (moved.number() >= 0) handle = dup(moved.number());
    EXPECT_GE(moved.output_number(), 0);
    EXPECT_FALSE(moved.ended());
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
  if (handle < 0) return;
  EXPECT_TRUE(readable(handle, 0ms));
  close(handle);
}

}  // namespace
