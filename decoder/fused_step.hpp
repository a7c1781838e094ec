#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/decoder/layer.hpp>
#include <untax/decoder/weights.hpp>

#include "decoder/operators.hpp"

namespace untax {

/// The most sequences of a step that is one kernel. For more, each block would read more rows than
/// weights, and operators are quicker.
inline constexpr int most_fused_tokens = 4;
/// Whether a model has only parts that the kernel of a step has.
[[nodiscard]] inline bool may_be_one_kernel(const decoder_config& c) {
  return c.type == dtype::bf16 && (c.head_dim == 64 || c.head_dim == 128) && !c.post_norms &&
         c.attention_cap == 0;
}

/// All layers of a step as one kernel, where that is quicker than their operators one after the
/// other.
class fused_step {
 public:
  virtual ~fused_step() = default;

  /// The most sequences of a step that it takes.
  [[nodiscard]] virtual std::int64_t most_rows() const noexcept = 0;
  /// Collective. The normalised rows behind the last layer. With a stream it only launches.
  virtual matrix run(const layer_tokens& tokens, const layer_state& state, stream_ref stream) = 0;
};

/// Collective. Null where there is no such kernel: on hosts, and for models and options that it
/// does not have. All arguments have to outlive it.
[[nodiscard]] std::unique_ptr<fused_step> fused_step_of(decoder_operators& operators,
                                                        const decoder_weights& weights,
                                                        std::span<const layer_cache> caches);
/// That of GPUs. Null in a build without CUDA.
[[nodiscard]] std::unique_ptr<fused_step> device_fused_step_of(decoder_operators& operators,
                                                               const decoder_weights& weights,
                                                               std::span<const layer_cache> caches);

}  // namespace untax
