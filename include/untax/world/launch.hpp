#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <untax/world/world.hpp>

namespace untax {

/// Runs `body` for each of `ranks` ranks in one thread per rank, and waits for all of them. A
/// rank's world ends with its body. If ranks fail, it throws the error that stopped the world, not
/// the errors that followed in other ranks. Throws also the errors of `world::threads`, and
/// `out_of_memory` if a thread cannot be started.
void run_threads(int ranks, const std::function<void(world&)>& body,
                 const world_options& options = {});

/// As `run_threads`, in a world of `world::local_gpus`. The current device of a thread is its
/// rank's GPU.
void run_gpus(int ranks, const std::function<void(world&)>& body,
              const world_options& options = {});

/// Describes ranks to be started as processes.
struct process_launch {
  int ranks = 1;
  std::vector<std::string>
      command;  ///< program (looked up in PATH) and arguments, the same for every rank
  /// Variables to set besides UNTAX_RANK, UNTAX_WORLD_SIZE and UNTAX_RENDEZVOUS. The last is a new
  /// directory in XDG_RUNTIME_DIR, or in /tmp, unless it is set here or in the environment; then
  /// UNTAX_LAUNCH distinguishes the ranks from other ranks that meet there.
  std::vector<std::pair<std::string, std::string>> variables;
  /// The time for which other ranks may continue after one has failed, or after an interrupt. Then
  /// they are killed.
  std::chrono::milliseconds grace{5000};
  /// The limit of the whole run, after which all ranks are killed; 0: none.
  std::chrono::milliseconds limit{0};
  /// Receives the output of the ranks on stdout and stderr, line by line without the end of line,
  /// in the calling thread. If it is empty, the ranks write to those of this process.
  std::function<void(int rank, std::string_view line)> output;
};

/// The end of a rank's process.
struct process_end {
  int rank = -1;
  int exit_code = -1;   ///< -1 if a signal ended it, or if it is not known
  int signal = 0;       ///< the signal that ended it; 0 if none did, or if it is not known
  bool killed = false;  ///< whether the launcher killed it, after the grace or the limit

  /// Whether it exited with code 0.
  [[nodiscard]] bool ok() const noexcept { return exit_code == 0; }
  /// "rank 2 exited with code 3", "rank 2 was ended by signal 9 (Killed)".
  [[nodiscard]] std::string text() const;
};

/// The ends of all ranks.
struct launch_result {
  std::vector<process_end> ends;  ///< by rank
  /// The rank that failed first, or -1. If the launcher finds several failures at the same time, it
  /// is a rank that a signal ended.
  int first_failure = -1;
  int interrupt =
      0;  ///< SIGINT, SIGTERM or SIGHUP, if one arrived meanwhile and was passed on to the ranks

  /// Whether all ranks succeeded without an interrupt.
  [[nodiscard]] bool ok() const noexcept { return first_failure < 0 && interrupt == 0; }
};

/// Starts the ranks, which call `world::from_environment`, and waits for all of them. They die with
/// the calling thread. No process, descriptor or directory is left when it returns or throws.
/// During the call, SIGINT, SIGTERM and SIGHUP are passed on to the ranks, and SIGCHLD is not
/// ignored. Throws `invalid_argument` if the number of ranks is not possible or the command cannot
/// be started, `unsupported` if another launch of this process is running, and `out_of_memory` if
/// the system refuses a process.
[[nodiscard]] launch_result launch_processes(const process_launch& launch);

}  // namespace untax
