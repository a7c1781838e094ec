#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>
#include <untax/tile/step.hpp>

#include "engines/gpu/sm90/ptx/async_copy.cuh"
#include "engines/gpu/trace/event_word.hpp"
#include "engines/gpu/trace/launch_trace.hpp"

// The events that kernels record: begin and end of a kernel, of actions and of waits, by each warp
// that has a role; and each signal, just before it is raised. One lane stores an event, with one
// store of 16 bytes. The index is a count in shared memory, which only the warp itself raises. The
// initial count is copied there asynchronously while the kernel begins. The warp waits for that
// copy when it records its first event, and records the begin of the kernel then. Every instruction
// counts: a warp executes them once in a kernel, so most have to be fetched. In a build without
// UNTAX_KERNEL_TRACE everything here is empty.

namespace untax::gpu {

/// The rings of a launch. Other builds have none, and never call this.
[[nodiscard]] __device__ inline const ring_table& rings_of(const launch_trace_of<true>& trace) {
  return trace.rings;
}
[[nodiscard]] __device__ inline ring_table rings_of(const launch_trace_of<false>& /*trace*/) {
  return {};
}
/// Whether a trace is recorded.
[[nodiscard]] __device__ inline bool is_recorded(const launch_trace& trace) {
  if constexpr (kernels_are_traced) return rings_of(trace).places != nullptr;
  return false;
}

namespace detail {

[[nodiscard]] __device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % 32; }
[[nodiscard]] __device__ inline int warp_of_thread() { return static_cast<int>(threadIdx.x) / 32; }

/// Whether the calling lane is the first of `lanes`.
[[nodiscard]] __device__ inline bool is_first_of(unsigned lanes) {
  return lane_of_thread() == __ffs(static_cast<int>(lanes)) - 1;
}
/// Whether the calling lane is the first active one of its warp.
[[nodiscard]] __device__ inline bool is_first_lane() { return is_first_of(__activemask()); }

/// Whether the calling warp may record events.
[[nodiscard]] __device__ inline bool is_recorded(const ring_table& table) {
  return table.places != nullptr && warp_of_thread() < ring_table::most_warps;
}
/// The `ring_place` of a warp that may record events, in a block below `most_blocks`.
[[nodiscard]] __device__ inline ring_place& place_of_warp(const ring_table& table) {
  return table.places[ring_table::place(blockDim.x == table.group_threads ? 0 : 1,
                                        static_cast<int>(blockIdx.x), warp_of_thread())];
}

/// The recording state of a warp in a kernel.
struct noting_state {
  ring_place at;         ///< as the last kernel left it, once it has arrived; no ring: no records
  ulonglong2 begin;      ///< begin of the kernel, until it is in the ring; then the word is 0
  std::uint32_t before;  ///< number of the previous run, once the copy has arrived, or `counted`
  std::uint32_t noted;   ///< number of events in this kernel

  static constexpr std::uint32_t counted = 0xffffffffU;  ///< the ring counts the runs
};
/// The state of the calling warp, which must be one that may record events.
[[nodiscard]] __device__ inline noting_state& state_of_warp() {
  __shared__ noting_state states[ring_table::most_warps];
  return states[warp_of_thread()];
}

/// One lane stores event `number` of its warp in this kernel.
__device__ inline void write_event(const ring_table& table, const ring_place& at,
                                   std::uint32_t number, std::uint64_t time,
                                   const event_word& word) {
  const std::uint32_t in_ring =
      (static_cast<std::uint32_t>(at.noted) + number) & (table.capacity - 1);
  *reinterpret_cast<ulonglong2*>(table.events + ((at.ring - 1) * table.capacity + in_ring)) =
      make_ulonglong2(time, word.bits);
}

/// One lane calls this before its warp records anything else: it records the begin of the kernel. A
/// warp without a ring takes a free one, if there is one.
__device__ inline void settle(const ring_table& table, noting_state& state) {
  if (state.begin.y == 0) return;
  wait_for_copies<0>();
  ring_place at = state.at;
  if (at.ring == 0) {
    const std::uint32_t taken = atomicAdd(table.taken, 1U);
    if (taken < table.count) at.ring = taken + 1;
  }
  ++at.runs;
  state.at = at;
  if (at.ring != 0) {
    const std::uint32_t run = state.before == noting_state::counted ? at.runs : state.before + 1;
    write_event(table, at, 0, state.begin.x, event_word{state.begin.y}.with_epoch(run));
  }
  state.noted = 1;
  state.begin.y = 0;
}

/// Any lanes of a warp may call this. Each lane with `mine` records `count` events.
template <int count>
__device__ void note_events(const ring_table& table, bool mine, const ulonglong2 (&events)[count]) {
  noting_state& state = state_of_warp();
  if (state.begin.y != 0) {
    const unsigned lanes = __activemask();
    __syncwarp(lanes);
    if (is_first_of(lanes)) settle(table, state);
    __syncwarp(lanes);
  }
  if (!mine || state.at.ring == 0) return;
  const std::uint32_t first = atomicAdd(&state.noted, static_cast<std::uint32_t>(count));
#pragma unroll
  for (int i = 0; i < count; ++i)
    write_event(table, state.at, first + i, events[i].x, {events[i].y});
}

__device__ inline void note_now(const ring_table& table, bool mine, const event_word& word) {
  if (is_recorded(table))
    note_events<1>(table, mine, {make_ulonglong2(cuda_memory::now(), word.bits)});
}

/// The counter that a lane has to raise, after it has recorded the signal: another counter if a
/// test intercepts the signal, to raise it later.
[[nodiscard]] __device__ inline std::uint64_t& tapped(const ring_table& table,
                                                      std::uint64_t& counter, std::uint64_t value) {
  if (table.tap == nullptr) return counter;
  auto& tap = *const_cast<volatile signal_tap*>(table.tap);
  if (tap.armed == 0 || atomicExch(reinterpret_cast<unsigned*>(table.tapped), 1U) != 0)
    return counter;
  // The host raises the counter after everything that this thread has ordered before the signal.
  __threadfence_system();
  tap.value = value;
  __threadfence_system();
  tap.counter = reinterpret_cast<std::uint64_t>(&counter);
  return table.tapped[1];
}

/// All lanes of a warp must call this. A warp without a role records nothing in the kernel.
/// `before`: where the number of the previous run is stored, if `word` has no epoch.
__device__ inline void begin_kernel(const ring_table& table, warp_role role, const event_word& word,
                                    const std::uint64_t* before) {
  if (!is_recorded(table)) return;
  const bool notes = role != warp_role::none && blockIdx.x < ring_table::most_blocks;
  noting_state& state = state_of_warp();
  if (notes) {
    // Each lane waits for its own copies only, and any lane may be the first to record an event: so
    // each lane issues the copies.
    const auto shared = [](const auto& to) {
      return static_cast<std::uint32_t>(__cvta_generic_to_shared(&to));
    };
    copy_16_bytes(shared(state.at), &place_of_warp(table), true);
    if (before != nullptr) copy_4_bytes(shared(state.before), before, true);
    commit_copies();
  }
  if (lane_of_thread() == 0) {
    if (!notes) state.at.ring = 0;
    if (before == nullptr) state.before = noting_state::counted;
    state.begin = make_ulonglong2(cuda_memory::now(), notes ? word.bits : 0);
  }
  __syncwarp();
}

/// All lanes of a warp must call this. They need not have converged.
__device__ inline void end_kernel(const ring_table& table) {
  if (!is_recorded(table)) return;
  __syncwarp();
  if (lane_of_thread() != 0) return;
  noting_state& state = state_of_warp();
  settle(table, state);
  ring_place at = state.at;
  if (at.ring == 0) return;
  const std::uint32_t noted = state.noted;
  write_event(table, at, noted, cuda_memory::now(), event_word::end(trace_kind::kernel));
  at.noted += noted + 1;
  place_of_warp(table) = at;
}

}  // namespace detail

