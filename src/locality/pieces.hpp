#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// How granules of different sizes share a cache: in units, of which each granule takes one or
/// more.
struct pieces {
  double unit = 1;
  std::vector<int> units;         ///< of a granule of each operand
  std::vector<double> bytes;      ///< of such a granule
  static constexpr int most = 8;  ///< units of a granule, so that looking up stays cheap

  explicit pieces(const kernel& k, int line) {
    std::int64_t common = 0;
    double largest = 0;
    for (const operand& o : k.operands()) {
      common = std::gcd(common, o.granule_rows * o.granule_columns * o.element_bytes);
      largest = std::max(largest, o.granule_bytes());
    }
    unit = std::max({static_cast<double>(common), static_cast<double>(line), largest / most});
    for (const operand& o : k.operands()) {
      bytes.push_back(o.granule_bytes());
      units.push_back(std::max(1, static_cast<int>(std::ceil(o.granule_bytes() / unit - 1e-9))));
    }
  }

  /// The number of unit `i` of a granule.
  [[nodiscard]] static std::int64_t number(std::int64_t granule, int i) {
    return granule * most + i;
  }
};

}  // namespace untax::locality
