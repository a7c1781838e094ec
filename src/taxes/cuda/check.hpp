#pragma once

#include <cuda_runtime_api.h>

namespace untax {

/// Throws `internal` with the text of a CUDA error.
void check_cuda(cudaError_t status, const char* what);

}  // namespace untax
