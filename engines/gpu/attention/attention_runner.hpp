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
  /// Waits until all that runs on this GPU, and on those of the peers, has ended, then frees the
  /// memory. After a failure the memory is left alone.
  ~attention_runner();

  /// The stream itself, or one of the engine's own where there is none, behind what the default
  /// stream has; then `finish` has to be called with it at the end of the run.
  [[nodiscard]] stream_ref stream_or_own(stream_ref stream) const;
  /// Waits for a stream, and throws what has gone wrong.
  void finish(stream_ref stream);

  /// Everything below only launches, and can be captured.

  /// One kernel: attention to what this rank has. With the sink `ranks` that is everything; with
  /// `rows` the partial results lie in this rank's part of gathered(); with `outbox` a second
  /// kernel, which begins before the first one is done, sends and combines them.
  void attend(const attention_operands& operands, stream_ref stream);
  /// With the sink `rows`: combines gathered() once it has the partial results of all ranks.
  void combine(const attention_operands& operands, stream_ref stream);
  /// [rank][batch * heads, words]
  [[nodiscard]] std::uint32_t* gathered() const;
  [[nodiscard]] int blocks() const;

 private:
  class launcher;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace untax::gpu
