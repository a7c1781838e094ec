#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/sinks/owned_rows.hpp"

namespace untax {

/// What the kernel is given that adds, behind a GEMM that does not, what ranks have left of this
/// one's rows.
template <class Protocol>
struct row_sums : gpu::with_peers<Protocol> {
  gpu::owned_rows owned;
  std::int64_t slab_bytes = 0;    ///< from what a rank left to what the next one did
  bool passes_on = false;         ///< the sums go to the results of all ranks
  std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks that have stored all, ever
  const std::uint64_t* epoch = nullptr;  ///< the same: of the GEMM, which not always is followed
  dtype type = dtype::bf16;
};

/// Adds them in the order of the ranks, in fp32, and rounds once: into a C of the own rows, or into
/// those rows of the results of all ranks, who then tell each other that they are there, as output
/// 1 of the protocol. With `early` blocks take places as the kernel before them leaves them.
template <class Protocol>
void add_rows(const row_sums<Protocol>& io, int blocks, bool early, cudaStream_t stream);

}  // namespace untax
