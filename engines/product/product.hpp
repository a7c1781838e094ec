#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/core/activation.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>

namespace untax {

/// C[m, n] = A[m, k] * B[n, k]^T on one GPU, rows without gaps, sums in fp32.
struct product_shape {
  std::int64_t m = 0;
  std::int64_t n = 0;  ///< a multiple of 8, like k
  std::int64_t k = 0;
  dtype type = dtype::bf16;    ///< of A and B: bf16 or fp16
  dtype result = dtype::bf16;  ///< of C: `type`, or fp32, which only cuBLASLt supports
  /// The order of an element's additions depends on n and k alone; only untax's kernels have such
  /// an order.
  bool invariant = false;
  /// No kernel ahead in the stream writes B, so untax's kernels may read it before the kernels
  /// ahead have ended.
  bool constant_weights = false;
  bool library = false;  ///< cuBLASLt multiplies, by the algorithm that `library_gemm` chooses, and
                         ///< no other kernel
  /// Ranks that share the GPU. Their kernels may wait for each other, and cuBLASLt may need the
  /// whole GPU. So from two ranks on only untax's kernels multiply, on an even part of the
  /// multiprocessors; none is launched before the kernels ahead have ended, since it could take
  /// their place; and none writes fp32.
  int sharing = 1;
};

/// A product on the current GPU by untax's kernel or by cuBLASLt, whichever was quicker when the
/// object was made. Runs of one object share scratch memory, so they must not overlap.
class product {
 public:
  /// For exactly m rows. Times untax's kernel, and cuBLASLt with all algorithms that its heuristics
  /// propose, on operands of its own that do not fit in caches. If there is no memory for these, or
  /// with UNTAX_MEASURE=0, the number of rows decides between the first plan of the cost model and
  /// the first algorithm. Blocks until the kernels have run. Throws `unsupported` if neither can
  /// compute the product, `out_of_memory`.
  explicit product(const product_shape& shape);
  /// For any number of rows above `least` up to m. Each of `ends`, ascending to m, has a plan of
  /// untax's kernels for the numbers of rows up to it, and is timed.
  product(const product_shape& shape, const std::vector<std::int64_t>& ends,
          std::int64_t least = 0);
  product(product&&) noexcept;
  product& operator=(product&&) noexcept;
  ~product();

  /// Sets the rows of the next runs, 1 to m, if rows vary. Launches nothing.
  void set_rows(std::int64_t rows);
  /// Asynchronous; can be captured. Everything begins at multiples of 16 bytes.
  void run(const void* a, const void* b, void* c, stream_ref stream) const;
  /// As `run`, for a B whose rows are those of gate and up, in groups of `gate_group` in turn: out
  /// = function(gate + bias) * (up + bias), [m, n / 2], in one kernel. `bias` [n] may be null.
  /// Returns false, and launches nothing, if the kernel for these rows cannot compute that.
  [[nodiscard]] bool run_gated(const void* a, const void* b, activation_function function,
                               const void* bias, void* out, stream_ref stream) const;

  /// "a GEMM of untax, or of cuBLASLt 12.8 above 96 rows": for `explain()`.
  [[nodiscard]] std::string text() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace untax
