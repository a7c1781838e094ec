#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/memory/lanes_memory.cuh>
#include <untax/rma/device_group.cuh>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/trace/kernel_events.cuh"

namespace untax::gpu {

/// One lane's part of a wait of its warp: a counter of this rank, or nothing (null).
struct pending_wait {
  const std::uint64_t* counter;
  std::uint64_t expected;
  std::uint64_t seen;
  int peer;
  int room;
  verb what;

  /// Returns 1 if the counter has reached `expected`, or if there is none; else 0. Acquire.
  [[nodiscard]] __device__ std::uint64_t look() {
    if (counter == nullptr) return 1;
    seen = cuda_memory::load_acquire(*counter);
    return seen >= expected ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// A watch whose functions all lanes of a warp call together.
template <class Watch>
concept looks_in_step = requires(Watch& watch) {
  watch.leave_in_step();
};

/// Watches a wait of a warp whose lanes wait for different counters. The wait record names the
/// counter of the first lane that still waits. `counter.part` has the fields `peer`, `room`,
/// `what`, `expected` and `seen`.
template <class Counter, class Watch>
class parts_watch {
 public:
  __device__ parts_watch(Watch& watch, const Counter& counter) noexcept
      : watch_(watch), counter_(counter) {}

  [[nodiscard]] __device__ static bool due(poll_count polls) noexcept { return Watch::due(polls); }
  [[nodiscard]] __device__ wait_outcome look(const wait_site& site, std::uint64_t /*seen*/) {
    const int lane = __ffs(counter_.missing) - 1;
    const auto of_lane = [&](auto value) { return step::from(lane, value); };
    wait_site named = site;
    named.peer = of_lane(counter_.part.peer);
    named.room = of_lane(counter_.part.room);
    named.what = of_lane(counter_.part.what);
    named.expected = of_lane(counter_.part.expected);
    const std::uint64_t seen = of_lane(counter_.part.seen);
    if constexpr (looks_in_step<Watch>) {
      return watch_.look_in_step(named, seen);
    } else {
      wait_outcome outcome = wait_outcome::ok;
      if (first_lane()) outcome = watch_.look(named, seen);
      return step::from(0, outcome);
    }
  }
  __device__ void leave() noexcept {
    if constexpr (looks_in_step<Watch>) {
      watch_.leave_in_step();
    } else {
      if (first_lane()) watch_.leave();
    }
  }

 private:
  using step = untax::detail::in_step<32>;

  [[nodiscard]] __device__ static bool first_lane() noexcept {
    return device_warp::thread_rank() == 0;
  }

  Watch& watch_;
  const Counter& counter_;
};

/// Waits until the parts of all lanes of the warp have arrived. All lanes must call this. `Watch`
/// is device_watch, or has its interface.
template <class Part, class Watch>
[[nodiscard]] __device__ wait_outcome wait_for_parts(Part& mine, Watch& watch,
                                                     const launch_trace& trace,
                                                     const name_ref& name) {
  const wait_note noted(trace, mine);
  using memory = untax::detail::lanes_memory<32, Part>;
  typename memory::counter all{mine, 1};
  parts_watch<typename memory::counter, Watch> guard(watch, all);
  const wait_site site{name, mine.what, -1, -1, 1};
  const wait_outcome outcome = wait_until<memory>(all, site, guard);
  mine = all.part;
  return outcome;
}

/// Waits that a control warp defers until something depends on them. They are then polled together,
/// one per lane, which takes as long as one poll. All lanes of the warp must call each function.
class pending_waits {
 public:
  static constexpr int most = 32;

  [[nodiscard]] __device__ bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] __device__ bool full() const noexcept { return count_ == most; }
  __device__ void add(const pending_wait& wait) {
    if (device_warp::thread_rank() == count_) mine_ = wait;
    ++count_;
  }
  /// Polls once. Returns whether all waits are complete.
  [[nodiscard]] __device__ bool are_over() {
    const bool over = mine_.look() != 0;
    return !device_warp::any(!over);
  }
  /// The wait of the calling lane.
  [[nodiscard]] __device__ const pending_wait& mine() const noexcept { return mine_; }
  __device__ void clear() noexcept {
    count_ = 0;
    mine_ = {};
  }

 private:
  pending_wait mine_{};  // of this lane
  int count_ = 0;
};

/// A device_watch that all lanes of a warp call, rarely. It is not inlined, so its code does not
/// occupy the instruction cache at every wait.
class lazy_watch {
 public:
  __device__ explicit lazy_watch(const device_watch& watch) : watch_(watch) {}

  /// Due after about 10 ms for the first time. Many warps wait regularly while other warps load or
  /// multiply, and the host need not know of that.
  [[nodiscard]] __device__ static bool due(poll_count polls) noexcept {
    return polls % polls_between_looks == polls_between_looks - 1;
  }

  [[nodiscard]] __device__ __noinline__ wait_outcome look_in_step(const wait_site& site,
                                                                  std::uint64_t seen) {
    wait_outcome outcome = wait_outcome::ok;
    if (device_warp::thread_rank() == 0) outcome = watch_.look(site, seen);
    return untax::detail::in_step<32>::from(0, outcome);
  }
  __device__ __noinline__ void leave_in_step() noexcept {
    if (device_warp::thread_rank() == 0) watch_.leave();
  }

 private:
  static constexpr poll_count polls_between_looks = 1 << 14;

  device_watch watch_;
};

}  // namespace untax::gpu
