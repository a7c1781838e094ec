#pragma once

namespace untax::select {

/// A threshold between two values: the lower one only if no other number lies between. Where values
/// are whole or rounded, one in the middle is the least likely to divide those that come later.
[[nodiscard]] inline double threshold_between(double low, double high) {
  const double middle = low + (high - low) / 2;
  return middle < high ? middle : low;
}

}  // namespace untax::select
