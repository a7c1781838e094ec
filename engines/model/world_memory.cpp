#include "engines/model/world_memory.hpp"

#include "engines/model/search.hpp"

namespace untax::model {
namespace {

constexpr std::array<operand, 4> shared = {operand::a, operand::c, operand::inbox, operand::outbox};

std::vector<int> offsets_of(std::span<const schedule::rank_plan> plans) {
  std::vector<int> first{0};
  for (const auto& plan : plans) first.push_back(first.back() + plan.counters());
  return first;
}

}  // namespace

model_counters::model_counters(std::span<const schedule::rank_plan> plans)
    : first_(offsets_of(plans)), counters_(static_cast<std::size_t>(first_.back())) {}

world_memory::world_memory(std::span<const schedule::rank_plan> plans) : counters_(plans) {
  for (const auto& plan : plans) {
    matrices_.push_back(
        {cell_matrix(plan.extent_of(shared[0])), cell_matrix(plan.extent_of(shared[1])),
         cell_matrix(plan.extent_of(shared[2])), cell_matrix(plan.extent_of(shared[3]))});
  }
}

void world_memory::create() {
  counters_.create();
  for (auto& of_rank : matrices_) {
    for (cell_matrix& m : of_rank) m.create();
  }
}

void world_memory::destroy() {
  for (auto& of_rank : matrices_) {
    for (cell_matrix& m : of_rank) m.destroy();
  }
  counters_.destroy();
}

const cell_matrix& world_memory::matrix(operand role, int rank) const {
  std::size_t slot = 0;
  while (slot < shared.size() && shared[slot] != role) ++slot;
  if (slot == shared.size() || rank < 0 || rank >= static_cast<int>(matrices_.size())) {
    fail("a step names a matrix that is not shared memory of any rank");
  }
  return matrices_[static_cast<std::size_t>(rank)][slot];
}

model_cell<std::uint64_t>& world_memory::cell(const place& where, std::int64_t row,
                                              std::int64_t col) const {
  const cell_matrix& m = matrix(where.of, where.rank);
  if (!m.holds(where.row + row, where.col + col)) {
    fail("an access outside the matrix: " +
         schedule::describe({where.of, where.rank, where.row + row, where.col + col}, 1, 1));
  }
  return m.at(where.row + row, where.col + col);
}

}  // namespace untax::model
