#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>

#include "engines/bulk/availability.hpp"

namespace untax::bulk {

/// Whether cuBLASLt can be used by this program on this machine. Loads it the first time.
[[nodiscard]] const availability& blas();

/// C[m, n] = A[m, k] * B[n, k]^T, sums in fp32. All matrices are row-major. A stride is the number
/// of elements from row to row; 0: no gaps.
struct library_product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;    ///< of A and B
  dtype result = dtype::bf16;  ///< of C: `type`, or fp32
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  bool adds = false;  ///< accumulates into C
};

/// A product by cuBLASLt on the current device, by any of the algorithms ("ways") that its
/// heuristics propose. Runs of one object share scratch memory, so they must not overlap.
class library_gemm {
 public:
  /// Throws `unsupported` if cuBLASLt is missing or cannot compute this, and `out_of_memory`.
  explicit library_gemm(const library_product& product);
  library_gemm(library_gemm&&) noexcept;
  library_gemm& operator=(library_gemm&&) noexcept;
  ~library_gemm();

  [[nodiscard]] int ways() const noexcept;
  /// Asynchronous; can be captured.
  void run(int way, const void* a, const void* b, void* c, stream_ref stream) const;

  /// Sets the way that the other `run` uses. Initially that is the heuristics' first choice.
  void prefer(int way) noexcept;
  void run(const void* a, const void* b, void* c, stream_ref stream) const;
  /// Measures all ways and prefers the quickest. Its operands are filled with N(0, 1) and larger
  /// than the caches. Afterwards the kernels are loaded. Blocks until they have run.
  void settle();

  /// Lets m vary from `least` up to the product's: takes the first proposal of the heuristics for
  /// each number of rows, and from 512 on for 64 numbers of each octave. Runs each algorithm once
  /// on operands of its own, so that kernels are loaded before any kernel waits for a peer. Blocks
  /// until they have run. Throws `out_of_memory`.
  void vary_rows(std::int64_t least = 1);
  /// Sets m, from 1 to the product's, of the next runs of the other `run`; to be called after
  /// `vary_rows`. Runs use the algorithm of the least number of rows that is not below m. Launches
  /// nothing.
  void set_rows(std::int64_t m);

 private:
  class call;
  std::unique_ptr<call> call_;
};

}  // namespace untax::bulk
