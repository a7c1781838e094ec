// Kernels that never split a row at the end of a thread's part. Bits are the same for any number of
// threads.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include <untax/sparse/split.hpp>
#include <untax/sparse/ways.hpp>

#include "engines/host/sparse/kernel.hpp"
#include "engines/host/sparse/sum.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

template <class Value, class Offset>
class csr_thread final : public kernel<Value> {
 public:
  explicit csr_thread(csr_view<Value, Offset> matrix) : matrix_(matrix) {}

  void run(const spmv_call<Value>& call) override {
    call.team.launch(call.threads, [&](int thread) {
      const std::int64_t end = begin_of_part(matrix_.rows, thread + 1, call.threads);
      for (std::int64_t r = begin_of_part(matrix_.rows, thread, call.threads); r < end; ++r) {
        const auto at = static_cast<std::size_t>(r);
        call.put(r, sum_of(matrix_, call.x, matrix_.offsets[at], matrix_.offsets[at + 1]));
      }
    });
  }

 private:
  csr_view<Value, Offset> matrix_;
};

/// Adds the terms of a row as the lanes of a GPU do. Each lane adds its own terms with fma; then a
/// binary tree adds the sums of the lanes.
template <class Value, class Offset>
class csr_lanes final : public kernel<Value> {
 public:
  csr_lanes(csr_view<Value, Offset> matrix, const spmv_way& way)
      : matrix_(matrix), lanes_(way.lanes), mixed_(way.mixed) {}

  void run(const spmv_call<Value>& call) override {
    call.team.launch(call.threads, [&](int thread) {
      std::vector<Value> sums;
      const std::int64_t end = begin_of_part(matrix_.rows, thread + 1, call.threads);
      for (std::int64_t r = begin_of_part(matrix_.rows, thread, call.threads); r < end; ++r)
        call.put(r, sum_of_row(r, call.x, sums));
    });
  }

 private:
  [[nodiscard]] Value sum_of_row(std::int64_t row, std::span<const Value> x,
                                 std::vector<Value>& sums) const {
    const auto begin = static_cast<std::size_t>(matrix_.offsets[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(matrix_.offsets[static_cast<std::size_t>(row) + 1]);
    const int lanes = lanes_of_row(lanes_, mixed_, static_cast<std::int64_t>(end - begin));
    sums.assign(static_cast<std::size_t>(lanes), Value(0));
    for (std::size_t i = begin; i < end; ++i) {
      Value& sum = sums[(i - begin) % sums.size()];
      sum = std::fma(matrix_.values[i], x[static_cast<std::size_t>(matrix_.columns[i])], sum);
    }
    // One tree in each warp of a block, then one tree over the sums of the warps.
    for (std::size_t half = std::min<std::size_t>(sums.size(), 32) / 2; half > 0; half /= 2)
      add_halves(sums, half, 1);
    for (std::size_t half = sums.size() / 64; half > 0; half /= 2) add_halves(sums, half, 32);
    return sums[0];
  }
  /// Adds the upper to the lower half of each group of 2 * `half` sums, which lie `stride` apart.
  static void add_halves(std::vector<Value>& sums, std::size_t half, std::size_t stride) {
    for (std::size_t first = 0; first < sums.size(); first += 2 * half * stride) {
      for (std::size_t i = 0; i < half; ++i)
        sums[first + i * stride] += sums[first + (i + half) * stride];
    }
  }

  csr_view<Value, Offset> matrix_;
  int lanes_;
  bool mixed_;
};

/// Threads take blocks of rows with about equal numbers of elements, whenever they are free. A row
/// longer than a block is split into pieces of a block, whose sums are added in order at the end.
template <class Value, class Offset>
class csr_adaptive final : public kernel<Value> {
 public:
  explicit csr_adaptive(csr_view<Value, Offset> matrix) : matrix_(matrix) {
    block open;
    const auto close = [&] {
      if (open.begin < open.end) blocks_.push_back(open);
      open.begin = open.end;
    };
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      const std::int64_t size = offset(r + 1) - offset(r);
      if (offset(r + 1) - offset(open.begin) > elements || r - open.begin >= elements) close();
      open.end = r + 1;
      if (size <= elements) continue;
      open.begin = open.end;
      long_rows_.push_back({r, pieces_});
      for (std::int64_t at = offset(r); at < offset(r + 1); at += elements)
        blocks_.push_back({at, std::min(at + elements, offset(r + 1)), pieces_++});
    }
    close();
    sums_.resize(static_cast<std::size_t>(pieces_));
  }

  void run(const spmv_call<Value>& call) override {
    std::atomic<std::size_t> next = 0;
    call.team.launch(call.threads, [&](int) {
      for (std::size_t b = next.fetch_add(1); b < blocks_.size(); b = next.fetch_add(1)) {
        const block& mine = blocks_[b];
        if (mine.piece >= 0) {
          sums_[static_cast<std::size_t>(mine.piece)] =
              sum_of(matrix_, call.x, mine.begin, mine.end);
          continue;
        }
        for (std::int64_t r = mine.begin; r < mine.end; ++r)
          call.put(r, sum_of(matrix_, call.x, offset(r), offset(r + 1)));
      }
    });
    for (const auto& [row, first] : long_rows_) {
      Value sum = 0;
      const std::int64_t count = (offset(row + 1) - offset(row) + elements - 1) / elements;
      for (std::int64_t i = 0; i < count; ++i) sum += sums_[static_cast<std::size_t>(first + i)];
      call.put(row, sum);
    }
  }

 private:
  static constexpr std::int64_t elements = 4096;

  /// Rows, or, if `piece` is not -1, elements of a long row.
  struct block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t piece = -1;
  };
  struct long_row {
    std::int64_t row;
    std::int64_t first_piece;
  };

  [[nodiscard]] std::int64_t offset(std::int64_t row) const {
    return matrix_.offsets[static_cast<std::size_t>(row)];
  }

  csr_view<Value, Offset> matrix_;
  std::vector<block> blocks_;
  std::vector<long_row> long_rows_;
  std::int64_t pieces_ = 0;
  std::vector<Value> sums_;
};

}  // namespace

template <class Value, class Offset>
kernel_of<Value> make_csr_thread(csr_view<Value, Offset> matrix) {
  return std::make_unique<csr_thread<Value, Offset>>(matrix);
}
template <class Value, class Offset>
kernel_of<Value> make_csr_lanes(csr_view<Value, Offset> matrix, const spmv_way& way) {
  return std::make_unique<csr_lanes<Value, Offset>>(matrix, way);
}
template <class Value, class Offset>
kernel_of<Value> make_csr_adaptive(csr_view<Value, Offset> matrix) {
  return std::make_unique<csr_adaptive<Value, Offset>>(matrix);
}

#define UNTAX_MAKE(Value, Offset)                                                                \
  template kernel_of<Value> make_csr_thread(csr_view<Value, Offset> matrix);                     \
  template kernel_of<Value> make_csr_lanes(csr_view<Value, Offset> matrix, const spmv_way& way); \
  template kernel_of<Value> make_csr_adaptive(csr_view<Value, Offset> matrix);
UNTAX_SPARSE_TYPES(UNTAX_MAKE)
#undef UNTAX_MAKE

}  // namespace untax::sparse
