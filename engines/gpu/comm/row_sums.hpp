#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"

namespace untax {

/// The arguments of a kernel that follows a GEMM and adds the partial results that the GEMMs of all
/// ranks have stored for this rank's rows.
template <class Protocol>
struct row_sums : gpu::with_peers<Protocol> {
  gpu::owned_rows owned;
  std::int64_t slab_bytes = 0;    ///< from the partial results of a rank to those of the next
  bool passes_on = false;         ///< sums are stored to the results of all ranks
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks finished in all runs
  const std::uint64_t* epoch = nullptr;  ///< the GEMM's epoch, in GPU memory: this kernel does not
                                         ///< run in every epoch
  dtype type = dtype::bf16;
};

/// Adds partial results in the order of ranks, in fp32, and rounds once. The kernel stores the sums
/// to a C of the rank's own rows, or to these rows of the results of all ranks. In the second case
/// the ranks then signal completion to each other, as output 1 of the protocol. `early`:
/// programmatic dependent launch.
template <class Protocol>
void add_rows(const row_sums<Protocol>& io, int blocks, bool early, cudaStream_t stream);

}  // namespace untax
