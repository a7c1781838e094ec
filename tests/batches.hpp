#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/tile/shard.hpp>

namespace untax_test {

using untax::matrix;
using untax::range;

inline constexpr std::int64_t looked_at = 64;  // rows

/// Rows of a batch: by place, the number of the row that lies there.
using batch = std::vector<std::int64_t>;

/// The rows that are looked at, or as many of them as there is room for, at random places.
inline batch random_batch(std::mt19937_64& random, std::int64_t rows) {
  batch all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  if (rows < looked_at) {
    const auto begin = static_cast<std::int64_t>(random() % (looked_at - rows + 1));
    for (std::int64_t& row : all) row += begin;
  }
  std::ranges::shuffle(all, random);
  return all;
}

/// Bits of rows of the result, by their number and the rank that has them: nothing until they have
/// been seen.
class seen_rows {
 public:
  /// How many of the rows have other bits than before.
  int compare(int rank, const batch& rows, const range& own, const matrix& c) {
    const std::scoped_lock lock(mutex_);
    int differ = 0;
    for (std::int64_t i = 0; i < own.size; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(own.begin + i)];
      if (row >= looked_at) continue;
      const auto bytes = static_cast<std::size_t>(c.cols) * size_of(c.type);
      const char* from = static_cast<const char*>(c.data) +
                         static_cast<std::size_t>(i * c.stride) * size_of(c.type);
      std::string& known = bits_[{one_copy_ ? 0 : rank, row}];
      if (known.empty()) known.assign(from, bytes);
      if (std::memcmp(known.data(), from, bytes) != 0) ++differ;
      ++compared_;
    }
    return differ;
  }
  /// Of operators in which any rank may have a row, and all have the same.
  void expect_one_copy(bool expected) { one_copy_ = expected; }
  [[nodiscard]] int compared() const { return compared_; }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, std::int64_t>, std::string> bits_;
  bool one_copy_ = false;
  int compared_ = 0;
};

}  // namespace untax_test
