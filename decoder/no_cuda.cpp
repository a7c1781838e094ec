#include "decoder/backend.hpp"
#include "ops/common/without_cuda.hpp"

namespace untax {

std::unique_ptr<decoder_backend> device_decoder_backend(world& w) {
  refuse_without_cuda(w, "decoder");
}

}  // namespace untax
