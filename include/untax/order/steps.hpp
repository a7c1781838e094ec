#pragma once

#include <untax/core/host_device.hpp>

namespace untax::order {

/// How a block goes through its steps, such as the parts of k, or of keys and values.
enum class direction {
  forward,
  backward,
  sawtooth,   ///< every other turn goes back, and finds what the turn before read last
  staggered,  ///< each turn begins where the one before has got on by `shift` steps
  joined,     ///< begins at step `turn`, where others are that read the same, and goes round
};

/// A bijection on the steps of one block. `turn` tells blocks apart: how many the same processor
/// has done before, or the number of the block. With `joined` it is the step that a block under way
/// on the same operands took last, 0 if there is none: each block says in memory where it is, as
/// scans of a database do that begin where another one is.
struct step_order {
  int steps = 0;
  direction way = direction::forward;
  int turn = 0;
  int shift = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return steps; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    if (begins_later()) return (position + begin()) % steps;
    return goes_back() ? steps - 1 - position : position;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int step) const {
    if (begins_later()) return (step + steps - begin()) % steps;
    return goes_back() ? steps - 1 - step : step;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool begins_later() const {
    return way == direction::staggered || way == direction::joined;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int begin() const {
    const long long by = way == direction::joined ? 1 : shift;
    return static_cast<int>(turn * by % steps);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool goes_back() const {
    return way == direction::backward || (way == direction::sawtooth && turn % 2 != 0);
  }
};

}  // namespace untax::order
