#include "ops/plan_check/operand_space.hpp"

#include "ops/common/nowhere.hpp"

namespace untax::plan_check {

void operand_space::add(operand of, int rank, std::int64_t address, const extent& size) {
  regions_.push_back({{of, rank, 0, 0}, address, size});
}

place operand_space::at(std::int64_t address, std::int64_t cols) const {
  for (const region& r : regions_) {
    const std::int64_t element = (address - r.address) / 2;
    if (address < r.address || element >= r.size.rows * r.size.cols) continue;
    const place found{r.first.of, r.first.rank, element / r.size.cols, element % r.size.cols};
    if (found.col + cols <= r.size.cols) return found;
  }
  return {};
}

place operand_space::rectangle(const void* first, std::int64_t stride, std::int64_t rows,
                               std::int64_t cols) const {
  const std::int64_t begin = nowhere::address(first);
  const place top = at(begin, cols);
  const place bottom = at(begin + (rows - 1) * stride * 2, cols);
  const bool whole = bottom.of == top.of && bottom.rank == top.rank &&
                     bottom.row == top.row + rows - 1 && bottom.col == top.col;
  return whole ? top : place{};
}

place operand_space::rectangle(const gpu::matrix_at& in, std::int64_t row, std::int64_t col,
                               std::int64_t rows, std::int64_t cols) const {
  return rectangle(static_cast<const std::byte*>(in.data) + (row * in.stride + col) * 2, in.stride,
                   rows, cols);
}

comm::step_source operand_space::moved_steps(const gpu::moved_operands& operands,
                                             const comm::step_source& steps) const {
  return [=, memory = *this](int sender, std::uint64_t epoch, const program::sink& emit) {
    steps(sender, epoch, [&](step s) {
      if (s.what == action::copy) {
        s.from = memory.moved(operands, s.from, s);
        s.to = memory.moved(operands, s.to, s);
      }
      emit(s);
    });
  };
}

}  // namespace untax::plan_check
