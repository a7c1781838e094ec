#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/attention/arguments.hpp"

namespace untax::gpu {

/// Attention on the GPU of a rank. It owns the operator's memory: inbox, scratch and epochs.
/// Construction and destruction are collective, and need the rank's GPU to be the current one of
/// the calling thread.
class attention_runner {
 public:
  /// Loads the kernels, since loading one while a peer's kernel spins could wait for that kernel.
  /// `blocks` 0: one for each multiprocessor. Throws `out_of_memory`, `invalid_argument` if more
  /// blocks are asked for than the GPU can hold at once, `unsupported` for a shape without a
  /// kernel, for more ranks than eight, and without CUDA.
  attention_runner(world& w, const std::string& name, const attention_shape& shape,
                   attention_sink sink, int blocks);
  attention_runner(const attention_runner&) = delete;
  attention_runner& operator=(const attention_runner&) = delete;
  /// Waits until all work on this GPU, and on those of the peers, has ended, then frees the memory.
  /// After a failure the memory is left alone.
  ~attention_runner();

  /// Returns `stream`, or, if it is null, a stream of the engine, ordered after the default
  /// stream's work; then `finish` has to be called with it at the end of the run.
  [[nodiscard]] stream_ref stream_or_own(stream_ref stream) const;
  /// Waits for a stream, and throws if anything has failed.
  void finish(stream_ref stream);

  /// The functions below only launch, and can be captured.

  /// Launches attention to the keys of this rank. With the sink `ranks` that one kernel does
  /// everything. With `rows` partial results go to this rank's part of gathered(). With `outbox` a
  /// second kernel, which starts before this one ends, sends and combines them.
  void attend(const attention_operands& operands, stream_ref stream);
  /// With the sink `rows`: combines gathered(), which must hold the partial results of all ranks.
  void combine(const attention_operands& operands, stream_ref stream);
  /// [rank][batch * heads, words]
  [[nodiscard]] std::uint32_t* gathered() const;
  [[nodiscard]] int blocks() const;

 private:
  class launcher;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace untax::gpu
