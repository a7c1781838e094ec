#pragma once

#include <untax/core/host_device.hpp>

namespace untax::order {

/// The order in which a block does its steps, such as the parts of k, or of keys and values.
enum class direction {
  forward,
  backward,
  sawtooth,   ///< every other turn goes back, and begins with the data that the turn before read
              ///< last
  staggered,  ///< turn t begins at step t * `shift`, modulo the number of steps
  joined,     ///< begins at the step of blocks that read the same operands, `turn`, and wraps
              ///< around
};

/// A bijection on the steps of one block. `turn` distinguishes blocks: it is the number of blocks
/// that the same processor has run before, or the number of the block. With `joined` it is the step
/// that another block on the same operands has reached, 0 if there is none: each block publishes
/// its step in memory, and the next block joins it, as in scans of a database that begin where
/// another scan is.
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
