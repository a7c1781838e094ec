#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <untax/taxes/machine.hpp>
#include <untax/world/devices.hpp>

#include "ops/common/memory_need.hpp"

namespace untax {

/// Memory that there is.
struct memory_room {
  double bytes = 0;
  std::string where;  ///< "on this machine", "on GPU 0"
};

/// What this process may still take of the machine and of its control groups.
[[nodiscard]] memory_room room_of(const machine_facts& machine);
[[nodiscard]] memory_room room_on_host();
/// What `ulimit -v` leaves of its address space, where whole heaps count, not what is used of them.
[[nodiscard]] memory_room room_of_addresses();
/// Of the GPU of the first `ranks` that has least, for each of `sharing` ranks that share it.
/// All there is where nothing is known of it.
[[nodiscard]] memory_room room_of(const std::vector<device_facts>& devices, int ranks, int sharing);
[[nodiscard]] memory_room room_on_gpus(int ranks);

/// Something else that could be asked for.
struct remedy {
  std::string text;  ///< "give one --pattern"
  memory_need need;  ///< that it would have
};

/// Throws `out_of_memory` where `need` is more than there is: what needs how much for what, what
/// there is, and those of `remedies` that fit; if none does, `otherwise`.
void require_room(std::string_view what, const memory_need& need, const memory_room& room,
                  const std::vector<remedy>& remedies, std::string_view otherwise);

/// Throws `out_of_memory` where a rank needs a larger heap than UNTAX_HEAP_BYTES says.
/// `suggested`: bytes that are surely enough.
void require_heap(std::string_view what, const memory_need& need, double heap_bytes,
                  double suggested);

}  // namespace untax
