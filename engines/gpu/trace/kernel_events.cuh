#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>
#include <untax/tile/step.hpp>

#include "engines/gpu/sm90/ptx/async_copy.cuh"
#include "engines/gpu/trace/event_word.hpp"
#include "engines/gpu/trace/launch_trace.hpp"

// What kernels note: begin and end of a kernel by each warp that has a role, of what it does, and
// of its waits, and each signal just before it is raised. An event is one store of 16 bytes by one
// lane; where it goes says a count in shared memory, which the warp alone raises. What the count
// goes on from comes there while the kernel begins, and nobody waits for it before there is
// something to note: then the begin of the kernel is noted, too. Every instruction counts: a warp
// goes through them once in a kernel, so most have to be fetched. In a build without
// UNTAX_KERNEL_TRACE all of it is empty.

namespace untax::gpu {

/// In other builds there are none, and nobody asks.
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

/// Whether the calling lane is the first of these.
[[nodiscard]] __device__ inline bool is_first_of(unsigned lanes) {
  return lane_of_thread() == __ffs(static_cast<int>(lanes)) - 1;
}
/// Whether it is the first of those that came with it.
[[nodiscard]] __device__ inline bool is_first_lane() { return is_first_of(__activemask()); }

/// Whether the calling warp may note something.
[[nodiscard]] __device__ inline bool is_recorded(const ring_table& table) {
  return table.places != nullptr && warp_of_thread() < ring_table::most_warps;
}
/// Of such a warp, whose block has places.
[[nodiscard]] __device__ inline ring_place& place_of_warp(const ring_table& table) {
  return table.places[ring_table::place(blockDim.x == table.group_threads ? 0 : 1,
                                        static_cast<int>(blockIdx.x), warp_of_thread())];
}

/// What a warp notes by while it is in a kernel.
struct noting_state {
  ring_place at;         ///< as the last kernel left it, once it has come; no ring: notes nothing
  ulonglong2 begin;      ///< of the kernel, which is not yet in the ring; or no word
  std::uint32_t before;  ///< the run before this one, once it has come, or `counted`
  std::uint32_t noted;   ///< events in this kernel

  static constexpr std::uint32_t counted = 0xffffffffU;  ///< runs are, by the ring
};
/// That of the calling warp, which may note something.
[[nodiscard]] __device__ inline noting_state& state_of_warp() {
  __shared__ noting_state states[ring_table::most_warps];
  return states[warp_of_thread()];
}

/// Event `number` of a warp, by one lane.
__device__ inline void write_event(const ring_table& table, const ring_place& at,
                                   std::uint32_t number, std::uint64_t time,
                                   const event_word& word) {
  const std::uint32_t in_ring =
      (static_cast<std::uint32_t>(at.noted) + number) & (table.capacity - 1);
  *reinterpret_cast<ulonglong2*>(table.events + ((at.ring - 1) * table.capacity + in_ring)) =
      make_ulonglong2(time, word.bits);
}

/// By one lane before its warp notes anything else: the begin of its kernel. A warp takes a ring,
/// if it has none, and there is one.
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

/// By lanes of a warp: each that comes notes so many events.
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

/// By a lane whose signal has been noted: the counter to raise, another one if a test takes the
/// signal to raise it later.
[[nodiscard]] __device__ inline std::uint64_t& tapped(const ring_table& table,
                                                      std::uint64_t& counter, std::uint64_t value) {
  if (table.tap == nullptr) return counter;
  auto& tap = *const_cast<volatile signal_tap*>(table.tap);
  if (tap.armed == 0 || atomicExch(reinterpret_cast<unsigned*>(table.tapped), 1U) != 0)
    return counter;
  // The host raises it behind what this thread has ordered before the signal.
  __threadfence_system();
  tap.value = value;
  __threadfence_system();
  tap.counter = reinterpret_cast<std::uint64_t>(&counter);
  return table.tapped[1];
}

/// By all lanes of a warp. One without a role notes nothing until the kernel ends. `before`: where
/// the number of the run before is, if the word does not have that of this one.
__device__ inline void begin_kernel(const ring_table& table, warp_role role, const event_word& word,
                                    const std::uint64_t* before) {
  if (!is_recorded(table)) return;
  const bool notes = role != warp_role::none && blockIdx.x < ring_table::most_blocks;
  noting_state& state = state_of_warp();
  if (notes) {
    // Each lane waits for what it has asked for, and any of them may be the first to note
    // something.
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

/// By all lanes of a warp, which may come one after the other.
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

/// A warp begins a kernel: behind all kernels that came before it, so behind griddepcontrol.wait.
/// By all its lanes. `epoch` 0: the kernel is all of a run, and runs are counted here. `launch`:
/// which one of a run. `cluster`: of how many blocks.
__device__ inline void note_kernel_begin(const launch_trace& trace, warp_role role,
                                         std::uint64_t epoch, int launch = 0, int cluster = 1) {
  if constexpr (kernels_are_traced)
    detail::begin_kernel(rings_of(trace), role,
                         event_word::kernel_begin(role, launch, epoch, cluster), nullptr);
}
/// The same in the run behind `before`, which nobody waits for.
__device__ inline void note_kernel_begin_behind(const launch_trace& trace, warp_role role,
                                                const std::uint64_t& before, int cluster = 1) {
  if constexpr (kernels_are_traced)
    detail::begin_kernel(rings_of(trace), role, event_word::kernel_begin(role, 0, 0, cluster),
                         &before);
}
/// The same warp ends it.
__device__ inline void note_kernel_end(const launch_trace& trace) {
  if constexpr (kernels_are_traced) detail::end_kernel(rings_of(trace));
}

/// The counter, which is about to be raised. By each lane that raises one.
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

/// A part of a wait that has a counter; others wait for data that are their own signal.
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
