#pragma once

#include "tests/litmus/body.hpp"

namespace untax::litmus {

/// MP: a thread that sees the flag sees the data. This is publish -> acquire.
template <memory_policy M>
struct message_passing {
  static constexpr int threads = 2;

  typename M::template cell<int> data{};
  typename M::counter flag{};
  int read = 1;

  template <class Delay>
  void thread(int index, Delay&& delay) {
    if (index == 0) {
      data = 1;
      delay();
      M::raise_release(flag, 1);
    } else {
      await<M>(flag, 1);
      delay();
      read = data;
    }
  }
  [[nodiscard]] bool forbidden() const { return read != 1; }
  [[nodiscard]] std::string outcome() const { return numbers(read); }
};

/// ISA2: MP through a rank in between, which does not touch the data itself. Order is handed on.
template <memory_policy M>
struct isa2 {
  static constexpr int threads = 3;

  typename M::template cell<int> data{};
  typename M::counter first{};
  typename M::counter second{};
  int read = 1;

  template <class Delay>
  void thread(int index, Delay&& delay) {
    if (index == 0) {
      data = 1;
      delay();
      M::raise_release(first, 1);
    } else if (index == 1) {
      await<M>(first, 1);
      delay();
      M::raise_release(second, 1);
    } else {
      await<M>(second, 1);
      delay();
      read = data;
    }
  }
  [[nodiscard]] bool forbidden() const { return read != 1; }
  [[nodiscard]] std::string outcome() const { return numbers(read); }
};

/// WRC, write-to-read causality: a flag that one rank has seen is seen by every rank that acquires
/// a signal of that rank.
template <memory_policy M>
struct wrc {
  static constexpr int threads = 3;

  typename M::counter cause{};
  typename M::counter effect{};
  std::uint64_t middle_read_cause = 0;
  std::uint64_t last_read_effect = 0;
  std::uint64_t last_read_cause = 0;

  template <class Delay>
  void thread(int index, Delay&& delay) {
    if (index == 0) {
      delay();
      M::raise_release(cause, 1);
    } else if (index == 1) {
      delay();
      middle_read_cause = M::load_acquire(cause);
      M::raise_release(effect, 1);
    } else {
      delay();
      last_read_effect = M::load_acquire(effect);
      last_read_cause = M::load_acquire(cause);
    }
  }
  [[nodiscard]] bool forbidden() const {
    return middle_read_cause == 1 && last_read_effect == 1 && last_read_cause == 0;
  }
  [[nodiscard]] std::string outcome() const {
    return numbers(middle_read_cause, last_read_effect, last_read_cause);
  }
};

}  // namespace untax::litmus
