#include <unistd.h>

#include <fmt/format.h>

#include <untax/world/placement.hpp>
#include <untax/world/world.hpp>

#include "bootstrap.hpp"
#include "member.hpp"
#include "own_share.hpp"
#include "process_liveness.hpp"

namespace untax {
namespace {

// Maps the device memory of all ranks. The other ranks are in the first barrier by now, so a
// failure stops the world with its reason.
void map_devices(const placement& p, own_share& mine, membership& m) {
  device_shares shares;
  for (const descriptor& d : m.shares) shares.descriptors.push_back(d.get());
  shares.ids = m.devices;
  try {
    m.memory.put_arenas(
        arenas_of_processes(m.memory, p.rank, mine.device, std::move(mine.memory), shares));
    use_device(mine.device);
  } catch (const error& e) {
    control(m.memory.control(), m.memory.ranks()).stop({p.rank, p.rank, e.code(), e.what()});
    throw;
  }
}

}  // namespace

world world::from_environment(const world_options& options, const environment& env) {
  return member::meet_processes(placement_from(env), settings::of(options, env), env);
}

world world::member::meet_processes(const placement& p, settings s, const environment& env) {
  if (s.memory == memory_kind::automatic) {
    s.memory = memory_for(p.world_size, found_devices(), env.has(variable::visible_devices));
  }
  const bool on_devices = s.memory == memory_kind::cuda;
  if (p.world_size == 1) {
    world alone =
        std::move((on_devices ? member::local_gpus(1, s) : member::threads(1, s)).front());
    alone.use_device();
    return alone;
  }

  own_share mine = own_share::make(p, s);
  meeting_place place(p, env);
  membership m = p.rank == 0 ? gather_ranks(p, s, mine, place) : join_rank_0(p, s, mine, place);
  m.memory.close_descriptor();
  if (on_devices) map_devices(p, mine, m);
  const auto memory = std::make_shared<segment>(std::move(m.memory));
  auto alive = std::make_unique<process_liveness>(m.processes);
  const liveness* watched = alive.get();
  world joined(std::make_shared<member>(memory, p.rank, "processes", s, std::move(alive)));
  if (on_devices) {
    joined.member_->offers = share_exchange::of_processes(p.rank, p.world_size, std::move(m.links));
    joined.member_->monitor =
        std::make_shared<device_monitor>(memory, std::vector<int>{p.rank}, s.wait_limit, watched);
  }
  joined.member_->state.set_process(p.rank, getpid());
  joined.member_->state.set_status(p.rank, rank_status::running);
  joined.barrier();
  return joined;
}

}  // namespace untax
