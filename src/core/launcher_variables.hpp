#pragma once

#include <untax/core/environment.hpp>

/// Variables of launchers that only the placement of a process and the list of all variables need.
namespace untax::variable {
// clang-format off

inline constexpr environment_variable mvapich_rank{"MV2_COMM_WORLD_RANK", "MVAPICH: rank", ""};
inline constexpr environment_variable mvapich_size{"MV2_COMM_WORLD_SIZE", "MVAPICH: number of ranks", ""};
inline constexpr environment_variable mvapich_local_size{
    "MV2_COMM_WORLD_LOCAL_SIZE", "MVAPICH: number of ranks on this host", ""};

inline constexpr environment_variable flux_rank{"FLUX_TASK_RANK", "Flux: rank", ""};
inline constexpr environment_variable flux_size{"FLUX_JOB_SIZE", "Flux: number of ranks", ""};
inline constexpr environment_variable flux_nodes{"FLUX_JOB_NNODES", "Flux: number of hosts", ""};
inline constexpr environment_variable flux_job{"FLUX_JOB_ID", "Flux: the job's name", ""};

// The following variables come without a number of ranks, so a process that has no others is
// refused.
inline constexpr environment_variable pals_rank{"PALS_RANKID", "PALS: rank; refused without PMI_SIZE", ""};
inline constexpr environment_variable pmix_rank{
    "PMIX_RANK", "PMIx: rank; refused without the variables of Open MPI or Slurm", ""};

// clang-format on
}  // namespace untax::variable
