#pragma once

/// Marks functions that kernels call as well as the host: `__host__ __device__` where CUDA is
/// compiled, nothing otherwise. `UNTAX_CALLS_ANY_SIDE` goes before a template whose arguments
/// decide on which side it can be called.
#if defined(__CUDACC__)
#define UNTAX_HOST_DEVICE __host__ __device__
#define UNTAX_CALLS_ANY_SIDE _Pragma("nv_exec_check_disable")
#else
#define UNTAX_HOST_DEVICE
#define UNTAX_CALLS_ANY_SIDE
#endif
