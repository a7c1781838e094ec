#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

// Threads that run in lockstep (the `lanes` of a group: a warp, or one thread), each of which waits
// for its own value. They poll memory together, so a poll of all takes as long as a poll of one,
// and they continue together.

namespace untax::detail {

/// The votes of a warp, or of one thread, under one interface. All lanes of the warp call each.
template <int lanes>
struct in_step {
  static_assert(lanes == 1 || lanes == 32);
  static constexpr unsigned everybody = 0xffffffffU;

  /// A mask with the bit of each lane for which `mine` holds.
  [[nodiscard]] __device__ static unsigned ballot(bool mine) noexcept {
    if constexpr (lanes == 1) return mine ? 1U : 0U;
    return __ballot_sync(everybody, mine);
  }
  /// The value of `lane`.
  template <class Value>
  [[nodiscard]] __device__ static Value from(int lane, Value mine) noexcept {
    if constexpr (lanes == 1) return mine;
    return static_cast<Value>(__shfl_sync(everybody, static_cast<unsigned long long>(mine), lane));
  }
};

/// The memory policy of waits of all lanes together. `Look` polls for one lane: `look()` returns
/// the value that this lane waits for, with acquire order. The common counter is 1 if the values of
/// all lanes have reached `expected`, and 0 before; the wait is for 1. The values stay with the
/// lanes. To exchange them would make every poll longer, and only a wait that takes too long
/// reports them.
template <int lanes, class Look>
struct lanes_memory {
  struct counter {
    Look part;
    std::uint64_t expected;
    unsigned missing = 0;    // a bit for each lane
    std::uint64_t seen = 0;  // by this lane
  };
  template <class T>
  using cell = T;

  __device__ static std::uint64_t load_acquire(counter& c) {
    c.seen = c.part.look();
    c.missing = in_step<lanes>::ballot(c.seen < c.expected);
    return c.missing == 0 ? 1 : 0;
  }
  /// Raises the counter behind this lane's view.
  __device__ static void raise_release(counter& c, std::uint64_t value) { c.part.raise(value); }
  __device__ static void pause(poll_count polls) noexcept { cuda_memory::pause(polls); }
  __device__ static std::uint64_t now() noexcept { return cuda_memory::now(); }
};

}  // namespace untax::detail
