#pragma once

#include <cstdint>
#include <optional>

#include <untax/core/matrix.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "ops/common/operator_entry.hpp"

namespace untax {

/// The reference for a rank's part of C, in fp32, on the current device: by a plain loop or, where
/// that would take too long, by cuBLASLt with fp32 results. All memory is allocated at the
/// beginning, since an allocation may wait for kernels of peers that wait for this rank.
class device_reference {
 public:
  /// For the part of C that `rank` of `world` ranks gets.
  device_reference(const operator_entry& entry, const gemm_problem& problem, int world, int rank);

  /// Computes the reference for the inputs of a seed. Asynchronous.
  void compute(std::uint64_t seed, stream_ref stream);
  /// The relative error of a result, as `deviation` defines it. Waits for the stream.
  [[nodiscard]] double error_of(const const_matrix& c, stream_ref stream) const;

 private:
  gemm_problem problem_;
  gemm_share share_;
  double tolerance_;
  double element_share_;
  bulk::scratch a_memory_;  ///< the rows of A that the part needs
  bulk::scratch b_memory_;
  bulk::scratch c_memory_;
  bulk::scratch sums_;
  matrix a_;
  matrix b_;
  matrix right_;
  std::optional<bulk::library_gemm> product_;  ///< for large problems
};

}  // namespace untax
