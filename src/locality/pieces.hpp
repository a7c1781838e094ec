#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

#include "src/locality/cache.hpp"

namespace untax::locality {

/// Whether memory sends the granules of an operand in pairs: an even one and the odd one next to
/// it.
[[nodiscard]] inline bool comes_in_pairs(const operand& o, const device& d) {
  return o.granule_columns * o.element_bytes == d.sector && d.fetch == 2 * d.sector &&
         o.granules_across % 2 == 0;
}
[[nodiscard]] inline std::int64_t other_of_pair(const operand& o, std::int64_t granule) {
  return o.first_granule + ((granule - o.first_granule) ^ 1);
}

/// The units in which granules of different sizes share a cache. A granule takes one or more of
/// them.
struct pieces {
  double unit = 1;
  std::vector<int> units;         ///< units of a granule, by operand
  std::vector<double> bytes;      ///< bytes of a granule, by operand
  static constexpr int most = 8;  ///< limit of units per granule, which bounds the cost of a lookup

  pieces(const kernel& k, const device& d) : operands_(k.operands()) {
    std::int64_t common = 0;
    double largest = 0;
    for (const operand& o : k.operands()) {
      common = std::gcd(common, o.granule_rows * o.granule_columns * o.element_bytes);
      largest = std::max(largest, o.granule_bytes());
    }
    unit = std::max({static_cast<double>(common), static_cast<double>(d.sector), largest / most});
    for (const operand& o : operands_) {
      come_in_pairs_.push_back(comes_in_pairs(o, d));
      bytes.push_back(o.granule_bytes());
      units.push_back(std::max(1, static_cast<int>(std::ceil(o.granule_bytes() / unit - 1e-9))));
    }
  }

  /// The granule that memory sends along with `granule`; -1 if there is none.
  [[nodiscard]] std::int64_t partner(std::size_t operand, std::int64_t granule) const {
    return come_in_pairs_[operand] ? other_of_pair(operands_[operand], granule) : -1;
  }

  /// The number of unit `i` of a granule.
  [[nodiscard]] std::int64_t number(std::size_t operand, std::int64_t granule, int i) const {
    return operands_[operand].has_addresses ? granule | addressed_piece : granule * most + i;
  }

 private:
  const std::vector<operand>& operands_;
  std::vector<bool> come_in_pairs_;
};

}  // namespace untax::locality
