// Kernels that split rows at the end of a thread's part. A thread keeps its partial sum of a row
// that another thread completes. These sums are added in the order of threads.

#include <vector>

#include <untax/sparse/split.hpp>
#include "engines/host/sparse/kernel.hpp"
#include "engines/host/sparse/sum.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

template <class Value>
void add_carries(const std::vector<carry<Value>>& carries, const spmv_call<Value>& call) {
  for (const auto& [row, sum] : carries) {
    if (row >= 0) call.y[static_cast<std::size_t>(row)] += call.alpha * sum;
  }
}

template <class Value, class Offset>
class csr_merge_path final : public kernel<Value> {
 public:
  explicit csr_merge_path(csr_view<Value, Offset> matrix) : matrix_(matrix) {}

  void run(const spmv_call<Value>& call) override {
    std::vector<carry<Value>> carries(static_cast<std::size_t>(call.threads));
    const std::int64_t steps = matrix_.rows + matrix_.size();
    call.team.launch(call.threads, [&](int thread) {
      const path_point begin =
          merge_path(matrix_.offsets, begin_of_part(steps, thread, call.threads));
      const path_point end =
          merge_path(matrix_.offsets, begin_of_part(steps, thread + 1, call.threads));
      std::int64_t at = begin.entries;
      for (std::int64_t r = begin.rows; r < end.rows; ++r) {
        const std::int64_t next = matrix_.offsets[static_cast<std::size_t>(r) + 1];
        call.put(r, sum_of(matrix_, call.x, at, next));
        at = next;
      }
      if (at < end.entries)
        carries[static_cast<std::size_t>(thread)] = {end.rows,
                                                     sum_of(matrix_, call.x, at, end.entries)};
    });
    add_carries(carries, call);
  }

 private:
  csr_view<Value, Offset> matrix_;
};

/// Each thread has the rows that begin in its part of the elements; the last thread also has the
/// rows behind all elements. Elements of a part before its first row belong to the row that began
/// earlier.
template <class Value, class Offset>
class csr_balanced final : public kernel<Value> {
 public:
  explicit csr_balanced(csr_view<Value, Offset> matrix) : matrix_(matrix) {}

  void run(const spmv_call<Value>& call) override {
    std::vector<carry<Value>> carries(static_cast<std::size_t>(call.threads));
    const std::int64_t elements = matrix_.size();
    call.team.launch(call.threads, [&](int thread) {
      const bool last = thread + 1 == call.threads;
      const std::int64_t begin = begin_of_part(elements, thread, call.threads);
      const std::int64_t end = begin_of_part(elements, thread + 1, call.threads);
      const std::int64_t first = first_row_from(matrix_.offsets, begin);
      const std::int64_t behind = last ? matrix_.rows : first_row_from(matrix_.offsets, end);
      const std::int64_t head = std::min<std::int64_t>(end, offset(first));
      if (begin < head)
        carries[static_cast<std::size_t>(thread)] = {first - 1,
                                                     sum_of(matrix_, call.x, begin, head)};
      for (std::int64_t r = first; r < behind; ++r)
        call.put(r, sum_of(matrix_, call.x, offset(r), std::min(end, offset(r + 1))));
    });
    add_carries(carries, call);
  }

 private:
  [[nodiscard]] std::int64_t offset(std::int64_t row) const {
    return matrix_.offsets[static_cast<std::size_t>(row)];
  }

  csr_view<Value, Offset> matrix_;
};

template <class Value>
class coo final : public kernel<Value> {
 public:
  template <class Offset>
  explicit coo(csr_view<Value, Offset> matrix)
      : columns_(matrix.columns.begin(), matrix.columns.begin() + matrix.size()),
        values_(matrix.values.begin(), matrix.values.begin() + matrix.size()) {
    rows_.reserve(columns_.size());
    for (std::int64_t r = 0; r < matrix.rows; ++r)
      rows_.resize(static_cast<std::size_t>(matrix.offsets[static_cast<std::size_t>(r) + 1]), r);
  }

  void run(const spmv_call<Value>& call) override {
    const auto rows = static_cast<std::int64_t>(call.y.size());
    call.team.launch(call.threads, [&](int thread) {
      const std::int64_t end = begin_of_part(rows, thread + 1, call.threads);
      for (std::int64_t r = begin_of_part(rows, thread, call.threads); r < end; ++r) call.put(r, 0);
    });
    std::vector<carry<Value>> carries(static_cast<std::size_t>(call.threads));
    const auto elements = static_cast<std::int64_t>(values_.size());
    call.team.launch(call.threads, [&](int thread) {
      const auto end = static_cast<std::size_t>(begin_of_part(elements, thread + 1, call.threads));
      auto at = static_cast<std::size_t>(begin_of_part(elements, thread, call.threads));
      bool cut = at > 0 && at < end && rows_[at - 1] == rows_[at];
      while (at < end) {
        const std::int64_t row = rows_[at];
        Value sum = 0;
        for (; at < end && rows_[at] == row; ++at)
          sum += values_[at] * call.x[static_cast<std::size_t>(columns_[at])];
        if (cut) {
          carries[static_cast<std::size_t>(thread)] = {row, sum};
        } else {
          call.y[static_cast<std::size_t>(row)] += call.alpha * sum;
        }
        cut = false;
      }
    });
    add_carries(carries, call);
  }

 private:
  std::vector<std::int64_t> rows_;
  std::vector<std::int32_t> columns_;
  std::vector<Value> values_;
};

}  // namespace

template <class Value, class Offset>
kernel_of<Value> make_csr_merge_path(csr_view<Value, Offset> matrix) {
  return std::make_unique<csr_merge_path<Value, Offset>>(matrix);
}
template <class Value, class Offset>
kernel_of<Value> make_csr_balanced(csr_view<Value, Offset> matrix) {
  return std::make_unique<csr_balanced<Value, Offset>>(matrix);
}
template <class Value, class Offset>
kernel_of<Value> make_coo(csr_view<Value, Offset> matrix) {
  return std::make_unique<coo<Value>>(matrix);
}

#define UNTAX_MAKE(Value, Offset)                                                \
  template kernel_of<Value> make_csr_merge_path(csr_view<Value, Offset> matrix); \
  template kernel_of<Value> make_csr_balanced(csr_view<Value, Offset> matrix);   \
  template kernel_of<Value> make_coo(csr_view<Value, Offset> matrix);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
