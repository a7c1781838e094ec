#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/trace/event.hpp>

namespace untax::gpu {

/// Whether kernels can record events: a build with the CMake option UNTAX_KERNEL_TRACE. In any
/// other build nothing of it is in a kernel, nor among its arguments.
#ifdef UNTAX_KERNEL_TRACE
inline constexpr bool kernels_are_traced = true;
#else
inline constexpr bool kernels_are_traced = false;
#endif

/// What a warp knows of its ring between kernels. It lies in shared memory, too, so nothing makes
/// it.
struct alignas(16) ring_place {
  std::uint64_t noted;  ///< how many events ever
  std::uint32_t ring;   ///< 1 + its number; 0: none
  std::uint32_t runs;   ///< how many kernels it has been in
};

/// For tests: a signal that somebody else raises, later, so that it is long under way. In memory of
/// the host that kernels reach.
struct signal_tap {
  std::uint32_t armed = 0;    ///< by the host: the next signal is the one
  std::uint64_t value = 0;    ///< by the kernel: what it would have raised
  std::uint64_t counter = 0;  ///< and its address, as the rank sees it; 0: none yet
};

/// The rings of a rank's warps, in memory of its GPU. A warp takes one with its first kernel and
/// keeps it, so that it goes on in the next run; a launch may be replayed from a graph. Kernels of
/// a run that are given the same arguments are told apart by the threads of their blocks.
struct ring_table {
  static constexpr int most_blocks = 1024;
  static constexpr int most_warps = 16;
  static constexpr int groups = 2;  ///< of kernels
  static constexpr int place_count = groups * most_blocks * most_warps;

  trace_event* events = nullptr;    ///< `capacity` of each ring
  ring_place* places = nullptr;     ///< of each warp that may be; null: nothing is recorded
  std::uint32_t* taken = nullptr;   ///< how many rings warps have asked for
  std::uint32_t count = 0;          ///< of rings
  std::uint32_t capacity = 0;       ///< a power of two
  std::uint32_t group_threads = 0;  ///< of a block of the first group of kernels
  signal_tap* tap = nullptr;        ///< null but in tests
  std::uint64_t* tapped = nullptr;  ///< with one: whether it has its signal; what is raised instead

  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int place(int group, int block,
                                                             int warp) noexcept {
    return (group * most_blocks + block) * most_warps + warp;
  }
};

/// What a launch is given to record with.
template <bool traced>
struct launch_trace_of {
  ring_table rings;  ///< null pointers: no trace is recorded
};
template <>
struct launch_trace_of<false> {};
using launch_trace = launch_trace_of<kernels_are_traced>;

/// For a kernel whose blocks have as many threads as those of the first group, beside which it
/// runs.
inline void use_second_group(launch_trace_of<true>& trace) { trace.rings.group_threads = 0; }
inline void use_second_group(launch_trace_of<false>& /*trace*/) {}

}  // namespace untax::gpu
