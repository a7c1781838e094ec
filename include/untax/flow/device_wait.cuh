#pragma once

#include <cstdint>

#include <untax/flow/device_watch.cuh>
#include <untax/flow/lanes_watch.cuh>
#include <untax/flow/wait_verbs.hpp>
#include <untax/rma/device_group.cuh>

namespace untax {

/// A group of a kernel that can wait: it has the watch that bounds its waits.
template <class G>
concept waiting_device_group = device_group<G> && requires(G& group) {
  { group.guard() } -> std::same_as<device_watch&>;
};

/// `G` with a watch. `slot`, from 0, is the index of its wait record. Groups of a rank that wait at
/// the same time have different slots; all threads of a group have the same.
template <device_group G>
class waiting : public G {
 public:
  __device__ waiting(const device_control& world, int slot) noexcept : guard_(world, slot) {}

  [[nodiscard]] __device__ int rank() const noexcept { return guard_.world().rank; }
  [[nodiscard]] __device__ int ranks() const noexcept { return guard_.world().ranks; }
  [[nodiscard]] __device__ device_watch& guard() noexcept { return guard_; }

 private:
  device_watch guard_;
};

namespace detail {

/// The common outcome of all threads of a group: `ok` if all have it. It synchronises them, so that
/// what one of them has acquired is visible to all.
template <device_group G>
[[nodiscard]] __device__ wait_outcome agreed(const G& group, wait_outcome mine) {
  if (!group.any(mine != wait_outcome::ok)) return wait_outcome::ok;
  return group.any(mine == wait_outcome::timeout) ? wait_outcome::timeout : wait_outcome::aborted;
}

/// A counter that all lanes load with one access. If one lane polled alone, the warp would have to
/// reconverge before it continues, which takes longer.
struct common_counter {
  const std::uint64_t* at;

  [[nodiscard]] __device__ std::uint64_t look() const noexcept {
    return cuda_memory::load_acquire(*at);
  }
  __device__ void raise(std::uint64_t /*value*/) noexcept {}
};

}  // namespace detail

/// Waits until `*counter >= value`, and returns how the wait ended, the same to all threads of the
/// group. All of them call it. Acquire: after `ok`, writes before the signal are visible to the
/// group. The counter lies at this rank.
template <waiting_device_group G>
[[nodiscard]] __device__ wait_outcome try_wait_until(G& group, std::uint64_t* counter,
                                                     std::uint64_t value, const awaited& who = {}) {
  using memory = detail::lanes_memory<G::lanes, detail::common_counter>;
  using lanes_counter = typename memory::counter;
  wait_outcome outcome = wait_outcome::ok;
  const int me = group.thread_rank();
  if (me < G::lanes) {
    lanes_counter all{{counter}, value};
    detail::lanes_watch<G::lanes, lanes_counter> guard(group.guard(), all, me == 0);
    const wait_site site{who.name, verb::wait_until, who.peer, who.room, 1};
    outcome = wait_until<memory>(all, site, guard);
  }
  if constexpr (lockstep_group<G>) return outcome;  // each lane has acquired, and has the outcome
  return detail::agreed(group, outcome);
}

/// As `try_wait_until`, but returns whether the signal came. If it did not, the group leaves the
/// kernel through its normal exit, and does not touch the awaited data; `world::check` on the host
/// then throws the reason.
template <waiting_device_group G>
[[nodiscard]] __device__ bool wait_until(G& group, std::uint64_t* counter, std::uint64_t value,
                                         const awaited& who = {}) {
  return try_wait_until(group, counter, value, who) == wait_outcome::ok;
}

}  // namespace untax
