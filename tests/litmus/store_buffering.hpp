#pragma once

#include "tests/litmus/body.hpp"

namespace untax::litmus {

/// SB: each raises its own flag and then looks at the other's. With release and acquire both may
/// see nothing: a processor may still hold its own store back while it reads. Nothing is forbidden
/// here.
///
/// The four verbs never ask this question. A peer signals without checking whether this rank waits,
/// so an old value costs time and nothing else. `mutual_exclusion` is what must not be built from
/// them.
template <memory_policy M>
struct store_buffering {
  static constexpr int threads = 2;

  typename M::counter flags[2]{};
  std::uint64_t read[2] = {0, 0};

  template <class Delay>
  void thread(int index, Delay&& delay) {
    delay();
    M::raise_release(flags[index], 1);
    read[index] = M::load_acquire(flags[1 - index]);
  }
  [[nodiscard]] static bool forbidden() { return false; }
  [[nodiscard]] std::string outcome() const { return numbers(read[0], read[1]); }
};

/// Mutual exclusion on top of SB: a thread enters if the flag of the other is not raised (Dekker's
/// first attempt). That needs sequentially consistent accesses, which untax does not have, so a
/// checker has to find both threads inside.
template <memory_policy M>
struct mutual_exclusion {
  static constexpr int threads = 2;

  typename M::counter flags[2]{};
  typename M::template cell<int> inside{};

  template <class Delay>
  void thread(int index, Delay&& delay) {
    M::raise_release(flags[index], 1);
    delay();
    if (M::load_acquire(flags[1 - index]) == 0) inside = index;
  }
  [[nodiscard]] static bool forbidden() { return false; }
  [[nodiscard]] static std::string outcome() { return ""; }
};

}  // namespace untax::litmus
