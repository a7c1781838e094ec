#include <unistd.h>

#include <untax/world/placement.hpp>
#include <untax/world/world.hpp>

#include "bootstrap.hpp"
#include "member.hpp"
#include "process_liveness.hpp"

namespace untax {

world world::from_environment(const world_options& options, const environment& env) {
  const placement p = placement_from(env);
  const settings s = settings::of(options, env);
  if (p.world_size == 1) return std::move(member::threads(1, s).front());

  meeting_place place(p, env);
  membership m = p.rank == 0 ? gather_ranks(p, s, place) : join_rank_0(p, s, place);
  m.memory.close_descriptor();
  auto alive = std::make_unique<process_liveness>(m.processes);
  world joined(std::make_unique<member>(std::make_shared<segment>(std::move(m.memory)), p.rank,
                                        "processes", s, std::move(alive)));
  joined.member_->state.set_process(p.rank, getpid());
  joined.member_->state.set_status(p.rank, rank_status::running);
  joined.barrier();
  return joined;
}

}  // namespace untax
