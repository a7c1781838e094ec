#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/memory/lanes_memory.cuh>
#include <untax/rma/device_group.cuh>

#include "engines/sm90/transfer/arguments.hpp"

namespace untax::sm90 {

/// One lane's part in a wait of its warp: a counter of this rank, or nothing.
struct held_wait {
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

/// Looks after the wait of a warp whose lanes wait for different things: the record names what the
/// first lane misses that misses anything. A part tells `peer`, `room`, `what`, `expected`, `seen`.
template <class Counter>
class parts_watch {
 public:
  __device__ parts_watch(device_watch& watch, const Counter& counter) noexcept
      : watch_(watch), counter_(counter) {}

  [[nodiscard]] __device__ static bool due(poll_count polls) noexcept {
    return device_watch::due(polls);
  }
  [[nodiscard]] __device__ wait_outcome look(const wait_site& site, std::uint64_t /*seen*/) {
    const int lane = __ffs(counter_.missing) - 1;
    const auto of_lane = [&](auto value) { return step::from(lane, value); };
    wait_site named = site;
    named.peer = of_lane(counter_.part.peer);
    named.room = of_lane(counter_.part.room);
    named.what = of_lane(counter_.part.what);
    named.expected = of_lane(counter_.part.expected);
    const std::uint64_t seen = of_lane(counter_.part.seen);
    wait_outcome outcome = wait_outcome::ok;
    if (first_lane()) outcome = watch_.look(named, seen);
    return step::from(0, outcome);
  }
  __device__ void leave() noexcept {
    if (first_lane()) watch_.leave();
  }

 private:
  using step = untax::detail::in_step<32>;

  [[nodiscard]] __device__ static bool first_lane() noexcept {
    return device_warp::thread_rank() == 0;
  }

  device_watch& watch_;
  const Counter& counter_;
};

/// Waits until the parts of all lanes of the calling warp have come.
template <class Part>
[[nodiscard]] __device__ wait_outcome wait_for_parts(Part& mine, device_watch& watch,
                                                     const name_ref& name) {
  using memory = untax::detail::lanes_memory<32, Part>;
  typename memory::counter all{mine, 1};
  parts_watch<typename memory::counter> guard(watch, all);
  const wait_site site{name, mine.what, -1, -1, 1};
  const wait_outcome outcome = wait_until<memory>(all, site, guard);
  mine = all.part;
  return outcome;
}

/// Verbs that a block has put off, in its shared memory.
struct held_verbs {
  static constexpr int most = 32;

  held_wait waits[most];
  std::uint64_t* signals[most];
  std::uint64_t values[most];
};

/// Waits that a block has put off until something depends on them: then they are looked at
/// together, a lane of the first warp each, which takes as long as one.
class held_waits {
 public:
  explicit __device__ held_waits(held_verbs& memory) noexcept : waits_(memory.waits) {}

  [[nodiscard]] __device__ bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] __device__ bool full() const noexcept { return count_ == held_verbs::most; }
  /// By all threads of the block.
  __device__ void add(const held_wait& wait) {
    if (threadIdx.x == 0) waits_[count_] = wait;
    ++count_;
  }
  /// Whether all have come already. By all threads of the block, which it synchronises.
  [[nodiscard]] __device__ bool are_over(const device_block& block) const {
    bool over = true;
    if (threadIdx.x < 32) {
      __syncwarp();
      held_wait mine = own();
      over = mine.look() != 0;
    }
    return !block.any(!over);
  }
  /// Waits for all of them. By all threads of the block, which it synchronises.
  [[nodiscard]] __device__ bool wait(const device_block& block, const run_arguments& run) const {
    const bool well = threadIdx.x >= 32 || wait_in_warp(run, own()) == wait_outcome::ok;
    return !block.any(!well);
  }
  __device__ void clear() noexcept { count_ = 0; }

 private:
  [[nodiscard]] __device__ held_wait own() const {
    const int lane = device_warp::thread_rank();
    return lane < count_ ? waits_[lane] : held_wait{};
  }
  // Out of line: it is rare, and its registers are not those of the code around it.
  [[nodiscard]] __device__ __noinline__ static wait_outcome wait_in_warp(const run_arguments& run,
                                                                         held_wait mine) {
    device_watch watch(run.world, static_cast<int>(blockIdx.x));
    return wait_for_parts(mine, watch, run.operator_name());
  }

  held_wait* waits_;
  int count_ = 0;
};

/// Signals that a block has put off, so that one barrier and one release serve several peers.
class held_signals {
 public:
  explicit __device__ held_signals(held_verbs& memory) noexcept : memory_(memory) {}

  [[nodiscard]] __device__ bool full() const noexcept { return count_ == held_verbs::most; }
  /// By all threads of the block.
  __device__ void add(std::uint64_t* counter, std::uint64_t value) {
    if (threadIdx.x == 0) {
      memory_.signals[count_] = counter;
      memory_.values[count_] = value;
    }
    ++count_;
  }
  /// Release. All threads of the block have been synchronised since their last stores.
  __device__ void send() {
    if (threadIdx.x < 32) {
      const int lane = device_warp::thread_rank();
      if (lane < count_) cuda_memory::raise_release(*memory_.signals[lane], memory_.values[lane]);
      __syncwarp();
    }
    count_ = 0;
  }

 private:
  held_verbs& memory_;
  int count_ = 0;
};

}  // namespace untax::sm90
