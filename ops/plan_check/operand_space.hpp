#pragma once

#include <cstdint>
#include <vector>

#include <untax/tile/protocol.hpp>
#include <untax/tile/step.hpp>

#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"

namespace untax::plan_check {

/// Which operands lie at which addresses, as one rank sees them: rows of elements of 2 bytes, one
/// behind the other. Nothing is at these addresses; they only say what a planned kernel means.
class operand_space {
 public:
  void add(operand of, int rank, std::int64_t address, const extent& size);

  /// What a rectangle is whose rows begin `stride` elements apart; `none` unless all of it is one
  /// rectangle of one operand.
  [[nodiscard]] place rectangle(const void* first, std::int64_t stride, std::int64_t rows,
                                std::int64_t cols) const;
  /// The same of a part of a matrix.
  [[nodiscard]] place rectangle(const gpu::matrix_at& in, std::int64_t row, std::int64_t col,
                                std::int64_t rows, std::int64_t cols) const;
  /// The rectangle of a step, of the operands of one that moves.
  [[nodiscard]] place moved(const gpu::moved_operands& operands, const place& p,
                            const step& s) const {
    return rectangle(operands.at(p), operands.stride_of(p.of), s.rows, s.cols);
  }
  /// The steps of senders who take those of their program, by where they move.
  [[nodiscard]] comm::step_source moved_steps(const gpu::moved_operands& operands,
                                              const comm::step_source& steps) const;

 private:
  struct region {
    place first;
    std::int64_t address = 0;
    extent size;
  };

  [[nodiscard]] place at(std::int64_t address, std::int64_t cols) const;

  std::vector<region> regions_;
};

}  // namespace untax::plan_check
