#pragma once

#include <memory>
#include <optional>
#include <string>

#include <untax/core/error.hpp>
#include <untax/world/placement.hpp>

#include "settings.hpp"
#include "src/symmetric/device_memory.hpp"

namespace untax {

/// Throws `invalid_argument` unless a device that was asked for is one of the `found` ones.
void require_visible(int device, int found);

/// What this process brings into a world: the division of memory it has in mind, and, for a world
/// of GPUs, the heap of its rank. If it cannot, the others hear why.
struct own_share {
  [[nodiscard]] static own_share make(const placement& p, const settings& s);

  segment_layout layout{};
  int device = -1;
  std::unique_ptr<device_share> memory;  ///< null where the heaps are in host memory
  std::string kind = "host memory";      ///< has to be the same at all ranks
  std::optional<error> trouble;

  /// -1 where there is none.
  [[nodiscard]] int descriptor() const noexcept { return memory ? memory->descriptor() : -1; }
  [[nodiscard]] device_id id() const noexcept { return memory ? memory->id() : device_id{}; }
};

}  // namespace untax
