#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>
#include <untax/tile/step.hpp>

#include "engines/gpu/sm90/ptx/async_copy.cuh"
#include "engines/gpu/trace/event_word.hpp"
#include "engines/gpu/trace/launch_trace.hpp"

// What kernels note: begin and end of a kernel by each warp that has a role, of what it does, and
// of its waits, and each signal just before it is raised. An event is one store of 16 bytes, by one
// lane and without an atomic operation; where it goes says a count that the warp alone raises, in
// shared memory while the kernel runs. It comes there while the kernel begins, and nobody waits
// for it before there is something to note. In a build without UNTAX_KERNEL_TRACE all of it is
// empty.

namespace untax::gpu {

/// In other builds there are none, and nobody asks.
[[nodiscard]] __device__ inline const ring_table& rings_of(const launch_trace_of<true>& trace) {
  return trace.rings;
}
[[nodiscard]] __device__ inline ring_table rings_of(const launch_trace_of<false>& /*trace*/) {
  return {};
}

namespace detail {

/// Where the calling warp stands in the table of rings; -1 if it does not.
[[nodiscard]] __device__ inline int place_of_warp(const ring_table& table) {
  const auto block = static_cast<int>(blockIdx.x);
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  if (table.places == nullptr || block >= ring_table::most_blocks || warp >= ring_table::most_warps)
    return -1;
  return ring_table::place(blockDim.x == table.group_threads ? 0 : 1, block, warp);
}

[[nodiscard]] __device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % 32; }

/// Whether the calling lane is the first of these.
[[nodiscard]] __device__ inline bool is_first_of(unsigned lanes) {
  return lane_of_thread() == __ffs(static_cast<int>(lanes)) - 1;
}
/// Whether it is the first of those that came with it.
[[nodiscard]] __device__ inline bool is_first_lane() { return is_first_of(__activemask()); }

/// What a warp notes by while it is in a kernel.
struct noting_state {
  ring_place brought;  ///< as the last kernel left it, once it has come
  ring_place at;       ///< and how it goes on; no ring: nothing is noted
  ulonglong2 begin;    ///< of the kernel, which is not yet in the ring; or no word
};
/// That of the calling warp, which has a place.
[[nodiscard]] __device__ inline noting_state& state_of_warp() {
  __shared__ noting_state states[ring_table::most_warps];
  return states[threadIdx.x / 32];
}

/// At the place of the next event, by one lane.
__device__ inline void write_event(const ring_table& table, const ring_place& at,
                                   std::uint64_t number, const ulonglong2& event) {
  const auto slot = (at.ring - 1) * std::uint64_t{table.capacity} + (number & (table.capacity - 1));
  *reinterpret_cast<ulonglong2*>(table.events + slot) = event;
}

/// By lanes of a warp together, before they note anything: its ring and its count are there, and
/// the begin of its kernel is noted. A warp takes a ring, if it has none, and there is one.
__device__ inline void settle(const ring_table& table, int place, noting_state& state,
                              unsigned lanes) {
  const bool open = state.begin.y != 0;
  __syncwarp(lanes);
  if (!open) return;
  wait_for_copies<0>();
  if (is_first_of(lanes)) {
    ring_place at = state.brought;
    if (at.ring == 0) {
      const std::uint32_t taken = atomicAdd(table.taken, 1U);
      if (taken < table.count) at.ring = taken + 1;
    }
    ++at.runs;
    if (at.ring != 0) {
      const event_word word = event_word{state.begin.y}.with_epoch(at.runs);
      write_event(table, at, at.noted, make_ulonglong2(state.begin.x, word.bits));
      ++at.noted;
    }
    state.at = at;
    state.begin.y = 0;
  }
  __syncwarp(lanes);
}

/// By some lanes of a warp, together: those for which `mine` holds note `count` events each.
template <int count>
__device__ void note_events(const ring_table& table, bool mine, const ulonglong2 (&events)[count]) {
  const unsigned lanes = __activemask();
  const unsigned noting = __ballot_sync(lanes, mine ? 1 : 0);
  const int place = place_of_warp(table);
  if (noting == 0 || place < 0) return;
  noting_state& state = state_of_warp();
  settle(table, place, state, lanes);
  const ring_place at = state.at;
  if (at.ring == 0) return;
  __syncwarp(lanes);
  if (mine) {
    const auto first =
        at.noted + count * static_cast<unsigned>(__popc(noting & ((1U << lane_of_thread()) - 1)));
#pragma unroll
    for (int i = 0; i < count; ++i) write_event(table, at, first + i, events[i]);
  }
  if (is_first_of(lanes)) state.at.noted = at.noted + count * static_cast<unsigned>(__popc(noting));
  __syncwarp(lanes);
}

__device__ inline void note_now(const ring_table& table, bool mine, const event_word& word) {
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

/// By all lanes of a warp. One without a role notes nothing until the kernel ends.
__device__ inline void begin_kernel(const ring_table& table, warp_role role,
                                    const event_word& word) {
  const int place = place_of_warp(table);
  if (place < 0) return;
  noting_state& state = state_of_warp();
  // Each lane waits for what it has asked for, and any of them may be the first to note something.
  if (role != warp_role::none) {
    copy_16_bytes(static_cast<std::uint32_t>(__cvta_generic_to_shared(&state.brought)),
                  table.places + place, true);
    commit_copies();
  }
  if (is_first_lane()) {
    state.at = {};
    state.begin = make_ulonglong2(cuda_memory::now(), role != warp_role::none ? word.bits : 0);
  }
  __syncwarp();
}

/// By all lanes of a warp, which may come one after the other.
__device__ inline void end_kernel(const ring_table& table) {
  const int place = place_of_warp(table);
  if (place < 0) return;
  __syncwarp();
  note_now(table, lane_of_thread() == 0, event_word::end(trace_kind::kernel));
  if (const ring_place& at = state_of_warp().at; lane_of_thread() == 0 && at.ring != 0)
    table.places[place] = at;
}

}  // namespace detail

/// A warp begins a kernel: behind all kernels that came before it, so behind griddepcontrol.wait.
/// By all its lanes. `epoch` 0: the kernel is all of a run, and runs are counted here. `launch`:
/// which one of a run.
__device__ inline void note_kernel_begin(const launch_trace& trace, warp_role role,
                                         std::uint64_t epoch, int launch = 0) {
  if constexpr (kernels_are_traced)
    detail::begin_kernel(rings_of(trace), role, event_word::kernel_begin(role, launch, epoch));
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
