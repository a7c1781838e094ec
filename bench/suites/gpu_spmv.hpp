#pragma once

#include <span>

#include "bench/suites/spmv.hpp"

namespace untax::bench {

/// Measures the ways of `options` on the current GPU, with the matrix and x copied there. Throws
/// `unsupported` where there is none.
template <class Value, class Offset>
void measure_on_gpu(const sparse::csr<Value, Offset>& matrix, std::span<const Value> x,
                    const spmv_options& options, spmv_figures& to);

/// Bytes a second that the GPU reads from its memory. Throws `unsupported` where there is none.
[[nodiscard]] double gpu_memory_rate();

}  // namespace untax::bench
