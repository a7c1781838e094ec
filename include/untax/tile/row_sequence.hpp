#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <untax/tile/row_program.hpp>

namespace untax {

/// Runs of an operator with a capacity, one after the other, as one protocol: epoch e has the rows
/// of run e. The checkers use it. Both sets are in one inbox, one below the other.
class row_sequence {
 public:
  row_sequence(row_program programs, std::vector<std::int64_t> rows)
      : programs_(std::move(programs)), rows_(std::move(rows)) {
    for (const std::int64_t end : programs_.ends()) {
      if (programs_.sizes_at(end).kernels == programs_.most_kernels()) longest_ = end;
    }
  }

  [[nodiscard]] int rank() const noexcept { return programs_.rank(); }
  [[nodiscard]] int world() const noexcept { return programs_.world(); }
  [[nodiscard]] int counters() const noexcept { return programs_.counters(); }
  [[nodiscard]] extent inbox() const noexcept { return twice(programs_.inbox()); }
  [[nodiscard]] extent outbox() const noexcept { return twice(programs_.outbox()); }
  [[nodiscard]] extent tile_extent() const noexcept { return programs_.tile_extent(); }
  [[nodiscard]] int kernels() const noexcept { return programs_.most_kernels(); }
  [[nodiscard]] kernel kernel_at(int i) const {
    kernel k = programs_.kernel_at(longest_, i);
    for (const std::int64_t rows : rows_) k.workers = std::max(k.workers, workers_of(rows, i));
    return k;
  }

  template <class Emit>
  void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    const row_run run{epoch, rows_[static_cast<std::size_t>(epoch - 1)]};
    if (worker >= workers_of(run.rows, kernel_index)) return;
    programs_.steps(run, programs_.sizes_at(run.rows).kernels, kernel_index, worker,
                    [&](const step& s) {
                      step t = s;
                      for (place step::*at : {&step::from, &step::weights, &step::to})
                        (t.*at).row += below((t.*at).of, run.set());
                      emit(t);
                    });
  }

 private:
  [[nodiscard]] static extent twice(const extent& of_set) noexcept {
    return {run_sets * of_set.rows, of_set.cols};
  }
  [[nodiscard]] std::int64_t below(operand of, int set) const noexcept {
    if (of == operand::inbox) return set * programs_.inbox().rows;
    return of == operand::outbox ? set * programs_.outbox().rows : 0;
  }
  /// The workers of kernel `i` in a run with `rows` rows; 0 if that run has fewer kernels.
  [[nodiscard]] int workers_of(std::int64_t rows, int i) const {
    return i < programs_.sizes_at(rows).kernels ? programs_.kernel_at(rows, i).workers : 0;
  }

  row_program programs_;
  std::vector<std::int64_t> rows_;
  std::int64_t longest_ = 1;
};

static_assert(protocol<row_sequence>);

}  // namespace untax
