#include <untax/world/placement.hpp>

#include <array>
#include <filesystem>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/flow/control_block.hpp>

#include "launch_place.hpp"
#include "process_identity.hpp"
#include "src/core/launcher_variables.hpp"

namespace untax {
namespace {

std::string setting(const environment& env, const environment_variable& v) {
  return fmt::format("{}={}", v.name, env.text(v).value_or(""));
}

std::string torch_job(const environment& env) {
  const auto part = [&env](const environment_variable& v) { return env.text(v).value_or(""); };
  return fmt::format("{}:{} {} {}", part(variable::torch_address), part(variable::torch_port),
                     part(variable::torch_run), part(variable::torch_restart));
}

// torchrun makes a directory for the errors of each launch: .../attempt_0/3/error.json of rank 3.
// The user chooses the name of a run; without one it is "none".
std::string torch_launch(const environment& env) {
  if (const auto errors = env.text(variable::torch_errors)) {
    const std::filesystem::path of_rank = std::filesystem::path(*errors).parent_path();
    return fmt::format("{} in {}", variable::torch_errors.name, of_rank.parent_path().string());
  }
  const auto run = env.text(variable::torch_run);
  return run && *run != "none" ? setting(env, variable::torch_run) : "";
}

std::string open_mpi_launch(const environment& env) {
  return env.has(variable::open_mpi_job) ? setting(env, variable::open_mpi_job) : "";
}

std::string slurm_launch(const environment& env) {
  if (!env.has(variable::slurm_job)) return "";
  return setting(env, variable::slurm_job) + " " + setting(env, variable::slurm_step);
}

std::string slurm_job(const environment& env) {
  return fmt::format("{}.{}", env.text(variable::slurm_job).value_or(""),
                     env.text(variable::slurm_step).value_or(""));
}

/// The variables by which a launcher tells processes their ranks.
struct launcher {
  const char* name;
  const environment_variable* rank;
  const environment_variable* size;
  const environment_variable* here;   // ranks on this host; null if the launcher does not give them
  const environment_variable* hosts;  // null if the launcher does not give them
  std::string (*job)(const environment& env);
  std::string (*launch)(const environment& env);  // an id of the launch, or ""
};

std::string nothing(const environment& /*env*/) { return ""; }

std::string flux_launch(const environment& env) {
  return env.has(variable::flux_job) ? setting(env, variable::flux_job) : "";
}

constexpr std::array<launcher, 7> launchers = {{
    {"untax", &variable::rank, &variable::world_size, nullptr, nullptr, nothing, nothing},
    {"torchrun", &variable::torch_rank, &variable::torch_world_size, &variable::torch_local_size,
     nullptr, torch_job, torch_launch},
    {"Open MPI", &variable::open_mpi_rank, &variable::open_mpi_size, &variable::open_mpi_local_size,
     nullptr, open_mpi_launch, open_mpi_launch},
    {"MVAPICH", &variable::mvapich_rank, &variable::mvapich_size, &variable::mvapich_local_size,
     nullptr, nothing, nothing},
    {"MPICH", &variable::pmi_rank, &variable::pmi_size, &variable::pmi_local_size, nullptr, nothing,
     nothing},
    {"Flux", &variable::flux_rank, &variable::flux_size, nullptr, &variable::flux_nodes,
     flux_launch, flux_launch},
    {"Slurm", &variable::slurm_rank, &variable::slurm_size, nullptr, &variable::slurm_nodes,
     slurm_job, slurm_launch},
}};

/// Rank variables that only launchers set. A process with one of them, and no number of ranks, is
/// not alone.
constexpr std::array ranks_of_launchers = {&variable::open_mpi_rank, &variable::mvapich_rank,
                                           &variable::pmi_rank,      &variable::flux_rank,
                                           &variable::pals_rank,     &variable::pmix_rank};

void refuse_unknown_size(const environment& env) {
  for (const environment_variable* rank : ranks_of_launchers) {
    if (!env.has(*rank)) continue;
    throw error(errc::invalid_argument,
                fmt::format("a launcher has set {}, and no variable with the number of ranks that "
                            "is known; set {} and {} for each rank, or to 0 and 1 to run alone",
                            setting(env, *rank), variable::rank.name, variable::world_size.name));
  }
}

// Batch scripts and interactive shells of Slurm run in steps with reserved numbers, and are not
// ranks.
bool in_slurm_shell(const environment& env) {
  constexpr std::int64_t first_reserved = 0xfffffff0;
  return env.number(variable::slurm_step, 0, 0xffffffff).value_or(first_reserved) >= first_reserved;
}

bool applies(const launcher& l, const environment& env) {
  if (l.rank == &variable::slurm_rank && in_slurm_shell(env)) return false;
  if (env.has(*l.rank) && env.has(*l.size)) return true;
  // Other programs may use names such as RANK, but only untax uses these two.
  if (l.rank == &variable::rank && (env.has(*l.rank) || env.has(*l.size))) {
    throw error(errc::invalid_argument,
                fmt::format("{} and {} have to be set together", l.rank->name, l.size->name));
  }
  return false;
}

void refuse_other_hosts(const launcher& l, const environment& env, int size) {
  const bool several_hosts = l.hosts != nullptr && env.number(*l.hosts, 1, 1 << 30).value_or(1) > 1;
  const auto local_ranks = l.here != nullptr ? env.number(*l.here, 1, 1 << 30) : std::nullopt;
  if (!several_hosts && (!local_ranks || *local_ranks == size)) return;
  const environment_variable& v = several_hosts ? *l.hosts : *l.here;
  throw error(errc::unsupported, fmt::format("{} started {} ranks on several hosts ({} is {}); "
                                             "untax needs all ranks of a world on one host",
                                             l.name, size, v.name, env.text(v).value_or("")));
}

std::string launch_of(const launcher& l, const environment& env) {
  if (env.has(variable::launch)) return setting(env, variable::launch);
  const std::filesystem::path place = env.text(variable::rendezvous).value_or("");
  if (place.filename().string().starts_with(launch_directory)) return place;
  const std::string told = l.launch(env);
  return told.empty() ? launcher_process(setting(env, *l.rank)) : told;
}

}  // namespace

placement placement_from(const environment& env) {
  for (const launcher& l : launchers) {
    if (!applies(l, env)) continue;
    placement p;
    p.launcher = l.name;
    p.world_size = static_cast<int>(env.number_or_fallback(*l.size, 1, max_ranks));
    p.rank = static_cast<int>(env.number_or_fallback(*l.rank, 0, p.world_size - 1));
    refuse_other_hosts(l, env, p.world_size);
    p.job = fmt::format("{} {}", l.name, l.job(env));
    p.launch = launch_of(l, env);
    p.rendezvous = env.text(variable::rendezvous).value_or("");
    return p;
  }
  refuse_unknown_size(env);
  return {};
}

}  // namespace untax
