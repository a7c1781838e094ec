#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/tile/protocol.hpp>

#include "engines/gpu/collectives/collective_kernel.hpp"
#include "engines/gpu/collectives/commands.cuh"
#include "engines/gpu/collectives/control_warp.cuh"
#include "engines/gpu/collectives/senders.cuh"

namespace untax::gpu {

/// The control warp's part of a worker. Not inlined, so that its state takes no registers from the
/// worker warps.
template <protocol Protocol>
__device__ __noinline__ void conduct(const Protocol& how, const run_arguments& run,
                                     command_board& board) {
  control_warp worker(run, board, how.inbox().cols);
  how.program(run.launch, static_cast<int>(blockIdx.x), worker.epoch(),
              [&](const step& s) { worker.take(s); });
  worker.finish();
}

/// The role of the calling warp in traces. Of the worker warps only the first one is traced.
template <int worker_threads>
[[nodiscard]] __device__ warp_role role_in_collective() {
  if (threadIdx.x >= worker_threads) return warp_role::control;
  return threadIdx.x < 32 ? warp_role::worker : warp_role::none;
}

/// The kernel. Each block is one worker of the protocol: some worker warps and a control warp.
template <protocol Protocol, class Element, class Sender>
__global__ void __launch_bounds__(block_threads<Sender::group::size()>, 1)
    carry_out(const __grid_constant__ Protocol how, const __grid_constant__ run_arguments run) {
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ command_board board;
  if (run.launch < 0) return;
  constexpr int worker_threads = Sender::group::size();
  const kernel_note noted(run, role_in_collective<worker_threads>(), run.epochs[blockIdx.x] + 1,
                          run.launch);
  if (threadIdx.x == 0) board.init(worker_threads / 32);
  Sender sender(shared);
  __syncthreads();
  if (threadIdx.x < worker_threads) return follow<Element>(run, board, sender);
  conduct(how, run, board);
}

/// The kernel for a protocol. `Element` is void if nothing is combined.
template <class Element, class Sender, protocol Protocol>
[[nodiscard]] collective_kernel code_of(const Protocol& how, int element_bytes) {
  collective_kernel code;
  code.kernel = reinterpret_cast<const void*>(&carry_out<Protocol, Element, Sender>);
  code.first_argument = kernel_argument(how);
  for (int i = 0; i < how.kernels(); ++i) code.blocks.push_back(how.kernel_at(i).workers);
  code.threads = block_threads<Sender::group::size()>;
  code.shared_bytes = Sender::shared_bytes;
  code.inbox_bytes = static_cast<std::size_t>(how.inbox().rows * how.inbox().cols) *
                     static_cast<std::size_t>(element_bytes);
  code.counters = how.counters();
  code.element_bytes = element_bytes;
  code.text = Sender::name;
  return code;
}

}  // namespace untax::gpu
