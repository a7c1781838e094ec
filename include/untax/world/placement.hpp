#pragma once

#include <string>

#include <untax/core/environment.hpp>

namespace untax {

/// The place of this process in its world, according to the variables of a launcher.
struct placement {
  int rank = 0;
  int world_size = 1;
  /// "untax", "torchrun", "Open MPI", "MVAPICH", "MPICH", "Flux", "Slurm"; empty if there is none
  std::string launcher;
  std::string job;  ///< the name of the job, the same for all of its ranks; other jobs may have the
                    ///< same name
  std::string launch;      ///< a text that only ranks of the same launch have
  std::string rendezvous;  ///< the directory in which ranks meet, if one is prescribed
  bool once = false;       ///< whether no other world ever meets in that directory
};

/// Reads the variables of the known launchers, innermost first. Without a launcher the process is
/// rank 0 of 1. Throws `invalid_argument` for values that are wrong and for a rank without a number
/// of ranks, and `unsupported` if the job spans several hosts.
[[nodiscard]] placement placement_from(const environment& env);

}  // namespace untax
