#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/memory/lanes_memory.cuh>
#include <untax/rma/device_group.cuh>

namespace untax::gpu {

/// A device_watch that looks seldom, by a call of all lanes of a warp: its code would otherwise
/// stand between the instructions of every wait, and so keeps rarely run code out of the
/// instruction cache of the wait.
class lazy_watch {
 public:
  __device__ explicit lazy_watch(const device_watch& watch) : watch_(watch) {}

  /// After some 10 ms for the first time. Many warps wait as a matter of course, for as long as
  /// others read or multiply; what they would tell the host meanwhile concerns nobody.
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
