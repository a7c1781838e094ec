#pragma once

#include <string>

#include <untax/core/environment.hpp>

namespace untax {

/// What a launcher says about this process.
struct placement {
  int rank = 0;
  int world_size = 1;
  std::string
      launcher;     ///< "untax", "torchrun", "Open MPI", "MPICH", "Slurm"; empty if there is none
  std::string job;  ///< its name: the same for the ranks of a job, and for jobs named the same
  std::string launch;      ///< what only ranks of the same launch can say
  std::string rendezvous;  ///< the directory to meet in, if one is prescribed
  bool once = false;       ///< nobody else ever meets there, for no other world either
};

/// Reads the variables of the known launchers, innermost first. Throws `invalid_argument` for
/// values that make no sense, and `unsupported` if the job spans several hosts.
[[nodiscard]] placement placement_from(const environment& env);

}  // namespace untax
