#pragma once

#include "tests/litmus/body.hpp"

namespace untax::litmus {

/// CoRR: a thread that has seen a counter at 2 does not see it at 1 afterwards. This holds even for
/// relaxed accesses.
template <memory_policy M>
struct corr {
  static constexpr int threads = 2;

  typename M::counter counter{};
  std::uint64_t earlier = 0;
  std::uint64_t later = 0;

  template <class Delay>
  void thread(int index, Delay&& delay) {
    if (index == 0) {
      M::raise_release(counter, 1);
      delay();
      M::raise_release(counter, 2);
    } else {
      delay();
      earlier = M::load_acquire(counter);
      later = M::load_acquire(counter);
    }
  }
  [[nodiscard]] bool forbidden() const { return earlier > later; }
  [[nodiscard]] std::string outcome() const { return numbers(earlier, later); }
};

/// CoRR where a third thread delivers the older signal late, a second time: a counter is never
/// lowered.
template <memory_policy M>
struct late_signal {
  static constexpr int threads = 3;

  typename M::counter counter{};
  std::uint64_t earlier = 0;
  std::uint64_t later = 0;

  template <class Delay>
  void thread(int index, Delay&& delay) {
    delay();
    if (index == 0) {
      M::raise_release(counter, 2);
    } else if (index == 1) {
      M::raise_release(counter, 1);
    } else {
      earlier = M::load_acquire(counter);
      later = M::load_acquire(counter);
    }
  }
  [[nodiscard]] bool forbidden() const { return earlier > later; }
  [[nodiscard]] std::string outcome() const { return numbers(earlier, later); }
};

}  // namespace untax::litmus
