#pragma once

#include <cstdint>

namespace untax::host {

/// C[m x n] = A[m x k] x B[n x k]^T (+ C), fp32: each element is ((c + a0 b0) + a1 b1) + ..., with
/// every product and every sum rounded. So the bits of an element do not depend on its position, on
/// the number of elements, on how the product is split along m, n and k, or on the processor.
/// Without `accumulate` c begins as 0. Libraries are quicker, but their order of additions depends
/// on the shape.
void multiply_in_order(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                       std::int64_t lda, const float* b, std::int64_t ldb, bool accumulate,
                       float* c, std::int64_t ldc);

}  // namespace untax::host
