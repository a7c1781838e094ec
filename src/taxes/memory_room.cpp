#include "src/taxes/memory_room.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

namespace untax {
memory_room room_of(const machine_facts& machine) {
  // If /proc cannot be read, the room is unknown, and nothing is refused.
  const double bytes = machine.memory_bytes == 0 ? std::numeric_limits<double>::infinity()
                                                 : static_cast<double>(machine.memory_available);
  return {bytes, "on this machine"};
}

memory_room room_on_host() { return room_of(read_machine()); }

memory_room room_of_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return {std::numeric_limits<double>::infinity(), "without a limit"};
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const double taken = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {std::max(0.0, static_cast<double>(limit.rlim_cur) - taken),
          "in the address space that `ulimit -v` leaves"};
}

memory_room room_of(const std::vector<device_facts>& devices, int ranks, int sharing) {
  memory_room least{std::numeric_limits<double>::infinity(), "on a GPU"};
  const std::size_t used =
      std::min(devices.size(), static_cast<std::size_t>((ranks + sharing - 1) / sharing));
  for (std::size_t i = 0; i < used; ++i) {
    const double each = static_cast<double>(devices[i].memory_free) / std::min(sharing, ranks);
    if (each >= least.bytes) continue;
    least = {each, sharing == 1 ? fmt::format("free on GPU {}", i)
                                : fmt::format("free on GPU {} for each of {} ranks", i, sharing)};
  }
  return least;
}

memory_room room_on_gpus(int ranks) {
  constexpr int most_sharing = 8;
  const auto sharing =
      static_cast<int>(environment().number_or_fallback(variable::ranks_per_gpu, 1, most_sharing));
  return room_of(survey_devices(false).devices, ranks, sharing);
}

void require_room(std::string_view what, const memory_need& need, const memory_room& room,
                  const std::vector<remedy>& remedies, std::string_view otherwise) {
  if (need.total() <= room.bytes) return;
  std::string advice;
  for (const remedy& r : remedies) {
    if (r.need.total() > room.bytes) continue;
    advice += fmt::format("{}{}, which needs {}", advice.empty() ? "" : ", or ", r.text,
                          memory_text(r.need.total()));
  }
  throw error(errc::out_of_memory,
              fmt::format("{} needs {} of memory ({}), and {} is free {}; {}", what,
                          memory_text(need.total()), need.text(), memory_text(room.bytes),
                          room.where, advice.empty() ? otherwise : advice));
}

void require_heap(std::string_view what, const memory_need& need, double heap_bytes,
                  double suggested) {
  if (need.heap_of_rank <= heap_bytes) return;
  const double enough = std::ceil(std::max(suggested, need.heap_of_rank) / 0x1p20);
  throw error(errc::out_of_memory,
              fmt::format("{} needs at least {} of symmetric heap in each rank, and {} is {}; "
                          "leave it unset, or set it to {:.0f}M",
                          what, memory_text(need.heap_of_rank), variable::heap_bytes.name,
                          memory_text(heap_bytes), enough));
}

}  // namespace untax
