#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>
#include <untax/tile/step.hpp>

#include "engines/gpu/trace/event_word.hpp"
#include "engines/gpu/trace/launch_trace.hpp"

// What kernels note: begin and end of a kernel by each warp that has a role, of what it does, and
// of its waits, and each signal just before it is raised. An event is one store of 16 bytes, by one
// lane and without an atomic operation; where it goes says a count that the warp alone raises. In a
// build without UNTAX_KERNEL_TRACE all of it is empty.

namespace untax::gpu {

/// In other builds there are none, and nobody asks.
[[nodiscard]] __device__ inline const ring_table& rings_of(const launch_trace_of<true>& trace) {
  return trace.rings;
}
[[nodiscard]] __device__ inline ring_table rings_of(const launch_trace_of<false>& /*trace*/) {
  return {};
}

namespace detail {

/// The place of the calling warp in the table of rings; -1 if it has none.
[[nodiscard]] __device__ inline int place_of_warp(const ring_table& table) {
  const auto block = static_cast<int>(blockIdx.x);
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  if (table.rings == nullptr || block >= ring_table::most_blocks || warp >= ring_table::most_warps)
    return -1;
  return ring_table::place(blockDim.x == table.group_threads ? 0 : 1, block, warp);
}

[[nodiscard]] __device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % 32; }

/// By some lanes of a warp, together: those for which `mine` holds note `count` events each.
template <int count>
__device__ void note_events(const ring_table& table, bool mine, const ulonglong2 (&events)[count]) {
  const unsigned lanes = __activemask();
  const unsigned noting = __ballot_sync(lanes, mine ? 1 : 0);
  const int place = place_of_warp(table);
  if (noting == 0 || place < 0 || table.rings[place] == 0) return;
  const std::uint32_t ring = table.rings[place] - 1;
  const int lane = lane_of_thread();
  std::uint64_t& noted = table.noted[ring];
  const std::uint64_t before = noted;
  __syncwarp(lanes);
  if (mine) {
    const auto first = before + count * static_cast<unsigned>(__popc(noting & ((1U << lane) - 1)));
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const auto at = ring * std::uint64_t{table.capacity} + ((first + i) & (table.capacity - 1));
      *reinterpret_cast<ulonglong2*>(table.events + at) = events[i];
    }
  }
  if (lane == __ffs(static_cast<int>(lanes)) - 1)
    noted = before + count * static_cast<unsigned>(__popc(noting));
  __syncwarp(lanes);
}

/// Whether the calling lane is the first of those that came with it.
[[nodiscard]] __device__ inline bool is_first_lane() {
  return lane_of_thread() == __ffs(static_cast<int>(__activemask())) - 1;
}

__device__ inline void note_now(const ring_table& table, bool mine, const event_word& word) {
  note_events<1>(table, mine, {make_ulonglong2(cuda_memory::now(), word.bits)});
}

/// The warp takes a ring, if it has none, and there is one.
__device__ inline void take_ring(const ring_table& table) {
  const int place = place_of_warp(table);
  const unsigned lanes = __activemask();
  if (place >= 0 && is_first_lane() && table.rings[place] == 0) {
    const std::uint32_t ring = atomicAdd(table.taken, 1U);
    if (ring < table.count) table.rings[place] = ring + 1;
  }
  __syncwarp(lanes);
}

}  // namespace detail

/// A warp begins a kernel: behind all kernels that came before it, so behind griddepcontrol.wait.
/// `launch`: which one of a run.
__device__ inline void note_kernel_begin(const launch_trace& trace, warp_role role,
                                         std::uint64_t epoch, int launch = 0) {
  if constexpr (kernels_are_traced) {
    if (role == warp_role::none) return;
    detail::take_ring(rings_of(trace));
    detail::note_now(rings_of(trace), detail::is_first_lane(),
                     event_word::kernel_begin(role, launch, epoch));
  }
}
/// The same warp ends it.
__device__ inline void note_kernel_end(const launch_trace& trace) {
  if constexpr (kernels_are_traced)
    detail::note_now(rings_of(trace), detail::is_first_lane(), event_word::end(trace_kind::kernel));
}

/// The counter, which is about to be raised. By each lane that raises one.
[[nodiscard]] __device__ inline std::uint64_t& noted_signal(const launch_trace& trace,
                                                            std::uint64_t& counter,
                                                            std::uint64_t value) {
  if constexpr (kernels_are_traced) {
    const auto address = reinterpret_cast<std::uint64_t>(&counter);
    detail::note_now(rings_of(trace), true,
                     event_word::at_counter(trace_kind::signal, address, value));
  }
  return counter;
}

