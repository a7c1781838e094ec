#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/sparse/csr.hpp>

namespace untax::sparse::test {

/// The text of the `error` that `action` throws; "" if it throws none.
template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

/// Rows of these lengths, with random columns and values.
template <class Value, class Offset>
csr<Value, Offset> with_rows(const std::vector<std::int64_t>& lengths, std::int64_t cols,
                             std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  csr<Value, Offset> result;
  result.rows = static_cast<std::int64_t>(lengths.size());
  result.cols = cols;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) {
      // Ascending, and all different.
      result.columns.push_back(static_cast<std::int32_t>(
          cols * i / length +
          static_cast<std::int64_t>(
              random() % static_cast<std::uint64_t>(std::max<std::int64_t>(cols / length, 1)))));
      result.values.push_back(static_cast<Value>(value(random)));
    }
    result.offsets.push_back(static_cast<Offset>(result.columns.size()));
  }
  return result;
}

template <class Value>
std::vector<Value> random_vector(std::int64_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::vector<Value> result;
  for (std::int64_t i = 0; i < size; ++i) result.push_back(static_cast<Value>(value(random)));
  return result;
}

}  // namespace untax::sparse::test
