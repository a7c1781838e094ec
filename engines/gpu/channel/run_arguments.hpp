#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/core/reduction.hpp>
#include <untax/core/types.hpp>
#include <untax/flow/device_control.hpp>
#include <untax/flow/name_ref.hpp>
#include <untax/symmetric/symmetric.hpp>

#include "engines/gpu/trace/launch_trace.hpp"

namespace untax::gpu {

/// The most ranks of a world whose GPUs access each other's memory.
inline constexpr int most_ranks = 16;

/// The arguments that all kernels of a run have in common.
struct run_arguments : launch_trace {
  device_control world;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::int64_t between =
      0;  ///< bytes from a rank's in and out to those of the next rank, if peers access them
  symmetric<std::byte> inbox;
  symmetric<std::uint64_t> counters;
  /// How often each block of this launch has run. A block raises its own word at its end. So a
  /// captured launch can be replayed, and no step over the whole grid is needed.
  std::uint64_t* epochs = nullptr;
  int element_bytes = 0;
  int launch = 0;  ///< the number of this launch in the run; negative: do nothing
  int name_size = 0;
  char name[32] = {};  ///< the operator's name, for wait records

  [[nodiscard]] UNTAX_HOST_DEVICE name_ref operator_name() const noexcept {
    name_ref text;
    text.data = name;
    text.size = static_cast<std::size_t>(name_size);
    return text;
  }
};

}  // namespace untax::gpu