/// What notes signals where the launch's arguments are out of reach. Nothing where none are noted.
template <bool traced>
class trace_ref_of {
 public:
  explicit __device__ trace_ref_of(const launch_trace& /*trace*/) {}
  [[nodiscard]] __device__ launch_trace get() const { return {}; }
};
template <>
class trace_ref_of<true> {
 public:
  explicit __device__ trace_ref_of(const launch_trace& trace) : trace_(&trace) {}
  [[nodiscard]] __device__ const launch_trace& get() const { return *trace_; }

 private:
  const launch_trace* trace_;
};
using trace_ref = trace_ref_of<kernels_are_traced>;

/// A part of a wait that has a counter; others wait for data that tell of themselves.
template <class Part>
concept waits_for_counter = requires(const Part& part) {
  part.counter;
};

/// The wait of a warp, from its making to its end. Lanes with counters note a wait each, the others
/// together one, for whom the first of them missed last.
template <bool traced, class Part>
class wait_note_of {
 public:
  __device__ wait_note_of(const launch_trace& /*trace*/, const Part& /*part*/) {}
};
template <class Part>
class wait_note_of<true, Part> {
 public:
  __device__ wait_note_of(const launch_trace& trace, const Part& part)
      : trace_(trace), part_(part), begin_(cuda_memory::now()) {}
  wait_note_of(const wait_note_of&) = delete;
  wait_note_of& operator=(const wait_note_of&) = delete;
  __device__ ~wait_note_of() {
    std::uint64_t counter = 0;
    bool mine = false;
    if constexpr (waits_for_counter<Part>) {
      counter = reinterpret_cast<std::uint64_t>(part_.counter);
      mine = part_.counter != nullptr;
    } else {
      const unsigned missed = __ballot_sync(0xffffffffU, part_.peer >= 0 ? 1 : 0);
      mine = detail::lane_of_thread() == (missed != 0 ? __ffs(static_cast<int>(missed)) - 1 : 0);
    }
    const event_word begin = event_word::at_counter(trace_kind::wait, counter, part_.expected);
    const event_word end =
        event_word::wait_end(static_cast<int>(part_.what), part_.peer, part_.room);
    detail::note_events<2>(
        rings_of(trace_), mine,
        {make_ulonglong2(begin_, begin.bits), make_ulonglong2(cuda_memory::now(), end.bits)});
  }

 private:
  const launch_trace& trace_;
  const Part& part_;
  std::uint64_t begin_;
};
template <class Part>
class wait_note : public wait_note_of<kernels_are_traced, Part> {
 public:
  using wait_note_of<kernels_are_traced, Part>::wait_note_of;
};
template <class Part>
wait_note(const launch_trace&, const Part&) -> wait_note<Part>;

/// What a warp is at while it lives, or one thread of it.
template <bool traced>
class action_note_of {
 public:
  __device__ action_note_of(const launch_trace& /*trace*/, action /*what*/) {}
};
template <>
class action_note_of<true> {
 public:
  __device__ action_note_of(const launch_trace& trace, action what) : trace_(trace) {
    detail::note_now(rings_of(trace), detail::is_first_lane(),
                     event_word::begin(trace_kind::action, static_cast<int>(what)));
  }
  action_note_of(const action_note_of&) = delete;
  action_note_of& operator=(const action_note_of&) = delete;
  __device__ ~action_note_of() {
    detail::note_now(rings_of(trace_), detail::is_first_lane(),
                     event_word::end(trace_kind::action));
  }

 private:
  const launch_trace& trace_;
};
using action_note = action_note_of<kernels_are_traced>;

/// A warp's part of a kernel, from its making to its end: behind all kernels that came before it.
template <bool traced>
class kernel_note_of {
 public:
  __device__ kernel_note_of(const launch_trace& /*trace*/, warp_role /*role*/,
                            std::uint64_t /*epoch*/, int /*launch*/ = 0) {}
};
template <>
class kernel_note_of<true> {
 public:
  __device__ kernel_note_of(const launch_trace& trace, warp_role role, std::uint64_t epoch,
                            int launch = 0)
      : trace_(trace), noted_(role != warp_role::none) {
    note_kernel_begin(trace, role, epoch, launch);
  }
  kernel_note_of(const kernel_note_of&) = delete;
  kernel_note_of& operator=(const kernel_note_of&) = delete;
  __device__ ~kernel_note_of() {
    if (noted_) note_kernel_end(trace_);
  }

 private:
  const launch_trace& trace_;
  bool noted_;
};
using kernel_note = kernel_note_of<kernels_are_traced>;

}  // namespace untax::gpu
