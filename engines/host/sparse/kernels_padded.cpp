#include <algorithm>
#include <array>
#include <vector>

#include <untax/sparse/spmv.hpp>
#include "src/sparse/instantiate.hpp"

#include <untax/sparse/split.hpp>
#include "engines/host/sparse/kernel.hpp"

namespace untax::sparse {
namespace {

constexpr std::int64_t slice_rows = 64;

/// Rows in slices. Each slice is padded to its longest row and stored by columns. Padding has
/// column -1 and is skipped, so that x may hold anything. The terms of a row are added in order, so
/// that bits do not depend on the number of threads.
template <class Value>
class padded final : public kernel<Value> {
 public:
  /// `least_width`: the least width of each slice.
  template <class Offset>
  padded(csr_view<Value, Offset> matrix, std::int64_t least_width) : rows_(matrix.rows) {
    const auto length = [&](std::int64_t r) {
      return static_cast<std::int64_t>(matrix.offsets[static_cast<std::size_t>(r) + 1]) -
             matrix.offsets[static_cast<std::size_t>(r)];
    };
    for (std::int64_t begin = 0; begin < rows_; begin += slice_rows) {
      const std::int64_t end = std::min(begin + slice_rows, rows_);
      std::int64_t width = least_width;
      for (std::int64_t r = begin; r < end; ++r) width = std::max(width, length(r));
      begins_.push_back(begins_.back() + static_cast<std::size_t>(width * slice_rows));
    }
    columns_.assign(begins_.back(), -1);
    values_.assign(begins_.back(), 0);
    for (std::int64_t r = 0; r < rows_; ++r) {
      std::size_t to = begins_[static_cast<std::size_t>(r / slice_rows)] +
                       static_cast<std::size_t>(r % slice_rows);
      for (std::int64_t i = 0; i < length(r); ++i, to += slice_rows) {
        const auto from = static_cast<std::size_t>(matrix.offsets[static_cast<std::size_t>(r)] + i);
        columns_[to] = matrix.columns[from];
        values_[to] = matrix.values[from];
      }
    }
  }

  void run(const spmv_call<Value>& call) override {
    const auto slices = static_cast<std::int64_t>(begins_.size()) - 1;
    call.team.launch(call.threads, [&](int thread) {
      const std::int64_t end = begin_of_part(slices, thread + 1, call.threads);
      for (std::int64_t s = begin_of_part(slices, thread, call.threads); s < end; ++s)
        slice(s, call);
    });
  }

 private:
  void slice(std::int64_t number, const spmv_call<Value>& call) const {
    std::array<Value, slice_rows> sums{};
    const auto at = static_cast<std::size_t>(number);
    for (std::size_t i = begins_[at]; i < begins_[at + 1]; i += slice_rows) {
      for (std::size_t r = 0; r < slice_rows; ++r) {
        if (columns_[i + r] >= 0)
          sums[r] += values_[i + r] * call.x[static_cast<std::size_t>(columns_[i + r])];
      }
    }
    const std::int64_t first = number * slice_rows;
    for (std::int64_t r = first; r < std::min(first + slice_rows, rows_); ++r)
      call.put(r, sums[static_cast<std::size_t>(r - first)]);
  }

  std::int64_t rows_;
  std::vector<std::size_t> begins_{0};
  std::vector<std::int32_t> columns_;
  std::vector<Value> values_;
};

}  // namespace

template <class Value, class Offset>
kernel_of<Value> make_ell(csr_view<Value, Offset> matrix) {
  std::int64_t longest = 0;
  for (std::size_t r = 0; r + 1 < matrix.offsets.size(); ++r)
    longest = std::max<std::int64_t>(longest, matrix.offsets[r + 1] - matrix.offsets[r]);
  require_padding(matrix.rows, matrix.size(), longest);
  return std::make_unique<padded<Value>>(matrix, longest);
}
template <class Value, class Offset>
kernel_of<Value> make_sellp(csr_view<Value, Offset> matrix) {
  return std::make_unique<padded<Value>>(matrix, 0);
}

#define UNTAX_MAKE(Value, Offset)                                     \
  template kernel_of<Value> make_ell(csr_view<Value, Offset> matrix); \
  template kernel_of<Value> make_sellp(csr_view<Value, Offset> matrix);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
