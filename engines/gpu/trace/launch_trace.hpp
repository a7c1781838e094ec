#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/trace/event.hpp>

namespace untax::gpu {

/// Whether kernels can record events: a build with the CMake option UNTAX_KERNEL_TRACE. In any
/// other build, kernels and their arguments contain no trace.
#ifdef UNTAX_KERNEL_TRACE
inline constexpr bool kernels_are_traced = true;
#else
inline constexpr bool kernels_are_traced = false;
#endif

/// The state of a warp's ring between kernels. It has no initialisers, since it is also copied to
/// shared memory.
struct alignas(16) ring_place {
  std::uint64_t noted;  ///< number of events ever recorded
  std::uint32_t ring;   ///< 1 + its number; 0: none
  std::uint32_t runs;   ///< number of kernels that the warp has run
};

/// For tests: a signal that the host raises later, instead of the kernel, so that it takes long.
/// Lies in mapped host memory.
struct signal_tap {
  std::uint32_t armed = 0;    ///< set by the host: intercept the next signal
  std::uint64_t value = 0;    ///< set by the kernel: the value of the signal
  std::uint64_t counter = 0;  ///< set by the kernel: its counter, as mapped at the rank; 0: none
};

/// The rings of a rank's warps, in memory of its GPU. A warp takes a ring in its first kernel and
/// keeps it for the next runs; a launch may be replayed from a graph. Kernels of a run with the
/// same arguments are distinguished by the number of threads per block.
struct ring_table {
  static constexpr int most_blocks = 1024;
  static constexpr int most_warps = 16;
  static constexpr int groups = 2;  ///< groups of kernels
  static constexpr int place_count = groups * most_blocks * most_warps;

  trace_event* events = nullptr;    ///< `capacity` per ring
  ring_place* places = nullptr;     ///< one per possible warp; null: nothing is recorded
  std::uint32_t* taken = nullptr;   ///< number of rings that warps have tried to take
  std::uint32_t count = 0;          ///< number of rings
  std::uint32_t capacity = 0;       ///< events per ring, a power of two
  std::uint32_t group_threads = 0;  ///< threads per block of the first group of kernels
  signal_tap* tap = nullptr;        ///< null except in tests
  std::uint64_t* tapped = nullptr;  ///< for `tap`: the counter that was intercepted, and the one
                                    ///< used instead

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int place(int group, int block,
                                                             int warp) noexcept {
    return (group * most_blocks + block) * most_warps + warp;
  }
};

/// The arguments of a launch for recording events.
template <bool traced>
struct launch_trace_of {
  ring_table rings;  ///< null pointers: no trace is recorded
};
template <>
struct launch_trace_of<false> {};
using launch_trace = launch_trace_of<kernels_are_traced>;

/// Makes a launch record in the second group: for a kernel that runs beside the first group and has
/// the same number of threads per block.
inline void use_second_group(launch_trace_of<true>& trace) { trace.rings.group_threads = 0; }
inline void use_second_group(launch_trace_of<false>& /*trace*/) {}

}  // namespace untax::gpu
