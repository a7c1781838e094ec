#include <numeric>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/types.hpp>
#include <untax/world/world.hpp>

#include "member.hpp"
#include "own_share.hpp"
#include "src/symmetric/device_memory.hpp"
#include "watching_tool.hpp"

namespace untax {

std::vector<world> world::local_gpus(int ranks, const world_options& options) {
  if (ranks < 1 || ranks > max_ranks) {
    throw error(errc::invalid_argument,
                fmt::format("a world of {} GPUs; it can have 1 to {}", ranks, max_ranks));
  }
  settings s = settings::of_gpus(options, environment());
  s.device.reset();
  return member::local_gpus(ranks, s);
}

std::vector<world> world::member::local_gpus(int ranks, const settings& s) {
  const int needed = ceil_div(ranks, s.ranks_per_gpu);
  if (const int gpus = visible_devices(); gpus < needed) {
    throw error(errc::unsupported,
                fmt::format("a world of {} GPUs, but {} {} visible to this process; {} lets ranks "
                            "share one, to try them out",
                            needed, gpus, gpus == 1 ? "is" : "are", variable::ranks_per_gpu.name));
  }
  if (s.device) require_visible(*s.device, visible_devices());
  if (s.ranks_per_gpu > 1) {
    // The query of devices has started CUDA, so the library of a tool is loaded by now.
    require_kernels_side_by_side(s.ranks_per_gpu, watching_tool());
    share_device_streams();
  }
  const auto memory = std::make_shared<segment>(segment::anonymous(device_layout(
      ranks, control::bytes(ranks), s.heap_bytes, s.heap_limit, s.device.value_or(0))));
  std::vector<int> devices(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    devices[static_cast<std::size_t>(rank)] = s.device.value_or(0) + rank / s.ranks_per_gpu;
  memory->put_arenas(arenas_of_this_process(*memory, devices));
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const auto monitor = std::make_shared<device_monitor>(memory, all, s.wait_limit, nullptr);
  const auto offers = share_exchange::of_threads(ranks);
  std::vector<world> views;
  for (const int rank : all) {
    views.push_back(world(std::make_shared<member>(memory, rank, "GPUs", s, nullptr)));
    views.back().member_->monitor = monitor;
    views.back().member_->offers = offers;
    views.back().member_->state.set_status(rank, rank_status::running);
  }
  return views;
}

memory_kind world::memory() const noexcept { return member_->memory->layout().memory; }

int world::device() const noexcept {
  const device_arenas* devices = member_->memory->devices();
  return devices != nullptr ? devices->device_of(rank()) : -1;
}

int world::ranks_per_gpu() const noexcept { return member_->ranks_per_gpu; }

void world::use_device() const {
  if (const device_arenas* devices = member_->memory->devices()) devices->use(rank());
}

device_control world::device_state() const {
  const segment& memory = *member_->memory;
  const device_arenas* devices = memory.devices();
  if (devices == nullptr) {
    throw error(
        errc::unsupported,
        fmt::format("rank {}: kernels cannot take part in a world of {} in host memory; make "
                    "it with world::local_gpus, or with world_options::memory = cuda ({})",
                    rank(), kind(), variable::memory.name));
  }
  device_control c = member_->state.kernel_view(rank());
  const auto reached = [&]<class T>(T*& address) {
    address = static_cast<T*>(devices->address_on_device(rank(), address));
  };
  reached(c.records);
  reached(c.progress);
  reached(c.host_stop);
  reached(c.outcome);
  c.stop = memory.stop_word(rank());
  c.stop_span = memory.layout().arena_span();
  c.limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(wait_limit()).count());
  c.clock_offset = devices->clock_offset(rank());
  return c;
}

}  // namespace untax
