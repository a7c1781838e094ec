#pragma once

namespace untax::select {

/// The middle of two values, or `low` if no number lies between them. If values are whole or
/// rounded, a threshold in the middle is the least likely to coincide with values of later inputs.
[[nodiscard]] inline double threshold_between(double low, double high) {
  const double middle = low + (high - low) / 2;
  return middle < high ? middle : low;
}

}  // namespace untax::select
