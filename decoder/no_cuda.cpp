#include "decoder/backend.hpp"
#include "decoder/fused_step.hpp"
#include "ops/common/without_cuda.hpp"

namespace untax {

std::unique_ptr<decoder_backend> device_decoder_backend(world& w) {
  refuse_without_cuda(w, "decoder");
}

std::unique_ptr<fused_step> device_fused_step_of(decoder_operators& /*operators*/,
                                                 const decoder_weights& /*weights*/,
                                                 std::span<const layer_cache> /*caches*/) {
  return nullptr;
}

}  // namespace untax
