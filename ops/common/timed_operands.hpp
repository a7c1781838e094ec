#pragma once

#include <cstdint>

#include <untax/core/matrix.hpp>

#include "engines/bulk/scratch.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// What one rank has when a GEMM operator is timed on its GPU, which is the current device: inputs
/// N(0, 1), the weights at several places, together more than three times L2, since a model's
/// weights come from memory.
class timed_operands {
 public:
  /// Throws `out_of_memory`. Waits until the inputs are there.
  timed_operands(const gemm_share& share, const gemm_problem& problem, std::uint64_t seed,
                 stream_ref stream);

  [[nodiscard]] const_matrix a() const noexcept { return as_const(a_); }
  /// For run `i`: runs that follow each other take other places.
  [[nodiscard]] const_matrix weights(int i) const;
  /// For results that may lie anywhere.
  [[nodiscard]] const matrix& c() const noexcept { return c_; }

 private:
  [[nodiscard]] matrix place(int i) const;

  matrix b_;  ///< at the first place
  std::size_t b_bytes_;
  int places_;
  bulk::scratch a_memory_;
  bulk::scratch b_memory_;
  bulk::scratch c_memory_;
  matrix a_;
  matrix c_;
};

}  // namespace untax
