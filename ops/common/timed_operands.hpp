#pragma once

#include <cstdint>

#include <untax/core/matrix.hpp>

#include "engines/bulk/scratch.hpp"
#include "ops/common/operator_entry.hpp"

namespace untax {

/// The operands of one rank for timing a GEMM operator on its GPU, which is the current device:
/// inputs N(0, 1), and several copies of the weights, together more than three times L2, since a
/// model reads its weights from memory, not from L2.
class timed_operands {
 public:
  /// Throws `out_of_memory`. Waits until the inputs are there.
  timed_operands(const gemm_share& share, const gemm_problem& problem, std::uint64_t seed,
                 stream_ref stream);

  [[nodiscard]] const_matrix a() const noexcept { return as_const(a_); }
  /// The weights for run `i`: consecutive runs take different copies.
  [[nodiscard]] const_matrix weights(int i) const;
  /// For results that may lie anywhere.
  [[nodiscard]] const matrix& c() const noexcept { return c_; }

 private:
  [[nodiscard]] matrix place(int i) const;

  matrix b_;  ///< the first copy
  std::size_t b_bytes_;
  int places_;
  bulk::scratch a_memory_;
  bulk::scratch b_memory_;
  bulk::scratch c_memory_;
  matrix a_;
  matrix c_;
};

}  // namespace untax
