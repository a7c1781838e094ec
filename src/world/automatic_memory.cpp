#include "automatic_memory.hpp"

#include <untax/core/error.hpp>

#include "src/symmetric/device_memory.hpp"

namespace untax {

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
