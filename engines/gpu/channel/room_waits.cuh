#pragma once

#include "engines/gpu/channel/pending_waits.cuh"

namespace untax::gpu {

/// The waits of one warp for many counters of this rank: its lanes look at them together.
/// `part(i)` says what the wait number i is for; all lanes call with the same count.
class room_waits {
 public:
  /// `slot` names the wait record of the warp.
  __device__ room_waits(const run_arguments& run, int slot) : run_(run), slot_(slot) {}

  /// Whether all have come already. Acquire, for all lanes.
  template <class Part>
  [[nodiscard]] __device__ bool come(int count, const Part& part) const {
    bool all = true;
    for (int first = 0; first < count && all; first += 32) {
      pending_wait mine = part_of_lane(first, count, part);
      all = __all_sync(everybody, mine.look() != 0) != 0;
    }
    __syncwarp();
    return all;
  }
  /// The first of so many rooms whose counter is less than expected, or `count`. Acquire, for all
  /// lanes, of those before it. `counter(i)` is that of room i.
  template <class CounterOf>
  [[nodiscard]] __device__ static int first_missing(int count, std::uint64_t expected,
                                                    const CounterOf& counter) {
    for (int first = 0; first < count; first += 32) {
      const int i = first + device_warp::thread_rank();
      const bool missing = i < count && cuda_memory::load_acquire(*counter(i)) < expected;
      const unsigned lanes = __ballot_sync(everybody, missing);
      __syncwarp();  // a vote orders no memory
      if (lanes != 0) return first + __ffs(static_cast<int>(lanes)) - 1;
    }
    return count;
  }
  /// Waits for all of them; false if one ended badly. Acquire, for all lanes.
  template <class Part>
  [[nodiscard]] __device__ bool await(int count, const Part& part) const {
    for (int first = 0; first < count; first += 32) {
      if (!wait_in_warp(run_, slot_, part_of_lane(first, count, part))) return false;
    }
    __syncwarp();
    return true;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  template <class Part>
  [[nodiscard]] __device__ static pending_wait part_of_lane(int first, int count,
                                                            const Part& part) {
    const int i = first + device_warp::thread_rank();
    return i < count ? part(i) : pending_wait{};
  }
  [[nodiscard]] __device__ static bool wait_in_warp(const run_arguments& run, int slot,
                                                    pending_wait mine) {
    device_watch watch(run.world, slot);
    return wait_for_parts(mine, watch, run.operator_name()) == wait_outcome::ok;
  }

  const run_arguments& run_;
  int slot_;
};

}  // namespace untax::gpu
