#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <untax/world/world.hpp>

namespace untax {

/// Runs `body` for each of `ranks` ranks, one thread a rank, and waits for all of them. When some
/// fail, the error that stopped the world is thrown, not its echo in the others.
void run_threads(int ranks, const std::function<void(world&)>& body,
                 const world_options& options = {});

/// The same on GPUs, as `world::local_gpus` deals them: a rank's GPU is the current device of its
/// thread.
void run_gpus(int ranks, const std::function<void(world&)>& body,
              const world_options& options = {});

/// Ranks to be started as processes of their own.
struct process_launch {
  int ranks = 1;
  std::vector<std::string>
      command;  ///< program (looked up in PATH) and arguments, the same for every rank
  /// Variables to set besides UNTAX_RANK, UNTAX_WORLD_SIZE and UNTAX_RENDEZVOUS. The last is a
  /// directory in XDG_RUNTIME_DIR, or in /tmp, unless it is set here or in the environment; then
  /// UNTAX_LAUNCH tells the ranks from those of others that meet there.
  std::vector<std::pair<std::string, std::string>> variables;
  /// How long the other ranks may go on after one has failed, or after an interrupt; then they are
  /// killed.
  std::chrono::milliseconds grace{5000};
  /// How long all of it may take; 0 is for ever.
  std::chrono::milliseconds limit{0};
  /// Gets what the ranks write to stdout and stderr, line by line without the end of line. If it is
  /// empty, they share those of this process.
  std::function<void(int rank, std::string_view line)> output;
};

/// How a rank ended.
struct process_end {
  int rank = -1;
  int exit_code = -1;   ///< -1 if a signal ended it, or if nobody knows
  int signal = 0;       ///< the signal that did; 0 if something else took the rank's status
  bool killed = false;  ///< the launcher killed it, after the grace or the limit

  [[nodiscard]] bool ok() const noexcept { return exit_code == 0; }
  /// "rank 2 exited with code 3", "rank 2 was ended by signal 9 (Killed)".
  [[nodiscard]] std::string text() const;
};

struct launch_result {
  std::vector<process_end> ends;  ///< by rank
  /// The rank that failed first, or -1; of several that the launcher finds at once, one that a
  /// signal ended.
  int first_failure = -1;
  int interrupt =
      0;  ///< SIGINT, SIGTERM or SIGHUP, if one arrived meanwhile and was passed on to the ranks

  [[nodiscard]] bool ok() const noexcept { return first_failure < 0 && interrupt == 0; }
};

/// Starts the ranks, which call `world::from_environment`, and waits for all of them. They die with
/// the calling thread. No process, descriptor or directory is left when it returns or throws. One
/// launch at a time in a process; signal handlers for SIGINT, SIGTERM and SIGHUP are in place
/// meanwhile, and SIGCHLD is not ignored. Throws `invalid_argument` if the command cannot be
/// started.
[[nodiscard]] launch_result launch_processes(const process_launch& launch);

}  // namespace untax
