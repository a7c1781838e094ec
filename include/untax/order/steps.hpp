#pragma once

#include <untax/core/host_device.hpp>

namespace untax::order {

/// How a block goes through its steps, such as the parts of k, or of keys and values.
enum class direction {
  forward,
  backward,
  sawtooth,   ///< every other turn goes back, and finds what the turn before read last
  staggered,  ///< each turn begins where the one before has got on by `shift` steps
};

/// A bijection on the steps of one block. `turn` tells blocks apart: how many the same processor
/// has done before, or the number of the block.
struct step_order {
  int steps = 0;
  direction way = direction::forward;
  int turn = 0;
  int shift = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return steps; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    if (way == direction::staggered) return (position + begin()) % steps;
    return goes_back() ? steps - 1 - position : position;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int step) const {
    if (way == direction::staggered) return (step + steps - begin()) % steps;
    return goes_back() ? steps - 1 - step : step;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int begin() const {
    return static_cast<int>(static_cast<long long>(turn) * shift % steps);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool goes_back() const {
    return way == direction::backward || (way == direction::sawtooth && turn % 2 != 0);
  }
};

}  // namespace untax::order
