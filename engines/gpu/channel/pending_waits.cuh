#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/memory/lanes_memory.cuh>
#include <untax/rma/device_group.cuh>

#include "engines/gpu/channel/run_arguments.hpp"

namespace untax::gpu {

/// One lane's part in a wait of its warp: a counter of this rank, or nothing.
struct pending_wait {
  const std::uint64_t* counter;
  std::uint64_t expected;
  std::uint64_t seen;
  int peer;
  int room;
  verb what;

  /// 1 if it has come, else 0.
  [[nodiscard]] __device__ std::uint64_t look() {
    if (counter == nullptr) return 1;
    seen = cuda_memory::load_acquire(*counter);
    return seen >= expected ? 1 : 0;
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

/// A watch that is asked by all lanes of a warp together.
template <class Watch>
concept looks_in_step = requires(Watch& watch) {
  watch.leave_in_step();
};

/// Looks after the wait of a warp whose lanes wait for different things: the record names what the
/// first lane misses that misses anything. A part tells `peer`, `room`, `what`, `expected`, `seen`.
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

/// Waits until the parts of all lanes of the calling warp have come. `Watch` is device_watch, or
/// looks like it.
template <class Part, class Watch>
[[nodiscard]] __device__ wait_outcome wait_for_parts(Part& mine, Watch& watch,
                                                     const name_ref& name) {
  using memory = untax::detail::lanes_memory<32, Part>;
  typename memory::counter all{mine, 1};
  parts_watch<typename memory::counter, Watch> guard(watch, all);
  const wait_site site{name, mine.what, -1, -1, 1};
  const wait_outcome outcome = wait_until<memory>(all, site, guard);
  mine = all.part;
  return outcome;
}

/// Waits that a control warp has put off until something depends on them: then they are looked at
/// together, a lane each, which takes as long as one. By all lanes of its warp.
class pending_waits {
 public:
  static constexpr int most = 32;

  [[nodiscard]] __device__ bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] __device__ bool full() const noexcept { return count_ == most; }
  __device__ void add(const pending_wait& wait) {
    if (device_warp::thread_rank() == count_) mine_ = wait;
    ++count_;
  }
  /// Whether all have come already.
  [[nodiscard]] __device__ bool are_over() {
    const bool over = mine_.look() != 0;
    return !device_warp::any(!over);
  }
  /// That of the calling lane.
  [[nodiscard]] __device__ const pending_wait& mine() const noexcept { return mine_; }
  __device__ void clear() noexcept {
    count_ = 0;
    mine_ = {};
  }

 private:
  pending_wait mine_{};  // of this lane
  int count_ = 0;
};

/// Signals that wait until the worker warps have done what they tell of, in order. A lane each, so
/// that one release serves several peers. By all lanes of a control warp's warp.
class pending_signals {
 public:
  static constexpr int most = 32;

  [[nodiscard]] __device__ bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] __device__ bool full() const noexcept { return count_ == most; }
  /// To be sent when `after` commands are done, not fewer than for the signal before.
  __device__ void add(std::uint64_t* counter, std::uint64_t value, std::uint32_t after) {
    if (device_warp::thread_rank() == (first_ + count_) % most) {
      counter_ = counter;
      value_ = value;
      after_ = after;
    }
    ++count_;
  }
  /// How many commands the first of them waits for.
  [[nodiscard]] __device__ std::uint32_t first_after() const {
    return __shfl_sync(0xffffffffU, after_, first_);
  }
  /// Release: those that wait for no more than `done` commands.
  __device__ void send(std::uint32_t done) {
    const int turn = (device_warp::thread_rank() - first_ + most) % most;
    const bool ready = turn < count_ && after_ <= done;
    if (ready) cuda_memory::raise_release(*counter_, value_);
    const int sent = __popc(__ballot_sync(0xffffffffU, ready));
    first_ = (first_ + sent) % most;
    count_ -= sent;
  }

 private:
  std::uint64_t* counter_ = nullptr;  // of this lane, like the next two
  std::uint64_t value_ = 0;
  std::uint32_t after_ = 0;
  int first_ = 0;  // lane
  int count_ = 0;
};

}  // namespace untax::gpu
