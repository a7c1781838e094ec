#include <untax/sparse/profile.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

/// Lengths from this on are sorted instead of counted.
constexpr std::int64_t counted = 1 << 20;
constexpr std::int64_t slice = 32;

/// The lengths of rows in ascending order; `at` returns the one at a position.
class sorted_lengths {
 public:
  template <class Offset>
  explicit sorted_lengths(std::span<const Offset> offsets) : counts_(1) {
    for (std::size_t r = 0; r + 1 < offsets.size(); ++r) {
      const auto length = static_cast<std::int64_t>(offsets[r + 1]) - offsets[r];
      if (length >= counted) {
        long_.push_back(length);
        continue;
      }
      if (static_cast<std::size_t>(length) >= counts_.size())
        counts_.resize(static_cast<std::size_t>(length) + 1);
      ++counts_[static_cast<std::size_t>(length)];
    }
    std::ranges::sort(long_);
  }

  [[nodiscard]] std::int64_t at(std::int64_t place) const {
    for (std::size_t length = 0; length < counts_.size(); ++length) {
      if (place < counts_[length]) return static_cast<std::int64_t>(length);
      place -= counts_[length];
    }
    return long_[static_cast<std::size_t>(place)];
  }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> long_;
};

}  // namespace

template <class Offset>
row_profile profile_of(std::span<const Offset> offsets, std::int64_t cols) {
  row_profile p;
  p.rows = static_cast<std::int64_t>(offsets.size()) - 1;
  p.cols = cols;
  p.nnz = offsets.back();
  if (p.rows == 0) return p;
  p.row_mean = static_cast<double>(p.nnz) / static_cast<double>(p.rows);
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r) {
    const double away =
        static_cast<double>(static_cast<std::int64_t>(offsets[r + 1]) - offsets[r]) - p.row_mean;
    p.row_variance += away * away / static_cast<double>(p.rows);
  }
  for (std::int64_t first = 0; first < p.rows; first += slice) {
    std::int64_t longest = 0;
    for (std::int64_t r = first; r < std::min(first + slice, p.rows); ++r) {
      const auto at = static_cast<std::size_t>(r);
      longest = std::max<std::int64_t>(longest, offsets[at + 1] - offsets[at]);
    }
    p.padded += static_cast<double>(longest * slice);
  }
  const sorted_lengths lengths(offsets);
  const auto quantile = [&](double part) {
    const double place = part * static_cast<double>(p.rows - 1);
    const auto below = static_cast<std::int64_t>(place);
    const auto low = static_cast<double>(lengths.at(below));
    if (below + 1 >= p.rows) return low;
    return low + (place - static_cast<double>(below)) *
                     (static_cast<double>(lengths.at(below + 1)) - low);
  };
  p.row_min = quantile(0);
  p.row_q1 = quantile(0.25);
  p.row_median = quantile(0.5);
  p.row_q3 = quantile(0.75);
  p.row_max = quantile(1);
  return p;
}

template <class Value, class Offset>
std::int64_t band_of(const csr_view<Value, Offset>& matrix) {
  std::int64_t widest = 0;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    const double place = static_cast<double>(r) * static_cast<double>(matrix.cols) /
                         static_cast<double>(matrix.rows);
    for (auto i = static_cast<std::size_t>(matrix.offsets[static_cast<std::size_t>(r)]);
         i < static_cast<std::size_t>(matrix.offsets[static_cast<std::size_t>(r) + 1]); ++i)
      widest = std::max<std::int64_t>(
          widest, std::abs(matrix.columns[i] - static_cast<std::int64_t>(place)));
  }
  return widest;
}

template row_profile profile_of(std::span<const std::int32_t> offsets, std::int64_t cols);
template row_profile profile_of(std::span<const std::int64_t> offsets, std::int64_t cols);
#define UNTAX_BAND(Value, Offset) \
  template std::int64_t band_of(const csr_view<Value, Offset>& matrix);
UNTAX_SPARSE_TYPES(UNTAX_BAND)
#undef UNTAX_BAND

}  // namespace untax::sparse
