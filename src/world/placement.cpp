#include <untax/world/placement.hpp>

#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/flow/control_block.hpp>

namespace untax {
namespace {

// All ranks that a launcher starts on this host are its children.
std::string parent() { return fmt::format("child of {}", getppid()); }

std::string torch_job(const environment& env) {
  if (!env.has(variable::torch_port)) return parent();
  const auto part = [&env](const environment_variable& v) { return env.text(v).value_or(""); };
  return fmt::format("{}:{} {} {}", part(variable::torch_address), part(variable::torch_port),
                     part(variable::torch_run), part(variable::torch_restart));
}

std::string slurm_job(const environment& env) {
  return fmt::format("{}.{}", env.text(variable::slurm_job).value_or(""),
                     env.text(variable::slurm_step).value_or(""));
}

/// How one launcher tells its processes who they are.
struct launcher {
  const char* name;
  const environment_variable* rank;
  const environment_variable* size;
  const environment_variable* here;  // ranks on this host, where the launcher tells
  std::string (*job)(const environment& env);
};

constexpr std::array<launcher, 5> launchers = {{
    {"untax", &variable::rank, &variable::world_size, nullptr,
     [](const environment&) { return parent(); }},
    {"torchrun", &variable::torch_rank, &variable::torch_world_size, &variable::torch_local_size,
     torch_job},
    {"Open MPI", &variable::open_mpi_rank, &variable::open_mpi_size, &variable::open_mpi_local_size,
     [](const environment& env) { return env.text(variable::open_mpi_job).value_or(parent()); }},
    {"MPICH", &variable::pmi_rank, &variable::pmi_size, &variable::pmi_local_size,
     [](const environment&) { return parent(); }},
    {"Slurm", &variable::slurm_rank, &variable::slurm_size, nullptr, slurm_job},
}};

// Batch scripts and interactive shells of Slurm run in steps with reserved numbers, and are not
// ranks of anything.
bool in_slurm_shell(const environment& env) {
  constexpr std::int64_t first_reserved = 0xfffffff0;
  return env.number(variable::slurm_step, 0, 0xffffffff).value_or(first_reserved) >= first_reserved;
}

bool applies(const launcher& l, const environment& env) {
  if (l.rank == &variable::slurm_rank && in_slurm_shell(env)) return false;
  if (env.has(*l.rank) && env.has(*l.size)) return true;
  // RANK and the like are common words, but nobody else uses these two.
  if (l.rank == &variable::rank && (env.has(*l.rank) || env.has(*l.size))) {
    throw error(errc::invalid_argument,
                fmt::format("{} and {} have to be set together", l.rank->name, l.size->name));
  }
  return false;
}

void refuse_other_hosts(const launcher& l, const environment& env, int size) {
  const bool slurm = l.rank == &variable::slurm_rank;
  const bool several_hosts = slurm && env.number(variable::slurm_nodes, 1, 1 << 30).value_or(1) > 1;
  const auto here = l.here != nullptr ? env.number(*l.here, 1, 1 << 30) : std::nullopt;
  if (!several_hosts && (!here || *here == size)) return;
  const environment_variable& v = slurm ? variable::slurm_nodes : *l.here;
  throw error(errc::unsupported, fmt::format("{} started {} ranks on several hosts ({} is {}); "
                                             "untax needs all ranks of a world on one host",
                                             l.name, size, v.name, env.text(v).value_or("")));
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
    p.rendezvous = env.text(variable::rendezvous).value_or("");
    return p;
  }
  return {};
}

}  // namespace untax
