#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <untax/taxes/machine.hpp>
#include <untax/world/devices.hpp>

#include "ops/common/memory_need.hpp"

namespace untax {

/// An amount of available memory.
struct memory_room {
  double bytes = 0;
  std::string where;  ///< "on this machine", "on GPU 0"
};

/// The memory that this process may still take, within the limits of its control groups.
[[nodiscard]] memory_room room_of(const machine_facts& machine);
[[nodiscard]] memory_room room_on_host();
/// The address space that `ulimit -v` leaves. Heaps count whole in it, not only their used part.
[[nodiscard]] memory_room room_of_addresses();
/// The least free memory of the GPUs of `ranks` ranks, for each of `sharing` ranks on a GPU.
/// Infinite if no device is known.
[[nodiscard]] memory_room room_of(const std::vector<device_facts>& devices, int ranks, int sharing);
[[nodiscard]] memory_room room_on_gpus(int ranks);

/// An alternative that an error may suggest.
struct remedy {
  std::string text;  ///< "give one --pattern"
  memory_need need;  ///< memory that the alternative needs
};

/// Throws `out_of_memory` if `need` exceeds `room`. The error names the needs, the room, and those
/// of `remedies` that fit, or `otherwise` if none does.
void require_room(std::string_view what, const memory_need& need, const memory_room& room,
                  const std::vector<remedy>& remedies, std::string_view otherwise);

/// Throws `out_of_memory` if a rank needs a larger heap than `heap_bytes`, which UNTAX_HEAP_BYTES
/// sets. `suggested` is a number of bytes that is surely enough.
void require_heap(std::string_view what, const memory_need& need, double heap_bytes,
                  double suggested);

}  // namespace untax
