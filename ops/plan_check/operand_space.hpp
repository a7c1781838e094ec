#pragma once

#include <cstdint>
#include <vector>

#include <untax/tile/protocol.hpp>
#include <untax/tile/step.hpp>

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
