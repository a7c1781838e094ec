#pragma once

/// Marks what kernels call as well as the host: `__host__ __device__` where CUDA is compiled,
/// nothing otherwise.
#if defined(__CUDACC__)
#define UNTAX_HOST_DEVICE __host__ __device__
#else
#define UNTAX_HOST_DEVICE
#endif
