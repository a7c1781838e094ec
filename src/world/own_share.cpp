#include "own_share.hpp"

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/flow/control.hpp>

#include "src/symmetric/device_memory.hpp"

namespace untax {

void require_visible(int device, int visible) {
  if (device >= 0 && device < visible) return;
  throw error(errc::invalid_argument,
              fmt::format("option device is {}; {} visible to this process, counted from 0", device,
                          visible == 1 ? "1 GPU is" : fmt::format("{} GPUs are", visible)));
}

own_share own_share::make(const placement& p, const settings& s) {
  own_share mine;
  mine.layout = {p.world_size, control::bytes(p.world_size), s.heap_bytes};
  if (s.memory == memory_kind::host) return mine;
  try {
    // A world is on one host, so its ranks count as the launcher's local ranks.
    const int visible = visible_devices();
    mine.device = s.device.value_or(p.rank % visible);
    require_visible(mine.device, visible);
    mine.layout = device_layout(p.world_size, mine.layout.control_bytes, s.heap_bytes, s.heap_limit,
                                mine.device);
    mine.kind = fmt::format("memory of {} in pages of {} bytes", device_name(mine.device),
                            mine.layout.arena_page);
    mine.memory = device_share::make(p.rank, mine.device, mine.layout.first_span(), true);
  } catch (const error& e) {
    const std::string prefix = fmt::format("rank {}: ", p.rank);
    const std::string_view text = e.what();
    mine.trouble.emplace(e.code(), text.starts_with(prefix) ? e.what() : prefix + e.what());
  }
  return mine;
}

int found_devices() {
  try {
    return visible_devices();
  } catch (const error&) {
    return 0;
  }
}

memory_kind memory_for(int ranks, int devices, bool chosen) noexcept {
  const bool one_each = devices >= ranks || (chosen && devices == 1);
  return one_each ? memory_kind::cuda : memory_kind::host;
}

}  // namespace untax
