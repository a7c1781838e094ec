#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/core/reduction.hpp>
#include <untax/flow/room.hpp>

namespace untax {

/// The matrices that a protocol can name. An engine binds each to memory, an element type and a row
/// stride.
enum class operand : std::uint8_t {
  none,
  a,        ///< the caller's left operand; of other ranks only `reduce` reads it
  b,        ///< the caller's weights, [N, K]
  c,        ///< the result
  inbox,    ///< operator-owned symmetric memory that peers write
  outbox,   ///< operator-owned symmetric memory that this rank writes and another worker moves on
  product,  ///< the worker's private fp32 tile that multiplications accumulate in
  sum,      ///< the worker's private fp32 tile that partial results are added in
  panel,    ///< the worker's private left operand, assembled from several places
};

/// A position in an operand: the upper left corner of a rectangle, at the copy of rank `rank`.
struct place {
  operand of = operand::none;
  int rank = -1;
  std::int64_t row = 0;
  std::int64_t col = 0;
};

/// The action of a step on its operands.
enum class action : std::uint8_t {
  none,      ///< only the verbs of the step
  copy,      ///< to = from, rows x cols elements of the same type; `to` may be the worker's panel
  multiply,  ///< to (+)= from[rows x depth] * weights[cols x depth]^T; `first` overwrites, `last`
             ///< completes
  add,       ///< sum (+)= from[rows x cols]; `first` overwrites
  store,     ///< to = from (product or sum), converted to the element type of `to`
  reduce,    ///< to = the contributions of `depth` ranks combined in rank order, in fp32, rounded
             ///< once. The contribution of rank i starts i * rows rows below `from`, this rank's is
             ///< at `weights`; if `from` is in a, rank i's is at the same place in its a
  attend,    ///< to = the partial result of rows x cols queries at `from` over a split of the keys
             ///< and values of this rank: `weights` names the sequence and head (row) and the split
             ///< (col), `depth` is the number of splits
  merge,     ///< to = `depth` partial results of rows x cols, combined in order; number i starts i
             ///< * rows rows below `from`. The result is final in c, partial elsewhere
  normalise,  ///< to = rows x cols sums of whole rows, plus the rows that the operator adds to
              ///< them; behind them, in as many columns, these rows normalised
};

/// The number of columns that a partial result of attention has behind those of the result: two
/// numbers whose sum is the logarithm, to base 2, of the sum of the exponentials.
inline constexpr std::int64_t attention_statistics = 2;

/// One step of a worker: at most one verb of each kind around one action. The order is reserve,
/// acquire, action, publish, retire. A program is a sequence of steps, and so it is data: the
/// engines for hosts and for GPUs execute it, the model engine explores its interleavings, the
/// schedule checker proves that it ends.
struct step {
  action what = action::none;
  bool first = false;
  bool last = false;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t depth = 0;
  place from = {};
  place weights = {};
  place to = {};
  room reserve = {};
  room acquire = {};
  room publish = {};
  room retire = {};
  reduction combine = reduction::sum;  ///< the operation by which `reduce` combines
  int reader = 0;                      ///< the number of this worker among the readers of `retire`
  /// Whether the result of `reduce` or `normalise` goes to the same place of `to` at all `depth`
  /// ranks.
  bool everywhere = false;
};

/// The place of the contribution of rank `i` to a `reduce`.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr place addend(const step& s, std::int64_t i) noexcept {
  place at = s.from;
  if (at.of == operand::a) {
    at.rank = static_cast<int>(i);
    return at;
  }
  if (i == s.from.rank) return s.weights;
  at.row += i * s.rows;
  return at;
}

/// The place at rank `i` of the result of a `reduce` or `normalise`.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr place target(const step& s, int i) noexcept {
  place at = s.to;
  at.rank = i;
  return at;
}

/// Workers that are launched together. Kernels of one stage run at the same time. A stage starts
/// when all kernels of the stage before have ended at this rank; other ranks may still run them.
struct kernel {
  const char* name = "";
  int stage = 0;
  int workers = 1;
};

}  // namespace untax
