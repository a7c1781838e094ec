#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <untax/tile/step.hpp>

#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/launch/operator_launcher.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {

/// A copy engine takes a step that only moves, on a stream.
inline void copy_by_dma(const moved_operands& operands, const step& s, cudaStream_t stream) {
  const copied_rows c = operands.rows_of(s);
  const cudaError_t result =
      c.dense() ? cudaMemcpyAsync(c.to, c.from, c.rows * c.row_bytes, cudaMemcpyDefault, stream)
                : cudaMemcpy2DAsync(c.to, c.to_pitch, c.from, c.from_pitch, c.row_bytes, c.rows,
                                    cudaMemcpyDefault, stream);
  require(result, "a copy engine cannot move");
}

/// Carries out, on the host, the steps of a program that only move: copy engines do the work, on a
/// stream, and no multiprocessor does.
///
/// The signal of a copy is another copy, of eight bytes, which begins when the first has arrived.
/// It takes as long as a small copy takes, so it has a stream of its own, and the next chunk does
/// not wait for it. Its value is read from device memory when it is sent, so a captured graph can
/// be replayed. Copy engines do not wait: whoever raises that value has made sure before that rooms
/// are free.
template <class AfterCopies>
class dma_sender {
 public:
  /// `use`: in device memory, what signals say in this run.
  /// `after_copies(stream)` makes another stream wait for what `stream` has been asked for so far,
  /// and gives that one back.
  dma_sender(const moved_operands& operands, const std::uint64_t* use, cudaStream_t stream,
             const AfterCopies& after_copies)
      : operands_(operands), use_(use), stream_(stream), after_copies_(after_copies) {}

  void operator()(const step& s) const {
    if (s.what == action::copy) copy_by_dma(operands_, s, stream_);
    if (!s.publish.named()) return;
    std::uint64_t* const counter =
        operands_.run.counters.at(s.publish.consumer, static_cast<std::size_t>(s.publish.ready));
    gpu::require(
        cudaMemcpyAsync(counter, use_, sizeof *use_, cudaMemcpyDefault, after_copies_(stream_)),
        "a copy engine cannot signal");
  }

 private:
  const moved_operands& operands_;
  const std::uint64_t* use_;
  cudaStream_t stream_;
  AfterCopies after_copies_;
};

/// Starts what so many DMA senders move behind what the stream `on` has, on the launcher's side
/// streams from number 1 on: two for each, one for copies and one for their signals. `send(sender,
/// take)` hands the steps of a sender to `take`. What a rank sends to itself goes on `on`, before
/// the kernel that is behind it: a copy within a GPU may need a multiprocessor, and that kernel
/// takes them all.
template <class Send>
void start_dma_senders(const operator_launcher& launcher, const moved_operands& operands,
                       const std::uint64_t* use, int senders, cudaStream_t on, const Send& send) {
  const dma_sender own(operands, use, on, [on](cudaStream_t) { return on; });
  for (int i = 1; i <= 2 * senders; ++i) launcher.side(i).fork(on);
  for (int sender = 0; sender < senders; ++sender) {
    const side_stream& copying = launcher.side(1 + 2 * sender);
    const side_stream& signals = launcher.side(2 + 2 * sender);
    const dma_sender others(operands, use, copying.get(), [&](cudaStream_t copies) {
      signals.fork(copies);
      return signals.get();
    });
    send(sender, [&](const step& s) { s.to.rank == operands.run.world.rank ? own(s) : others(s); });
  }
}

}  // namespace untax::gpu
