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

/// C[m, n] = A[m, k] * B[n, k]^T, sums in fp32. All row-major; so many elements lie between the
/// beginnings of two rows, 0 meaning that there are no gaps.
struct library_product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;    ///< of A and B
  dtype result = dtype::bf16;  ///< of C: `type`, or fp32
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  bool adds = false;  ///< to what C holds
};

/// A product by cuBLASLt on the current device, in each of the ways that its heuristics propose.
/// Runs of one object follow each other (they share scratch memory).
class library_gemm {
 public:
  /// Throws `unsupported` if cuBLASLt is not there or cannot do it, `out_of_memory`.
  explicit library_gemm(const library_product& product);
  library_gemm(library_gemm&&) noexcept;
  library_gemm& operator=(library_gemm&&) noexcept;
  ~library_gemm();

  [[nodiscard]] int ways() const noexcept;
  /// Asynchronous; can be captured.
  void run(int way, const void* a, const void* b, void* c, stream_ref stream) const;

  /// The way that `run` without one takes; at first the one that the heuristics like best.
  void prefer(int way) noexcept;
  void run(const void* a, const void* b, void* c, stream_ref stream) const;
  /// Measures all ways on memory of its own, which holds N(0, 1) and is larger than the caches, and
  /// prefers the quickest. Afterwards its kernels are loaded. Waits.
  void settle();

 private:
  class call;
  std::unique_ptr<call> call_;
};

}  // namespace untax::bulk
