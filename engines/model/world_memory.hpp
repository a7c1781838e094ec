#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <untax/memory/model_memory.hpp>
#include <untax/tile/step.hpp>

#include "engines/model/execution_array.hpp"
#include "engines/schedule/plan.hpp"

namespace untax::model {

/// A matrix of one rank, every element a cell that the checker watches.
class cell_matrix {
 public:
  explicit cell_matrix(extent size)
      : size_(size),
        cells_(static_cast<std::size_t>(size.rows) * static_cast<std::size_t>(size.cols)) {}

  void create() { cells_.create(); }
  void destroy() { cells_.destroy(); }
  [[nodiscard]] extent size() const noexcept { return size_; }
  [[nodiscard]] bool holds(std::int64_t row, std::int64_t col) const noexcept {
    return row >= 0 && row < size_.rows && col >= 0 && col < size_.cols;
  }
  [[nodiscard]] model_cell<std::uint64_t>& at(std::int64_t row, std::int64_t col) const {
    return cells_[static_cast<std::size_t>(row * size_.cols + col)];
  }

 private:
  extent size_;
  execution_array<model_cell<std::uint64_t>> cells_;
};

/// The counters of all ranks.
class model_counters {
 public:
  explicit model_counters(std::span<const schedule::rank_plan> plans);

  void create() { counters_.create(); }
  void destroy() { counters_.destroy(); }
  [[nodiscard]] model_counter& at(int rank, int index) const {
    return counters_[static_cast<std::size_t>(first_[static_cast<std::size_t>(rank)] + index)];
  }

 private:
  std::vector<int> first_;
  execution_array<model_counter> counters_;
};

/// Gives channels access to the counters.
struct model_counter_table {
  const model_counters* counters = nullptr;

  [[nodiscard]] model_counter& at(int rank, int index) const { return counters->at(rank, index); }
};

/// All shared memory of a scenario, made anew for each execution.
class world_memory {
 public:
  explicit world_memory(std::span<const schedule::rank_plan> plans);

  void create();
  void destroy();
  /// a, c, inbox or outbox of a rank.
  [[nodiscard]] const cell_matrix& matrix(operand role, int rank) const;
  /// The cell at `where` plus (row, col). Fails the execution if that is outside the matrix.
  [[nodiscard]] model_cell<std::uint64_t>& cell(const place& where, std::int64_t row,
                                                std::int64_t col) const;
  [[nodiscard]] const model_counters& counters() const noexcept { return counters_; }

 private:
  std::vector<std::array<cell_matrix, 4>> matrices_;
  model_counters counters_;
};

}  // namespace untax::model
