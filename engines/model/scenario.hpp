#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engines/schedule/plan.hpp"

namespace untax::model {

/// A protocol on tiny matrices of whole numbers: the plans of all ranks, the a and b of the caller,
/// and the expected c. Numbers are 64 bits wide and wrap around, so that the order of summation
/// does not matter.
struct scenario {
  std::string name;
  std::vector<schedule::rank_plan> plans;
  /// The caller's a at a rank in an epoch.
  std::function<std::uint64_t(int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col)> a;
  /// The weights of a rank, [its columns of the result, its part of k]; zeros beyond these.
  std::function<std::uint64_t(int rank, std::int64_t col, std::int64_t k)> b =
      [](int, std::int64_t, std::int64_t) { return std::uint64_t{0}; };
  /// The value of an element of c at a rank after an epoch.
  std::function<std::uint64_t(int rank, std::uint64_t epoch, std::int64_t row, std::int64_t col)>
      expected;
};

/// Numbers to fill matrices with: different for every (epoch, row, col), so that a value that is
/// late, or comes from another place, makes a wrong result.
[[nodiscard]] constexpr std::uint64_t sample(std::uint64_t epoch, std::int64_t row,
                                             std::int64_t col) noexcept {
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  };
  const auto at = static_cast<std::uint64_t>(row) * 4099 + static_cast<std::uint64_t>(col);
  return mix(mix(epoch + 1) + at) >> 40;
}

}  // namespace untax::model
