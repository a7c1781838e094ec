#pragma once

#include <memory>
#include <optional>
#include <string>

#include <untax/core/error.hpp>
#include <untax/core/memory_kind.hpp>
#include <untax/world/placement.hpp>

#include "settings.hpp"
#include "src/symmetric/device_memory.hpp"

namespace untax {

/// Throws `invalid_argument` unless `device` is from 0 to `visible` - 1.
void require_visible(int device, int visible);

/// The contribution of this process to a world: its layout and, in a world of GPUs, the heap of its
/// rank. If it cannot contribute, `trouble` is the reason, which the other ranks get.
struct own_share {
  [[nodiscard]] static own_share make(const placement& p, const settings& s);

  segment_layout layout{};
  int device = -1;
  std::unique_ptr<device_share> memory;  ///< null if the heaps are in host memory
  std::string kind = "host memory";      ///< has to be the same at all ranks
  std::optional<error> trouble;

  /// The descriptor of the memory; -1 if there is none.
  [[nodiscard]] int descriptor() const noexcept { return memory ? memory->descriptor() : -1; }
  [[nodiscard]] device_id id() const noexcept { return memory ? memory->id() : device_id{}; }
};

/// The number of GPUs that this process can use; 0 in a build without CUDA.
[[nodiscard]] int found_devices();

/// The meaning of memory_kind::automatic for `ranks` processes of this host, of which this one sees
/// `devices` GPUs. It is cuda if there is a GPU for each, or if a launcher has chosen a single one
/// for this process (`chosen`: CUDA_VISIBLE_DEVICES is set). If processes come to different
/// results, the error at their meeting says so.
[[nodiscard]] memory_kind memory_for(int ranks, int devices, bool chosen) noexcept;

}  // namespace untax
