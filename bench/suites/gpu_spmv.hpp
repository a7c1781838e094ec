#pragma once

#include <span>

#include "bench/suites/spmv.hpp"

namespace untax::bench {

/// Measures the kernels of `options` on the current GPU, to which it copies the matrix and x.
/// Throws `unsupported` if there is none.
template <class Value, class Offset>
void measure_on_gpu(const sparse::csr<Value, Offset>& matrix, std::span<const Value> x,
                    const spmv_options& options, spmv_figures& to);

/// The bytes per second that the GPU reads from its memory. Throws `unsupported` without a GPU.
[[nodiscard]] double gpu_memory_rate();

}  // namespace untax::bench
