#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <untax/tile/step.hpp>

#include "engines/gpu/copy/moved_operands.hpp"
#include "engines/gpu/launch/operator_launcher.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {

/// Enqueues a step that only copies on `stream`, for a copy engine to execute.
inline void copy_by_dma(const moved_operands& operands, const step& s, cudaStream_t stream) {
  const copied_rows c = operands.rows_of(s);
  const cudaError_t result =
      c.dense() ? cudaMemcpyAsync(c.to, c.from, c.rows * c.row_bytes, cudaMemcpyDefault, stream)
                : cudaMemcpy2DAsync(c.to, c.to_pitch, c.from, c.from_pitch, c.row_bytes, c.rows,
                                    cudaMemcpyDefault, stream);
  require(result, "a copy engine cannot move");
}

/// Enqueues the copy steps of senders for copy engines, which need no SM. Copies run after the work
/// in stream `on`, on the launcher's side streams from number 1 on. `send(sender, take)` passes the
/// steps of a sender to `take`. What a rank sends to itself is copied in `on` itself, before the
/// kernel that follows: a copy within a GPU may need an SM, and that kernel occupies them all.
///
/// The signal of a copy is another copy, of eight bytes, which begins when the first one is
/// complete. It takes as long as a small copy, so it has a stream of its own, and the next chunk
/// does not wait for it. Its value, `use`, is read from device memory when it is sent, so a
/// captured graph can be replayed. Copy engines do not wait: rooms are known to be free before that
/// value is raised.
template <class Send>
void start_dma_senders(const operator_launcher& launcher, const moved_operands& operands,
                       const std::uint64_t* use, int senders, cudaStream_t on, const Send& send) {
  for (int i = 1; i <= 2 * senders; ++i) launcher.side(i).fork(on);
  for (int sender = 0; sender < senders; ++sender) {
    const side_stream& copies = launcher.side(1 + 2 * sender);
    const side_stream& signals = launcher.side(2 + 2 * sender);
    send(sender, [&](const step& s) {
      const bool own = s.to.rank == operands.run.world.rank;
      if (s.what == action::copy) copy_by_dma(operands, s, own ? on : copies.get());
      if (!s.publish.named()) return;
      if (!own) signals.fork(copies.get());
      std::uint64_t* const counter =
          operands.run.counters.at(s.publish.consumer, static_cast<std::size_t>(s.publish.ready));
      require(
          cudaMemcpyAsync(counter, use, sizeof *use, cudaMemcpyDefault, own ? on : signals.get()),
          "a copy engine cannot signal");
    });
  }
}

}  // namespace untax::gpu
