#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/all_gather_gemm/gather.hpp"

namespace untax {

/// The movers of the protocol as a kernel of their own.
void move_gathered(const gather_traffic& traffic, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream);

/// A kernel that ends when everything that others send has come.
void await_gathered(const gather_traffic& traffic, std::uint64_t* epoch, cudaStream_t stream);

}  // namespace untax