/// A warp begins a kernel. All of its lanes must call this, after all earlier kernels have ended,
/// and so after griddepcontrol.wait. `epoch` 0: the kernel is a whole run, the ring counts runs.
/// `launch`: its number in the run. `cluster`: blocks per cluster.
__device__ inline void note_kernel_begin(const launch_trace& trace, warp_role role,
                                         std::uint64_t epoch, int launch = 0, int cluster = 1) {
  if constexpr (kernels_are_traced)
    detail::begin_kernel(rings_of(trace), role,
                         event_word::kernel_begin(role, launch, epoch, cluster), nullptr);
}
/// As above, for the run after `before`, which is loaded asynchronously.
__device__ inline void note_kernel_begin_behind(const launch_trace& trace, warp_role role,
                                                const std::uint64_t& before, int cluster = 1) {
  if constexpr (kernels_are_traced)
    detail::begin_kernel(rings_of(trace), role, event_word::kernel_begin(role, 0, 0, cluster),
                         &before);
}
/// The warp that began the kernel ends it.
__device__ inline void note_kernel_end(const launch_trace& trace) {
  if constexpr (kernels_are_traced) detail::end_kernel(rings_of(trace));
}

/// Returns the counter to raise. Each lane that raises a counter calls this just before.
[[nodiscard]] __device__ inline std::uint64_t& noted_signal(const launch_trace& trace,
                                                            std::uint64_t& counter,
                                                            std::uint64_t value) {
  if constexpr (kernels_are_traced) {
    const auto address = reinterpret_cast<std::uint64_t>(&counter);
    const ring_table& table = rings_of(trace);
    detail::note_now(table, true, event_word::at_counter(trace_kind::signal, address, value));
    return detail::tapped(table, counter, value);
  }
  return counter;
}

/// Refers to the trace, for code without access to launch arguments. Empty if nothing is traced.
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

/// A wait for a counter. Other waits are for data that are their own signal.
template <class Part>
concept waits_for_counter = requires(const Part& part) {
  part.counter;
};

/// Records a wait of a warp, from construction to destruction. Each lane with a counter records its
/// wait. Waits for data are recorded once, for the first lane that waits and its missing peer.
template <bool traced, class Part>
class wait_note_of {
 public:
  __device__ wait_note_of(const launch_trace& /*trace*/, const Part& /*part*/) {}
};
template <class Part>
class wait_note_of<true, Part> {
 public:
  __device__ wait_note_of(const launch_trace& trace, const Part& part)
      : trace_(trace),
        part_(part),
        begin_(detail::is_recorded(rings_of(trace)) ? cuda_memory::now() : 0) {}
  wait_note_of(const wait_note_of&) = delete;
  wait_note_of& operator=(const wait_note_of&) = delete;
  __device__ ~wait_note_of() {
    if (!detail::is_recorded(rings_of(trace_))) return;
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

/// Records an action of a warp, or of one of its threads, from construction to destruction.
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

/// Records a warp's part of a kernel, from construction (after all earlier kernels) to destruction.
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
      : trace_(trace) {
    note_kernel_begin(trace, role, epoch, launch);
  }
  kernel_note_of(const kernel_note_of&) = delete;
  kernel_note_of& operator=(const kernel_note_of&) = delete;
  __device__ ~kernel_note_of() { note_kernel_end(trace_); }

 private:
  const launch_trace& trace_;
};
using kernel_note = kernel_note_of<kernels_are_traced>;

}  // namespace untax::gpu
