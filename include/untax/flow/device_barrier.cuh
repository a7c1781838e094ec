#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/flow/device_wait.cuh>
#include <untax/flow/lanes_watch.cuh>
#include <untax/symmetric/symmetric.hpp>

namespace untax {

/// A barrier of all ranks inside kernels: one group (a warp or a block) of each rank enters. The
/// accesses of a rank's group before the barrier are visible to all groups after it.
///
/// It is made of signals, as every barrier of untax: a warp raises its rank's counter at all peers
/// in parallel and polls all of theirs at once. The number of entries is counted in device memory,
/// so nothing is ever reset, and a captured graph can be replayed.
class device_barrier {
 public:
  /// The number of words of symmetric memory that a barrier of `ranks` ranks needs, zero at first:
  /// a counter for each rank, and how often this rank has entered.
  [[nodiscard]] static constexpr std::size_t words(int ranks) noexcept {
    return static_cast<std::size_t>(ranks) + 1;
  }

  /// `memory` has `words` words at each rank.
  explicit UNTAX_HOST_DEVICE device_barrier(const symmetric<std::uint64_t>& memory) noexcept
      : memory_(memory) {}

  /// Enters the barrier and waits. It returns whether all ranks have entered; if not, the group
  /// leaves the kernel through its normal exit. All threads of the group call it. Groups of a rank
  /// that enter the same barrier do so one after the other, in an order that the program
  /// determines.
  template <waiting_device_group G>
  requires(G::lanes == 32) [[nodiscard]] __device__
      bool arrive_and_wait(G& group, name_ref name = "kernel") const {
    group.sync();
    wait_outcome outcome = wait_outcome::ok;
    if (group.thread_rank() < G::lanes) outcome = meet(group, name);
    return detail::agreed(group, outcome) == wait_outcome::ok;
  }

 private:
  /// The counter of one peer, as one lane polls it.
  struct arrival {
    const std::uint64_t* counter;  // null: a lane without a peer
    std::uint64_t otherwise;

    [[nodiscard]] __device__ std::uint64_t look() const noexcept {
      return counter == nullptr ? otherwise : cuda_memory::load_acquire(*counter);
    }
    __device__ void raise(std::uint64_t value) noexcept { otherwise = value; }
  };

  template <class G>
  [[nodiscard]] __device__ wait_outcome meet(G& group, name_ref name) const {
    using memory = detail::lanes_memory<G::lanes, arrival>;
    using counter = typename memory::counter;
    const int lane = group.thread_rank();
    const int ranks = group.ranks();
    std::uint64_t* entered = memory_.local(static_cast<std::size_t>(ranks));
    const std::uint64_t epoch = *entered + 1;
#pragma unroll 1
    for (int peer = lane; peer < ranks; peer += G::lanes) {
      if (peer != group.rank())
        cuda_memory::raise_release(*memory_.at(peer, static_cast<std::size_t>(group.rank())),
                                   epoch);
    }
    wait_outcome outcome = wait_outcome::ok;
    for (int first = 0; first < ranks && outcome == wait_outcome::ok; first += G::lanes) {
      const int peer = first + lane;
      const bool waits = peer < ranks && peer != group.rank();
      counter all{{waits ? memory_.local(static_cast<std::size_t>(peer)) : nullptr, epoch}, epoch};
      detail::lanes_watch<G::lanes, counter> guard(group.guard(), all, lane == 0, first);
      const wait_site site{name, verb::barrier, -1, -1, 1};
      outcome = wait_until<memory>(all, site, guard);
    }
    if (lane == 0) *entered = epoch;
    return outcome;
  }

  symmetric<std::uint64_t> memory_;
};

}  // namespace untax
