#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/tile/protocol.hpp>

#include "engines/sm90/transfer/block_worker.cuh"
#include "engines/sm90/transfer/code.hpp"
#include "engines/sm90/transfer/movers.cuh"

namespace untax::sm90 {

/// Threads of a block. Those that combine hold the contributions of all ranks in registers.
template <class Element, class Mover>
inline constexpr int threads_for = std::is_void_v<Element> ? Mover::threads : 256;

/// Each block is a worker of the protocol.
template <protocol Protocol, class Element, class Mover>
__global__ void __launch_bounds__((threads_for<Element, Mover>), 1)
    carry_out(const __grid_constant__ Protocol how, const __grid_constant__ run_arguments run) {
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ held_verbs held;
  if (run.launch < 0) return;
  Mover mover(shared);
  block_worker<Element, Mover> worker(run, mover, held, how.inbox().cols);
  how.program(run.launch, static_cast<int>(blockIdx.x), worker.epoch(),
              [&](const step& s) { worker.take(s); });
  worker.finish();
}

/// The kernel for a protocol. `Element` is void where nothing is combined.
template <class Element, class Mover, protocol Protocol>
[[nodiscard]] transfer_code code_of(const Protocol& how, int element_bytes) {
  transfer_code code;
  code.kernel = reinterpret_cast<const void*>(&carry_out<Protocol, Element, Mover>);
  code.first_argument = kernel_argument(how);
  for (int i = 0; i < how.kernels(); ++i) code.blocks.push_back(how.kernel_at(i).workers);
  code.threads = threads_for<Element, Mover>;
  code.shared_bytes = Mover::shared_bytes;
  code.inbox_bytes = static_cast<std::size_t>(how.inbox().rows * how.inbox().cols) *
                     static_cast<std::size_t>(element_bytes);
  code.counters = how.counters();
  code.element_bytes = element_bytes;
  code.text = Mover::name;
  return code;
}

}  // namespace untax::sm90
