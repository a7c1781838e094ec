#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/flow/control_block.hpp>
#include <untax/world/launch.hpp>

#include "child_process.hpp"
#include "deadline.hpp"
#include "interruption.hpp"
#include "launch_place.hpp"

namespace untax {
namespace {

using namespace std::chrono_literals;

/// The directory in which the user wants the ranks to meet; empty if none. If this process is
/// itself a rank, the directory in its environment comes from its launcher, and does not count.
std::string prescribed_place(const process_launch& launch) {
  for (const auto& [name, value] : launch.variables) {
    if (name == variable::rendezvous.name) return value;
  }
  const environment variables;
  return variables.has(variable::rank) ? "" : variables.text(variable::rendezvous).value_or("");
}

void set(std::vector<std::string>& variables, std::string_view name, std::string_view value) {
  const std::string start = fmt::format("{}=", name);
  std::erase_if(variables, [&start](const std::string& v) { return v.starts_with(start); });
  variables.push_back(start + std::string(value));
}

child_program program_of(const process_launch& launch, int rank, const launch_place& place) {
  child_program p;
  p.command = launch.command;
  p.collect_output = static_cast<bool>(launch.output);
  for (char** v = environ; *v != nullptr; ++v) p.environment.emplace_back(*v);
  set(p.environment, variable::rank.name, std::to_string(rank));
  set(p.environment, variable::world_size.name, std::to_string(launch.ranks));
  set(p.environment, variable::rendezvous.name, place.directory());
  if (!place.word().empty()) set(p.environment, variable::launch.name, place.word());
  for (const auto& [name, value] : launch.variables) set(p.environment, name, value);
  return p;
}

/// The running ranks.
class rank_processes {
 public:
  explicit rank_processes(const process_launch& launch)
      : launch_(launch), place_(prescribed_place(launch)), limit_(launch.limit) {
    for (int rank = 0; rank < launch.ranks; ++rank) {
      members_.emplace_back(program_of(launch, rank, place_));
      result_.ends.push_back({rank});
    }
    running_ = members_.size();
    buried_.resize(running_);
  }

  launch_result wait() {
    while (running_ > 0) {
      wait_for_news();
      read_output(false);
      pass_on_interrupts();
      bury_dead();
      if (!killed_ && (limit_.passed() || (grace_ && grace_->passed()))) kill_all();
    }
    read_output(true);
    return std::move(result_);
  }

 private:
  void wait_for_news() {
    std::vector<pollfd> entries = {{interrupts_.number(), POLLIN, 0}};
    for (std::size_t i = 0; i < members_.size(); ++i) {
      entries.push_back({buried_[i] ? -1 : members_[i].number(), POLLIN, 0});
      entries.push_back({members_[i].output_number(), POLLIN, 0});
    }
    // Polls at least ten times a second, for kernels that do not signal the end of a child.
    const int time =
        killed_ ? 100 : std::min(limit_.poll_time(100ms), grace_ ? grace_->poll_time(100ms) : 100);
    poll(entries.data(), entries.size(), time);
  }

  void read_output(bool last) {
    if (!launch_.output) return;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i].read_output(
          [this, i](std::string_view line) { launch_.output(static_cast<int>(i), line); }, last);
    }
  }

  void pass_on_interrupts() {
    while (const int number = interrupts_.take()) {
      result_.interrupt = number;
      for (child_process& m : members_) m.signal(number);
      start_grace();
    }
  }

  void bury_dead() {
    int first = -1;  // the first failure that this poll finds
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (buried_[i] || !members_[i].ended()) continue;
      buried_[i] = true;
      --running_;
      process_end& end = result_.ends[i];
      const auto status = members_[i].status();
      if (status && WIFEXITED(*status)) end.exit_code = WEXITSTATUS(*status);
      if (status && WIFSIGNALED(*status)) end.signal = WTERMSIG(*status);
      if (end.ok()) continue;
      // A rank that was killed may cause others to fail, and one poll may find all of them.
      if (first < 0 ||
          (end.signal != 0 && result_.ends[static_cast<std::size_t>(first)].signal == 0))
        first = end.rank;
      // An unknown status is not taken for a failure that would end the other ranks.
      if (status) start_grace();
    }
    if (result_.first_failure < 0) result_.first_failure = first;
  }

  void start_grace() {
    // At least 1 ms, since a deadline of 0 would mean never.
    if (!grace_) grace_.emplace(std::max(launch_.grace, 1ms));
  }

  void kill_all() {
    killed_ = true;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (buried_[i]) continue;
      result_.ends[i].killed = true;
      members_[i].signal(SIGKILL);
    }
  }

  const process_launch& launch_;
  interruption interrupts_;
  kept_statuses statuses_;
  launch_place place_;  // outlives the ranks
  std::vector<child_process> members_;
  std::size_t running_ = 0;
  std::vector<bool> buried_;
  bool killed_ = false;
  launch_result result_;
  deadline limit_;
  std::optional<deadline> grace_;  // set when a rank has failed or a signal has come
};

}  // namespace

std::string process_end::text() const {
  if (signal != 0) {
    return fmt::format("rank {} was {} by signal {} ({})", rank,
                       killed ? "stopped by the launcher" : "ended", signal, sigdescr_np(signal));
  }
  if (exit_code < 0) {
    return fmt::format(
        "rank {} ended, and how is not known: something else in the process of the launcher waits "
        "for any child, and took its status",
        rank);
  }
  return fmt::format("rank {} exited with code {}", rank, exit_code);
}

launch_result launch_processes(const process_launch& launch) {
  if (launch.ranks < 1 || launch.ranks > max_ranks) {
    throw error(errc::invalid_argument,
                fmt::format("a world of {} ranks; it can have 1 to {}", launch.ranks, max_ranks));
  }
  if (launch.command.empty())
    throw error(errc::invalid_argument, "there is no command to start the ranks with");
  return rank_processes(launch).wait();
}

}  // namespace untax
