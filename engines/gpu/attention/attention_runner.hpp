#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/attention/arguments.hpp"

namespace untax::gpu {

/// Attention on the GPU of a rank. It owns the operator's memory: inbox, scratch and epochs.
/// Construction and destruction are collective, and make the rank's GPU the current device of the
/// calling thread. It must be the current device when kernels are launched.
class attention_runner {
 public:
  /// Loads the kernels, since loading one while a peer's kernel spins could wait for that kernel.
  /// `blocks` 0: one per multiprocessor that this rank may use. Throws `out_of_memory`,
  /// `invalid_argument` if `blocks` is more than the GPU can hold at once, `unsupported` for a
  /// shape without a kernel, for more than eight ranks, and without CUDA.
  attention_runner(world& w, const std::string& name, const attention_shape& shape,
                   attention_sink sink, int blocks);
  attention_runner(const attention_runner&) = delete;
  attention_runner& operator=(const attention_runner&) = delete;
  /// Waits until all work on this GPU and on the GPUs of the peers has ended, then frees the
  /// memory. After a failure the memory is left to the world.
  ~attention_runner();

  /// Returns `stream`. If it is null, returns a stream of the engine, ordered after the work of the
  /// default stream; the caller must then pass it to `finish` at the end of the run.
  [[nodiscard]] stream_ref stream_or_own(stream_ref stream) const;
  /// Waits for the work of a stream. Throws if a kernel or a wait has failed.
  void finish(stream_ref stream);

  /// attend() and combine() only launch kernels, and may be captured into a graph.

  /// Launches attention to the keys of this rank. With the sink `ranks` one kernel does everything.
  /// With `rows` partial results go to this rank's part of gathered(). With `outbox` a second
  /// kernel, which may start before the first one ends, sends partial results and combines them.
  void attend(const attention_operands& operands, stream_ref stream);
  /// With the sink `rows`: combines gathered(), which must hold the partial results of all ranks,
  /// or of all parts of this one.
  void combine(const attention_operands& operands, stream_ref stream);
  /// Memory for the partial results of all ranks, or of all parts: [rank][batch * heads, words].
  [[nodiscard]] std::uint32_t* gathered() const;
  [[nodiscard]] int blocks() const;

 private:
  class launcher;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace untax::gpu
