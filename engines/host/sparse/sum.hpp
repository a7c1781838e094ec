#pragma once

#include <cstdint>
#include <span>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// The sum of the terms from element `begin` to `end`, added in order.
template <class Value, class Offset>
[[nodiscard]] Value sum_of(const csr_view<Value, Offset>& m, std::span<const Value> x,
                           std::int64_t begin, std::int64_t end) {
  Value sum = 0;
  for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
    sum += m.values[i] * x[static_cast<std::size_t>(m.columns[i])];
  return sum;
}

/// A thread's partial sum of a row that another thread completes.
template <class Value>
struct carry {
  std::int64_t row = -1;  ///< -1: nothing
  Value sum = 0;
};

}  // namespace untax::sparse
