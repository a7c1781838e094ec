#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/memory/lanes_memory.cuh>
#include <untax/rma/device_group.cuh>

namespace untax::sm90 {

/// A device_watch whose look is a call, by all lanes of a warp: it is seldom needed, and its code
/// would otherwise stand between the instructions of every wait, which are fetched just when they
/// are in a hurry.
class seldom_watch {
 public:
  __device__ explicit seldom_watch(const device_watch& watch) : watch_(watch) {}

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
  device_watch watch_;
};

}  // namespace untax::sm90
