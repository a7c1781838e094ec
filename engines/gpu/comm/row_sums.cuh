#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/row_sums.hpp"
#include "engines/gpu/norm/elements.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/trace/kernel_events.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {

/// A block that adds elements of type T. A rank's own rows are contiguous in every slab and in
/// every result, so they are one array of words, over which all threads of the grid loop.
template <class T, class Protocol>
class row_adder {
 public:
  explicit __device__ row_adder(const row_sums<Protocol>& io)
      : io_(io), step_(static_cast<std::int64_t>(gridDim.x) * gpu::row_sum_threads) {
    const int rank = io.how.rank();
    const std::int64_t words_of_row = io.moved.c_stride / gpu::row_words;
    const int first = io.owned.first(rank);
    words_ = (io.owned.end(rank) - first) * words_of_row;
    slab_ = reinterpret_cast<const uint4*>(io.moved.run.inbox.local()) +
            (first - io.owned.slab_begin(rank)) * words_of_row;
    result_ = io.passes_on ? first * words_of_row : 0;
  }

  __device__ void run() const {
    for (std::int64_t at = std::int64_t{blockIdx.x} * gpu::row_sum_threads + threadIdx.x;
         at < words_; at += together * step_)
      add(at);
  }

 private:
  static constexpr int together = 4;  // words of a slab that a thread loads at once
  using eight = gpu::eight<T>;

  /// Adds `together` words, the first one at `at`, `step_` apart.
  __device__ void add(std::int64_t at) const {
    eight sums[together];
    take(at, 0, [&](int i, const eight& first) { sums[i] = first; });
    for (int source = 1; source < io_.how.world(); ++source)
      take(at, source, [&](int i, const eight& more) { sums[i].add(more); });
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (at + i * step_ < words_) store(at + i * step_, sums[i].pairs());
    }
  }
  template <class Visit>
  __device__ void take(std::int64_t at, int source, const Visit& visit) const {
    const uint4* const slab = slab_ + source * (io_.slab_bytes / std::int64_t{sizeof(uint4)});
    uint4 seen[together];
#pragma unroll
    for (int i = 0; i < together; ++i)
      seen[i] = at + i * step_ < words_ ? __ldcs(slab + at + i * step_) : uint4{};
#pragma unroll
    for (int i = 0; i < together; ++i) visit(i, eight::of(seen[i]));
  }
  /// Stores to the next rank first, and to this rank last.
  __device__ void store(std::int64_t at, const uint4& word) const {
    const int rank = io_.how.rank();
    const int world = io_.how.world();
    for (int hop = io_.passes_on ? 1 : world; hop <= world; ++hop) {
      std::byte* const result =
          io_.moved.run.out + (receiver_at_hop(rank, hop, world) - rank) * io_.moved.run.between;
      reinterpret_cast<uint4*>(result)[result_ + at] = word;
    }
  }

  const row_sums<Protocol>& io_;
  std::int64_t step_;
  std::int64_t words_;
  std::int64_t result_;  // first word of the own rows in a result
  const uint4* slab_;    // the own rows in the slab of rank 0
};

template <class Protocol>
__global__ void __launch_bounds__(gpu::row_sum_threads)
    row_sum_kernel(const __grid_constant__ row_sums<Protocol> io) {
  if (io.dry()) return;
  gpu::griddepcontrol_wait();
  gpu::griddepcontrol_launch_dependents();
  const std::uint64_t epoch = *io.epoch;
  const std::uint64_t before = epoch - 1;
  gpu::note_kernel_begin_behind(io.moved.run, gpu::warp_role::adder, before);
  if (io.type == dtype::bf16) {
    row_adder<__nv_bfloat16, Protocol>(io).run();
  } else {
    row_adder<__half, Protocol>(io).run();
  }
  __syncthreads();
  if (io.passes_on && threadIdx.x < 32)
    (void)close_as_last(output_channel<Protocol>(io, 1, epoch, 0), *io.done, gridDim.x);
  __syncthreads();
  gpu::note_kernel_end(io.moved.run);
}

template <class Protocol>
void add_rows(const row_sums<Protocol>& io, int blocks, bool early, cudaStream_t stream) {
  gpu::start_pdl(early, row_sum_kernel<Protocol>, blocks, gpu::row_sum_threads, stream,
                 "cannot start a sum over ranks", io);
}

}  // namespace untax
