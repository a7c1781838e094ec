#include "engines/gpu/attention/kernel.cuh"

namespace untax::gpu {

attention_kernel attention_of_width_64(dtype type, bool paged) {
  return kernel_of_width<64>(type, paged);
}

}  // namespace untax::gpu
