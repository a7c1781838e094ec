#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/memory/lanes_memory.cuh>

namespace untax::detail {

/// The guard of a wait of all lanes together. The first lane watches for all. It reports the first
/// lane whose counter is too low. If lane i waits for rank `first_rank` + i, it names that rank.
template <int lanes, class Counter>
class lanes_watch {
 public:
  __device__ lanes_watch(device_watch& watch, const Counter& counter, bool first_lane,
                         int first_rank = -1) noexcept
      : watch_(watch), counter_(counter), first_lane_(first_lane), first_rank_(first_rank) {}

  [[nodiscard]] __device__ static bool due(poll_count polls) noexcept {
    return device_watch::due(polls);
  }
  [[nodiscard]] __device__ wait_outcome look(const wait_site& site, std::uint64_t /*seen*/) {
    const int missing = __ffs(counter_.missing) - 1;
    const std::uint64_t seen = in_step<lanes>::from(missing, counter_.seen);
    wait_site named = site;
    named.expected = counter_.expected;
    if (first_rank_ >= 0) named.peer = first_rank_ + missing;
    wait_outcome outcome = wait_outcome::ok;
    if (first_lane_) outcome = watch_.look(named, seen);
    return in_step<lanes>::from(0, outcome);
  }
  __device__ void leave() noexcept {
    if (first_lane_) watch_.leave();
  }

 private:
  device_watch& watch_;
  const Counter& counter_;
  bool first_lane_;
  int first_rank_;
};

}  // namespace untax::detail
