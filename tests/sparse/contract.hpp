#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/sparse/csr.hpp>
#include <untax/sparse/spmv.hpp>
#include <untax/sparse/ways.hpp>

#include "tests/sparse/support.hpp"

// The contract of <untax/sparse/ways.hpp>, tested on every implementation.

namespace untax::sparse::test {

/// y = alpha A x + beta y, of a matrix that is known already.
template <class Value>
using product_of = std::function<void(Value alpha, const std::vector<Value>& x, Value beta,
                                      std::vector<Value>& y)>;

/// Makes the product of a matrix.
template <class Value, class Offset>
using maker_of = std::function<product_of<Value>(const csr<Value, Offset>& matrix)>;

/// Whole numbers so small that sums of a million products are exact in any order.
template <class Value>
Value small_number(std::mt19937_64& random) {
  return static_cast<Value>(static_cast<int>(random() % 7) - 3);
}

/// Each element counts once, and each row is written once: sums of whole numbers are exact, y is
/// NaN before where it is not to be read, and so is x where there is no element. "" if that holds.
template <class Value, class Offset>
std::string elements_lost(csr<Value, Offset> m, const maker_of<Value, Offset>& make,
                          std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (Value& value : m.values) value = small_number<Value>(random);
  std::vector<Value> x(static_cast<std::size_t>(m.cols), std::numeric_limits<Value>::quiet_NaN());
  for (const std::int32_t column : m.columns)
    x[static_cast<std::size_t>(column)] = small_number<Value>(random);
  std::vector<Value> before(static_cast<std::size_t>(m.rows));
  for (Value& value : before) value = small_number<Value>(random);
  const product_of<Value> product = make(m);
  for (const auto& [alpha, beta] : {std::pair<Value, Value>{1, 0}, {2, 0}, {-1, 2}, {1, 1}}) {
    std::vector<Value> y(before.size(), std::numeric_limits<Value>::quiet_NaN());
    if (beta != 0) y = before;
    product(alpha, x, beta, y);
    for (std::size_t r = 0; r < y.size(); ++r) {
      Value sum = 0;
      for (auto i = static_cast<std::size_t>(m.offsets[r]);
           i < static_cast<std::size_t>(m.offsets[r + 1]); ++i)
        sum += m.values[i] * x[static_cast<std::size_t>(m.columns[i])];
      const Value right = alpha * sum + (beta == 0 ? 0 : beta * before[r]);
      if (y[r] == right) continue;
      return fmt::format("row {} of {} with {} elements, alpha {}, beta {}: {} instead of {}", r,
                         m.rows, m.offsets[r + 1] - m.offsets[r], alpha, beta, y[r], right);
    }
  }
  return {};
}

/// The fault of a product's sums, "" if there is none: they have to be near to compensated sums
/// and, if `ordered`, have the same bits in a second product.
template <class Value, class Offset>
std::string sums_wrong(const csr<Value, Offset>& m, const maker_of<Value, Offset>& make,
                       bool ordered, std::uint64_t seed) {
  const auto x = random_vector<Value>(m.cols, seed);
  const auto before = random_vector<Value>(m.rows, seed + 1);
  const product_of<Value> product = make(m);
  for (const auto& [alpha, beta] : {std::pair<Value, Value>{1, 0}, {2.5, 0}, {-1, 0.5}}) {
    std::vector<Value> y(before.size(), std::numeric_limits<Value>::quiet_NaN());
    if (beta != 0) y = before;
    product(alpha, x, beta, y);
    const double error = spmv_error(m.view(), alpha, std::span<const Value>(x), beta,
                                    std::span<const Value>(before), std::span<const Value>(y));
    if (!(error <= spmv_tolerance<Value>))
      return fmt::format("alpha {}, beta {}: wrong by {:.3g} of what absolute values add up to",
                         alpha, beta, error);
    if (!ordered) continue;
    std::vector<Value> again = before;
    product(alpha, x, beta, again);
    if (again != y) return fmt::format("alpha {}, beta {}: other bits again", alpha, beta);
  }
  return {};
}

/// The contract of a way. "" if it is kept.
template <class Value, class Offset>
std::string broken_contract(const csr<Value, Offset>& m, const maker_of<Value, Offset>& make,
                            bool ordered, std::uint64_t seed) {
  const std::string lost = elements_lost(m, make, seed);
  return lost.empty() ? sums_wrong(m, make, ordered, seed) : lost;
}

/// Lengths of rows: short ones, empty ones, a few as long as there are columns, until these have
/// enough elements.
inline std::vector<std::int64_t> random_lengths(std::int64_t rows, std::int64_t cols,
                                                std::mt19937_64& random) {
  const bool with_empty = random() % 2 == 0;
  const std::uint64_t usual = random() % 40 + 1;
  constexpr std::int64_t enough = 200'000;
  std::int64_t of_long_rows = 0;
  std::vector<std::int64_t> lengths;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint64_t kind = random() % 64;
    std::int64_t most = std::min<std::int64_t>(cols, static_cast<std::int64_t>(usual));
    if (kind == 0 && of_long_rows < enough) most = cols;
    const auto length = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
    if (kind == 0) of_long_rows += length;
    lengths.push_back(with_empty && kind < 24 && kind > 0 ? 0 : length);
  }
  return lengths;
}

/// Lengths of rows that meet the ends of units, of slices and of blocks.
inline std::vector<std::vector<std::int64_t>> odd_lengths() {
  std::vector<std::vector<std::int64_t>> all = {{0},
                                                {0, 0, 0},
                                                {1},
                                                {0, 0, 0, 7, 0, 0},
                                                {9000, 0, 4096, 4097, 1, 0, 8193},
                                                {1023, 1, 1, 0, 1023},
                                                {1024, 1024},
                                                {1025, 0, 0, 1023},
                                                {3000, 3000, 3000}};
  all.emplace_back(5000, 0);  // nothing but empty rows
  all.emplace_back(1024, 1);  // a row each place of a unit
  all.emplace_back(31, 33);   // a slice that is not full
  all.emplace_back(4097, 2);
  std::vector<std::int64_t> gaps(3000, 0);  // many empty rows around a long one
  gaps[1500] = 5000;
  all.push_back(std::move(gaps));
  std::vector<std::int64_t> last(2000, 0);  // the last row has everything
  last.back() = 2048;
  all.push_back(std::move(last));
  return all;
}

}  // namespace untax::sparse::test
