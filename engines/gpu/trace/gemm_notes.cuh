#pragma once

#include <cstdint>

#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/trace/kernel_events.cuh"

// Events that the GEMM kernel records.

namespace untax::gpu {

/// The role of a warp of the GEMM kernel. The first warp of an MMA warpgroup records for all of it.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr warp_role role_in_gemm(bool of_comm_cta, int warp) {
  if (of_comm_cta) return warp_role::sender;
  if (warp % 4 == 0) return warp == 0 ? warp_role::producer : warp_role::multiplier;
  if (warp > 4) return warp_role::none;
  return warp == 3 ? warp_role::poller : warp_role::epilogue;
}

/// All threads call this when the kernels ahead have ended. `before` is the number of the previous
/// run. Blocks with numbers below `comm_ctas` are communication CTAs.
__device__ inline void note_gemm_begin(const launch_trace& trace, int comm_ctas,
                                       const std::uint64_t& before, int cluster) {
  note_kernel_begin_behind(
      trace,
      role_in_gemm(static_cast<int>(blockIdx.x) < comm_ctas, static_cast<int>(threadIdx.x) / 32),
      before, cluster);
}
/// As above, for a GEMM that is a whole run. Only its MMA and epilogue warps record events.
__device__ inline void note_gemm_begin(const launch_trace& trace, int cluster) {
  const warp_role role = role_in_gemm(false, static_cast<int>(threadIdx.x) / 32);
  const bool notes = role == warp_role::multiplier || role == warp_role::epilogue;
  note_kernel_begin(trace, notes ? role : warp_role::none, 0, 0, cluster);
}

/// The trace arguments of a launch. Callers copy them: a kernel argument that is accessed through
/// its address is loaded from memory, as late as any other data.
template <class Given>
[[nodiscard]] __device__ const launch_trace& trace_of(const Given& given) {
  if constexpr (requires { given.moved.run; }) {
    return given.moved.run;
  } else {
    return given;
  }
}

/// Records the action of a role on a tile, from the arrival of its first stage on. One thread calls
/// this, or all of an MMA warp. Both events are recorded at the end, when nothing awaits the warp.
template <bool traced>
class tile_note_of {
 public:
  __device__ tile_note_of(const launch_trace& /*trace*/, stage_barrier& /*first*/,
                          std::uint32_t /*parity*/, action /*what*/ = action::multiply) {}
};
template <>
class tile_note_of<true> {
 public:
  __device__ tile_note_of(const launch_trace& trace, stage_barrier& first, std::uint32_t parity,
                          action what = action::multiply)
      : table_(rings_of(trace)), what_(what) {
    if (table_.places == nullptr) return;
    if (detail::lane_of_thread() == 0) detail::settle(table_, detail::state_of_warp());
    first.wait(parity);
    begin_ = cuda_memory::now();
  }
  tile_note_of(const tile_note_of&) = delete;
  tile_note_of& operator=(const tile_note_of&) = delete;
  __device__ ~tile_note_of() {
    if (table_.places == nullptr) return;
    detail::noting_state& state = detail::state_of_warp();
    if (detail::lane_of_thread() == 0 && state.at.ring != 0) {
      const std::uint32_t noted = state.noted;
      detail::write_event(table_, state.at, noted, begin_,
                          event_word::begin(trace_kind::action, static_cast<int>(what_)));
      detail::write_event(table_, state.at, noted + 1, cuda_memory::now(),
                          event_word::end(trace_kind::action));
      state.noted = noted + 2;
    }
    if (what_ == action::multiply) __syncwarp();
  }

 private:
  const ring_table& table_;
  action what_;
  std::uint64_t begin_ = 0;
};
using tile_note = tile_note_of<kernels_are_traced>;

}  // namespace untax::gpu
