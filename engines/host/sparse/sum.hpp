#pragma once

#include <cstdint>
#include <span>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// The terms from element `begin` to `end`, added one after the other.
template <class Value, class Offset>
[[nodiscard]] Value sum_of(const csr_view<Value, Offset>& m, std::span<const Value> x,
                           std::int64_t begin, std::int64_t end) {
  Value sum = 0;
  for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
    sum += m.values[i] * x[static_cast<std::size_t>(m.columns[i])];
  return sum;
}

/// What a thread has of a row that another one completes.
template <class Value>
struct carry {
  std::int64_t row = -1;  ///< -1: nothing
  Value sum = 0;
};

}  // namespace untax::sparse
