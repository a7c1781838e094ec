#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <untax/tile/program.hpp>

namespace untax::schedule {

/// Sizes of the caller's matrices at one rank, in elements: a [rows, its part of k], b [columns,
/// its part of k], c [rows, columns]. Chains of multiplications of this rank have to cover all
/// columns of b.
struct operand_extents {
  extent a;
  extent b;
  extent c;
};

/// A worker of a kernel.
struct worker_name {
  int kernel = 0;
  int worker = 0;
};

/// All steps of one rank in epochs 1..epochs: the input of the schedule checker and of the model
/// engine.
class rank_plan {
 public:
  /// `results`: the part of c that each epoch writes, if epochs have different numbers of rows.
  rank_plan(const program& source, const operand_extents& operands, std::uint64_t epochs,
            std::vector<extent> results = {});

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int world() const noexcept { return world_; }
  [[nodiscard]] int counters() const noexcept { return counters_; }
  [[nodiscard]] std::uint64_t epochs() const noexcept { return epochs_; }
  [[nodiscard]] extent tile() const noexcept { return tile_; }
  [[nodiscard]] const std::vector<kernel>& kernels() const noexcept { return kernels_; }
  /// The size of a matrix in memory at this rank. Private tiles have no extent here.
  [[nodiscard]] extent extent_of(operand of) const noexcept;

  /// The part of c, from its first row and column on, that an epoch has to complete.
  [[nodiscard]] extent result_of(std::uint64_t epoch) const noexcept {
    return results_.empty() ? operands_.c : results_[static_cast<std::size_t>(epoch - 1)];
  }
  /// Whether this part, and with it the place of every element, is the same in all epochs.
  [[nodiscard]] bool epochs_are_alike() const noexcept { return results_.empty(); }

  [[nodiscard]] const std::vector<step>& steps(worker_name who, std::uint64_t epoch) const {
    return programs_[index_of(who, epoch)];
  }
  /// As above, mutable: for mutants, and for tests that break a plan.
  [[nodiscard]] std::vector<step>& steps(worker_name who, std::uint64_t epoch) {
    return programs_[index_of(who, epoch)];
  }

  /// Workers by stage, in the order in which the stages run. All workers of a stage run at the same
  /// time.
  [[nodiscard]] const std::vector<std::vector<worker_name>>& stages() const noexcept {
    return stages_;
  }
  /// The most workers that run at the same time.
  [[nodiscard]] int lanes() const noexcept { return lanes_; }

 private:
  [[nodiscard]] std::size_t index_of(worker_name who, std::uint64_t epoch) const;

  int rank_;
  int world_;
  int counters_;
  std::uint64_t epochs_;
  operand_extents operands_;
  std::vector<extent> results_;
  extent inbox_;
  extent outbox_;
  extent tile_;
  std::vector<kernel> kernels_;
  std::vector<int> first_worker_;  // of each kernel, counted over all kernels; one more at the end
  std::vector<std::vector<worker_name>> stages_;
  int lanes_ = 0;
  std::vector<std::vector<step>> programs_;
};

/// The largest panel of a worker: the rows of a tile by the depth of the multiplications.
[[nodiscard]] extent panel_extent(const rank_plan& plan) noexcept;

/// The position of a step. `index` counts from 0 in the program of the worker in that epoch.
struct step_position {
  int rank = 0;
  worker_name who;
  std::uint64_t epoch = 0;
  int index = 0;
};

/// "rank 1, kernel gemm, worker 0, epoch 2, step 5 (multiply)"
[[nodiscard]] std::string describe(const rank_plan& plan, const step_position& at);

/// "room 3 (rank 0 to rank 1, use 2)"
[[nodiscard]] std::string describe(const room& r);

/// "inbox of rank 1, rows 0..3, columns 4..7"; both ends are included.
[[nodiscard]] std::string describe(const place& at, std::int64_t rows, std::int64_t cols);

/// "multiply", "copy", ...
[[nodiscard]] const char* name_of(action what) noexcept;
/// "inbox", "c", ...
[[nodiscard]] const char* name_of(operand role) noexcept;

}  // namespace untax::schedule
